"""Reported bugs about sizes: characters of content count, whatever else a log says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import recap
from recap.session import compact_transcript
from tests.bugs.cases import (
    ask,
    chat_step,
    compacted,
    result,
    say,
    sound,
    step,
    text,
    use,
    words_in,
)
from tests.transcript import logs

if TYPE_CHECKING:
    from pathlib import Path


def test_b058_the_unit_of_the_budget_is_the_character() -> None:
    """Four characters a token undercounts Chinese and emoji by a factor of two to six.

    The budget counts characters, as the paper does; an estimator of tokens belongs to the gateway.
    """
    for sign in ("\u4e2d", "x", "\U0001f600"):
        done = compacted([ask("q"), say(sign * 7999)], "now", retention="0.29")
        assert done.report.history_chars == 8000
        assert done.report.budget_chars == 2320


def told(uuid: str, parent: str | None, size: int, usage: Any = None) -> logs.Line:
    line = logs.agent(uuid, parent, logs.said("x" * size))
    line["message"]["usage"] = usage
    return line


def test_b060_growth_after_a_usage_record_counts(tmp_path: Path) -> None:
    """A count taken from the provider stood still while large messages followed it."""
    lines = [logs.user("m0", None, "go")]
    for number in range(1, 21):
        usage = {"input_tokens": 12} if number == 10 else None
        lines.append(told(f"m{number}", f"m{number - 1}", 5000 if number > 10 else 5, usage))
    (tmp_path / "s.jsonl").write_bytes(logs.log(*lines))
    report = compact_transcript(recap.open_log(tmp_path / "s.jsonl"), "now").report
    assert report.history_chars == 2 + 10 * 5 + 10 * 5000


def test_b062_the_record_of_a_summary_is_no_measure() -> None:
    """The newest usage record was that of the summary's own request: the gauge was wrong both ways."""
    lines = [
        logs.user("u1", None, "go"),
        told("a1", "u1", 5000, {"input_tokens": 90_000}),
        logs.boundary("b1", "a1"),
        logs.summary("s1", "b1", "This session is being continued from a previous conversation."),
        told("a2", "s1", 7, {"input_tokens": 3, "output_tokens": 1}) | {"isCompactSummary": True},
    ]
    done = sound(compact_transcript(logs.read(*lines), "now"))
    live = [d for d in done.selection.decisions() if done.table.blocks[d.index].is_active]
    assert done.report.history_chars == sum(d.cost_chars for d in live)
    assert done.report.history_chars == len(lines[3]["message"]["content"]) + 7


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [ask(""), say(""), ask(" ")],
        [say([]) | {"content": []}],
        [ask("x")],
        [ask(text(""), text(" "))],
    ],
)
@pytest.mark.parametrize("policy", ["coverage", "paper", "no-graph", "recency", "bm25", "random"])
def test_b064_a_history_that_weighs_nothing_divides_nothing_by_zero(
    messages: list[Any], policy: str
) -> None:
    """Empty strings made a compressor divide by zero."""
    for retention in ("0.0001", "1"):
        done = compacted(messages, "now", retention=retention, policy=policy, dialect="anthropic")
        assert words_in(done.messages)[-1] == "now"
        assert done.report.kept_chars == done.report.history_chars
        assert done.report.protected_share in (0.0, 1.0)
        assert not done.report.is_effective


def test_b065_what_is_always_kept_may_exceed_the_budget() -> None:
    """A fixed prefix larger than the limit raised an error instead of an answer."""
    messages = [
        {"role": "system", "content": "s" * 20_000},
        {"role": "user", "content": "u" * 3000},
        {"role": "assistant", "content": "a" * 9000},
    ]
    done = compacted(messages, "now", retention="0.1")
    assert done.messages[:2] == messages[:2]
    report = done.report
    assert (report.fixed_chars, report.protected_chars, report.budget_chars) == (20_000, 3000, 1200)
    assert (report.over_budget, report.protected_share) == (True, 2.5)


def test_b066_results_count_in_every_dialect() -> None:
    """A counter looked at texts alone: 100 kB of tool output freed nothing and overflowed."""
    output = "x" * 100_000
    made: dict[str, Any] = {
        "openai": [{"role": "user", "content": "go"}, *chat_step(["c1"], output)],
        "anthropic": [ask("go"), *step("c1", output)],
        "responses": [
            {"type": "message", "role": "user", "content": "go"},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": output},
        ],
        "gemini": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": output}}},
            ]},
        ],
        "opencode": [
            {
                "info": {"id": "m1", "role": "user"},
                "parts": [{"id": "p1", "type": "text", "text": "go"}],
            },
            {"info": {"id": "m2", "role": "assistant"}, "parts": [{
                "id": "p2", "type": "tool", "callID": "c1", "tool": "read",
                "state": {"status": "completed", "input": {}, "output": output},
            }]},
        ],
    }  # fmt: skip
    for dialect, messages in made.items():
        report = recap.compact(messages, "now", dialect=dialect, retention="1").report
        assert 100_020 < report.history_chars < 100_300, dialect


def test_b066_calls_count_as_well() -> None:
    """A call's arguments are sent like any text."""
    messages = [ask("go"), say(use("t1", "Write", content="y" * 5000)), ask(result("t1", "ok"))]
    call = json.dumps(use("t1", "Write", content="y" * 5000), separators=(",", ":"))
    assert compacted(messages, "now").report.history_chars == len("go") + len(call) + len("ok")
