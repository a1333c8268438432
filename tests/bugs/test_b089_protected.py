"""Reported bugs about what must stay: instructions, pins, the person's words, the request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import recap
from recap.session import compact_transcript
from tests.bugs.cases import ask, blocks_in, compacted, say, step, text, words_in
from tests.cli.conftest import Cli

if TYPE_CHECKING:
    from pathlib import Path

RULES = "<system-reminder>\nContents of CLAUDE.md:\nNever touch config.py.\n</system-reminder>"


def test_b089_instructions_survive_any_number_of_compactions() -> None:
    """After a compaction the project's instructions were a summary, and ignored."""
    system = {"role": "system", "content": "You are careful.\r\n\u00e9"}
    first = ask(text(RULES), text("Fix the parser"))
    messages: list[Any] = [first, *step("t0", "x" * 900), say("Fixed. " * 40)]
    for round_ in range(11):
        done = compacted([*messages], f"And number {round_}", retention="0.05", dialect="anthropic")
        assert done.messages[0] == first
        assert blocks_in(done.messages, "text").count(text(RULES)) == 1
        messages = [*done.messages, *step(f"t{round_ + 1}", "y" * 900), say("Fixed. " * 40)]
    chat = [system, {"role": "user", "content": RULES}, {"role": "user", "content": "Go"}]
    done = compacted([*chat, {"role": "assistant", "content": "z" * 900}], "now", retention="0.01")
    assert done.messages[: len(chat)] == chat


def test_b091_a_pin_holds_whichever_way_one_comes_in(tmp_path: Path) -> None:
    """Pins survived one way into the compaction and not the others."""
    messages = [
        m
        for number in range(10)
        for m in (ask(f"request {number}"), *step(f"t{number}", "x" * 700), say("ok"))
    ]
    plain = compacted(messages, "now", retention="0.05", policy="recency")
    pinned = next(d for d in plain.selection.decisions() if d.kind == "tools")
    assert not pinned.is_kept
    pins = [pinned.id]
    settings = recap.Settings(retention="0.05")
    transcript = recap.read_messages(messages)
    ways = [
        compacted(messages, "now", retention="0.05", policy=policy, pins=pins)
        for policy in ("coverage", "paper", "recency", "bm25", "random", "no-graph")
    ]
    ways.append(compact_transcript(transcript, "now", settings=settings, pins=pins))
    for done in ways:
        decision = done.selection.decisions()[pinned.index]
        assert (decision.is_kept, decision.rule) == (True, "protected:pin")
    (tmp_path / "list.json").write_text(json.dumps(messages))
    done = Cli(tmp_path)(
        "explain", str(tmp_path / "list.json"), "--request", "now", "--pin", pinned.id[:8], "--json"
    )
    assert done.json()["blocks"][pinned.index]["rule"] == "protected:pin"


@pytest.mark.parametrize(
    "packet",
    [
        "<environment_context>\n<cwd>/home/me</cwd>\n</environment_context>",
        "<system-reminder>\nThe todo list is empty.\n</system-reminder>",
        "<command-name>/clear</command-name>\n<command-args></command-args>",
        "# AGENTS.md instructions for /home/me\n\nBe brief.",
    ],
)
def test_b093_what_a_client_injects_is_no_word_of_the_person(packet: str) -> None:
    """Start-up packets counted as the person's words: 29,600 tokens of them, kept twice."""
    messages: list[Any] = [ask("Go"), say("ok")]
    for number in range(20):
        messages += [ask(packet), ask(f"request {number}"), say("y" * 900)]
    done = compacted(messages, "now", retention="0.02")
    decisions = done.selection.decisions()
    assert sum(d.rule == "protected:user" for d in decisions) == 21
    assert sum(d.kind == "machine" for d in decisions) == 20
    assert words_in(done.messages, "user").count(packet) < 20
    assert done.report.protected_chars == sum(len(f"request {n}") for n in range(20)) + 2


def test_b093_a_meta_line_is_no_word_of_the_person() -> None:
    """The same where the client says so itself."""
    from tests.transcript import logs

    transcript = logs.read(
        logs.user("u1", None, "Go"),
        logs.user("u2", "u1", "Caveat about nothing at all", isMeta=True),
        logs.agent("a1", "u2", logs.said("ok")),
    )
    assert logs.authors(transcript) == ["human", "injected", "agent"]


def test_b095_the_request_is_last_and_stands_once() -> None:
    """After two compactions old requests were read as new ones."""
    messages: list[Any] = [ask("first request"), *step("t1", "x" * 3000), say("First is done.")]
    one = compacted(messages, "second request", retention="0.1")
    messages = [*one.messages, *step("t2", "y" * 3000), say("Second is done.")]
    two = compacted(messages, "third request", retention="0.1")
    assert two.messages[-1] == ask("third request")
    said = words_in(two.messages, "user")
    assert said == ["first request", "second request", "third request"]
    between = two.messages[1:-1]
    assert any(m["role"] == "assistant" or m["content"].startswith("[recap: ") for m in between)
