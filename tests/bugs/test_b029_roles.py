"""Reported bugs about the order of roles: boundaries of messages are the person's own."""

from __future__ import annotations

from itertools import pairwise

import recap
from recap.session import compact_transcript
from tests.bugs.cases import ask, chat_step, compacted, say, sound, step, words_in


def test_b029_adjacent_messages_of_one_role_are_joined_on_demand_only() -> None:
    """Two user messages in a row after a compaction were refused by strict templates."""
    messages = [ask("one"), *(m for i in range(4) for m in (say("x" * 900), ask(f"number {i}")))]
    settings = recap.Settings(retention="0.05", markers=False)
    transcript = recap.read_messages(messages, "openai")
    apart = sound(compact_transcript(transcript, "now", settings=settings))
    expected = ["one", "number 0", "number 1", "number 2", "number 3", "now"]
    assert [m["content"] for m in apart.messages] == expected
    joined = sound(compact_transcript(transcript, "now", settings=settings, alternate=True))
    assert [m["content"] for m in joined.messages] == ["\n\n".join(expected)]


def test_b029_with_markers_alternation_holds_as_well() -> None:
    """The same with marks of what was left out."""
    messages = [m for i in range(60) for m in (ask(f"number {i}"), say("x" * 900))]
    transcript = recap.read_messages(messages, "openai")
    done = sound(compact_transcript(transcript, "now", alternate=True))
    assert done.report.markers > 0
    assert all(a["role"] != b["role"] for a, b in pairwise(done.messages))


def test_b031_every_message_of_a_person_stays_one_of_its_own() -> None:
    """Replies after the compaction vanished and queued messages were run together."""
    messages = [
        ask("u1"), say("a1 " + "x" * 4000), ask("u2"), say("a2 " + "y" * 4000),
        ask("u3, queued"), ask("u4, queued"), *step("t1", "z" * 500),
    ]  # fmt: skip
    done = compacted(messages, retention="0.01")
    assert words_in(done.messages, "user") == ["u1", "u2", "u3, queued", "u4, queued"]
    assert done.messages[-3:] == messages[-3:]


def test_b033_a_small_budget_never_gives_nothing() -> None:
    """A window that held tool messages alone came back as an empty list."""
    messages = [
        {"role": "user", "content": "Compare both files"},
        *chat_step(["c1", "c2"], "x" * 5000, "y" * 200),
    ]
    done = compacted(messages, retention="0.001")
    assert done.messages == messages
    later = compacted(messages, "Well?", retention="0.001")
    assert words_in(later.messages, "user") == ["Compare both files", "Well?"]
    assert (later.report.over_budget, later.report.budget_chars) == (True, 5)
