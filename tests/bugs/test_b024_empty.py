"""Reported bugs about messages that hold nothing: a provider refuses them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import recap
from recap.session import compact_transcript
from tests.bugs.cases import ask, chat_step, compacted, result, say, sound, text, thinking, use
from tests.transcript import logs


def test_b024_a_message_of_which_nothing_is_left_is_left_out() -> None:
    """Taking blocks out left empty contents: thinking alone, a result without its call."""
    messages = [
        ask("Go"),
        say(thinking("hm")),
        ask("On"),
        say("Yes."),
        ask(result("before-the-cut")),
        say("Done."),
    ]
    done = compacted(messages, "And?")
    assert [m["content"] for m in done.messages] == ["Go", "On", "Yes.", "Done.", "And?"]
    assert done.report.excluded == {"orphan-result": 1, "thinking-only": 1}


def test_b024_a_line_of_which_nothing_is_left_is_taken_out_and_its_children_move_up() -> None:
    """The same in a log: the line goes, the chain holds."""
    data = logs.log(
        logs.user("u1", None, "Go"),
        logs.agent("a1", "u1", logs.said("Yes.")),
        logs.answer("r1", "a1", "before-the-cut"),
        logs.agent("a2", "r1", logs.said("Done.")),
    )
    lines = [json.loads(line) for line in recap.repair(data).data.splitlines()]
    assert [(line["uuid"], line["parentUuid"]) for line in lines] == [
        ("u1", None), ("a1", "u1"), ("a2", "a1"),
    ]  # fmt: skip


def test_b026_white_space_counts_as_empty() -> None:
    """A placeholder of one space passed for text here, and was refused there."""
    messages = [
        ask("Go"),
        say(" "),
        ask("\n"),
        say(text(" \t"), use("t1")),
        ask(result("t1", " ")),
        say("Done."),
    ]
    done = compacted(messages, "And?")
    assert done.messages == [
        ask("Go"), say(use("t1")), ask(result("t1", " ")), say("Done."), ask("And?"),
    ]  # fmt: skip
    assert done.report.excluded == {"blank": 3}
    assert {f.code for f in recap.check(messages)} >= {"blank-text"}


def test_b028_a_silent_turn_and_a_silent_command_wedge_nothing() -> None:
    """An empty reply and the empty result of mkdir, once stored, were refused by three providers."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Make a folder"},
        *chat_step(["c1"], ""),
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "And another"},
    ]
    done = compacted(messages, "Now list them")
    assert done.messages[:3] == messages[:3]
    assert {"role": "assistant", "content": ""} not in done.messages
    assert [m["role"] for m in done.messages[3:]] == ["user", "user"]
    strict = sound(
        compact_transcript(
            recap.read_messages(messages), "Now list them",
            settings=recap.Settings(retention="1"), alternate=True,
        )
    )  # fmt: skip
    roles = [m["role"] for m in strict.messages]
    assert all(one != other for one, other in pairwise(roles))
    assert strict.messages[1:3] == messages[1:3]
