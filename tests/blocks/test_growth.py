from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.growth import common_messages, segment_grown
from recap.blocks.segment import Segmentation, segment
from tests.testing import call, message, reply, result, step, text, thinking, user

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Message


def grown(known: list[Message], messages: list[Message]) -> Segmentation:
    return segment_grown(known, segment(known), messages)


def a_message(draw: st.DrawFn, number: int) -> Message:
    """Draw one of few messages, so that contents, ids and their order repeat in odd ways."""
    words = draw(st.sampled_from(["go", "ok", " "]))
    call_id = draw(st.sampled_from(["a", "b", "", f"n{number}"]))
    kind = draw(st.sampled_from(["user", "steer", "reply", "calls", "result", "machine", "think"]))
    is_active = draw(st.integers(0, 5)) > 0
    made = {
        "user": lambda: user(words),
        "steer": lambda: message("user", text(words, "steering")),
        "reply": lambda: reply(words, is_active=is_active),
        "calls": lambda: message("assistant", call(call_id), call(draw(st.sampled_from("ab")))),
        "result": lambda: message("tool", result(call_id, words)),
        "machine": lambda: message("user", text(words, "injected"), is_active=is_active),
        "think": lambda: message("assistant", thinking(words), text(words, "agent")),
    }
    return made[kind]()


@st.composite
def lists(draw: st.DrawFn, most: int = 9) -> list[Message]:
    return [a_message(draw, number) for number in range(draw(st.integers(0, most)))]


@given(lists(), lists(), lists(most=3), st.integers(0, 9))
def test_a_list_that_grew_or_changed_has_the_blocks_of_a_pass_over_all(known, more, new, cut):
    for messages in ([*known, *more], [*known[:cut], *new, *more]):
        assert grown(known, messages) == segment(messages)


@given(lists(), lists(), st.integers(0, 9), st.integers(0, 9))
def test_the_first_blocks_of_the_known_ones_are_enough(known, more, start, blocks):
    """A table may hold the history alone, or a prefix of it."""
    whole = segment(known)
    history = Segmentation(
        tuple(block for block in whole.blocks if block.refs[0].message < start)[:blocks],
        tuple(ref for ref in whole.fixed if ref.message < start),
        tuple(each for each in whole.excluded if each.ref.message < start),
    )
    if len(history.blocks) < blocks:
        assert segment_grown(known, history, [*known, *more]) == segment([*known, *more])


def test_what_is_known_is_not_made_again():
    known = [user("go"), *step("a"), reply("ok"), user("more")]
    before = segment(known)
    blocks = segment_grown(known, before, [*known, reply("done")]).blocks
    assert [one is other for one, other in zip(blocks[:3], before.blocks, strict=False)] == [
        True
    ] * 3


def test_a_result_that_arrives_late_joins_its_block():
    known = [user("go"), message("assistant", call("a")), user("wait"), reply("yes"), user("so")]
    messages = [*known, message("tool", result("a"))]
    assert grown(known, messages) == segment(messages)
    assert len(grown(known, messages).blocks[1].refs) == 2


def test_equal_words_are_counted_on():
    known = [user("go"), reply("ok"), user("go"), reply("ok")]
    messages = [*known, user("go"), reply("ok"), user("go")]
    assert grown(known, messages) == segment(messages)


@pytest.mark.parametrize(
    "other",
    [
        message("assistant", text("ok", "human")),
        reply("ok", is_active=False),
        reply("no"),
        message("assistant", text("ok", "agent"), thinking("x")),
        user("ok"),
    ],
)
def test_messages_are_the_same_when_blocks_cannot_tell_them_apart(other):
    assert common_messages([user("go"), reply("ok")], [user("go"), reply("ok")]) == 2
    assert common_messages([user("go"), reply("ok")], [user("go"), other]) == 1


@pytest.mark.corpus
def test_real_sessions_grow_to_the_same_blocks(corpus: Path):
    from recap.transcript.formats import open_log

    for name in ("claude-code/entire-48b4-9turns.jsonl", "codex/agentv-13turns-compacted.jsonl"):
        messages = open_log(corpus / "sessions" / name).messages
        known, before = messages[:0], segment(())
        for end in range(0, len(messages) + 1, 15):
            before = segment_grown(known, before, messages[:end])
            known = messages[:end]
            assert before == segment(known)
