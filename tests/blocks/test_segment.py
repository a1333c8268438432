from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.segment import segment
from tests.testing import call, message, reply, result, step, text, thinking, user

if TYPE_CHECKING:
    from recap.transcript.model import Message


def shape(messages: list[Message]) -> list[tuple[str, int, list[tuple[int, int]]]]:
    return [
        (block.kind, block.turn, [tuple(ref) for ref in block.refs])
        for block in segment(messages).blocks
    ]


def test_an_assistant_message_and_all_its_results_are_one_block():
    """B003: a cut between the results of parallel calls left an orphan."""
    messages = [
        user("go"),
        message("assistant", call("a"), call("b")),
        message("tool", result("a", "x" * 5000)),
        message("tool", result("b", "y" * 200)),
        reply("done"),
    ]
    assert shape(messages) == [
        ("user", 0, [(0, 0)]),
        ("tools", 0, [(1, 0), (1, 1), (2, 0), (3, 0)]),
        ("reply", 0, [(4, 0)]),
    ]


def test_steering_text_is_a_user_block_of_the_same_turn():
    messages = [
        user("go"),
        message("assistant", call("a")),
        message("tool", result("a")),
        message("user", text("not the tests", "steering")),
    ]
    assert [(b.kind, b.turn) for b in segment(messages).blocks] == [
        ("user", 0), ("tools", 0), ("user", 0),
    ]  # fmt: skip


def test_each_request_begins_a_turn():
    messages = [reply("hello"), user("one"), reply("a"), user("two"), reply("b")]
    assert [block.turn for block in segment(messages).blocks] == [0, 0, 0, 1, 1]


def test_the_id_of_a_block_does_not_change_when_its_results_arrive():
    whole = [user("go"), message("assistant", call("a"), call("b")), message("tool", result("a"))]
    ids = [block.id for block in segment(whole[:2]).blocks] + [
        block.id for block in segment([*whole, message("tool", result("b"))]).blocks
    ]
    assert ids[0] == ids[1]
    assert segment(whole).blocks[1].id == ids[2]


def test_equal_messages_get_different_ids():
    blocks = segment([user("continue"), user("continue"), user("continue")]).blocks
    assert len({block.id for block in blocks}) == 3


def test_thinking_does_not_change_the_id():
    first = segment([message("assistant", thinking("hm"), text("answer", "agent"))])
    second = segment([message("assistant", text("answer", "agent"))])
    assert first.blocks[0].id == second.blocks[0].id


def test_injected_text_of_the_live_root_is_fixed_and_no_block():
    root = message("user", text("<system-reminder>rules</system-reminder>", "injected"), text("go"))
    found = segment([root, reply("ok")])
    assert [tuple(ref) for ref in found.fixed] == [(0, 0)]
    assert [block.kind for block in found.blocks] == ["user", "reply"]


def test_later_injected_text_competes_as_a_machine_block():
    messages = [user("go"), reply("ok"), message("user", text("<x>", "injected"))]
    assert [block.kind for block in segment(messages).blocks] == ["user", "reply", "machine"]


def test_root_text_of_a_replaced_context_is_not_fixed():
    messages = [
        message("user", text("<old>", "injected"), is_active=False),
        message("user", text("<new>", "injected")),
    ]
    found = segment(messages)
    assert [tuple(ref) for ref in found.fixed] == [(1, 0)]
    assert [(block.kind, block.is_active) for block in found.blocks] == [("machine", False)]


def test_blank_texts_and_thinking_only_messages_are_excluded_with_a_reason():
    messages = [
        message("user", text(" \n")),
        message("assistant", thinking("hm")),
        message("assistant", text("", "agent"), call("open")),
    ]
    found = segment(messages)
    assert found.blocks == ()
    assert [(tuple(e.ref), e.reason) for e in found.excluded] == [
        ((0, 0), "blank"),
        ((1, 0), "thinking-only"),
        ((2, 0), "blank"),
        ((2, 1), "open-call"),
    ]


def test_a_reply_beside_an_open_call_stays():
    """B002: the person interrupted a call; the text beside it and the person's words stay."""
    messages = [
        user("go"),
        message("assistant", text("I run it", "agent"), call("open")),
        user("stop"),
    ]
    assert shape(messages) == [
        ("user", 0, [(0, 0)]),
        ("reply", 0, [(1, 0)]),
        ("user", 1, [(2, 0)]),
    ]


def test_markers_of_an_earlier_run_are_left_out():
    messages = [user("go"), message("user", text("[recap: 3 blocks of turn 1 omitted]", "marker"))]
    assert [e.reason for e in segment(messages).excluded] == ["omission-marker"]


def test_a_blank_result_keeps_its_pair():
    """B028: a silent command (mkdir) has an empty result, which is legal."""
    messages = [user("go"), *step("a", "")]
    assert shape(messages)[1] == ("tools", 0, [(1, 0), (2, 0)])


def test_edits_are_recorded_unless_they_failed():
    good = step("a", "ok", "Edit", file_path="src/a.py")
    bad = [
        message("assistant", call("b", "Edit", file_path="src/b.py")),
        message("tool", result("b", "no match", is_error=True)),
    ]
    assert [b.edited_paths for b in segment([*good, *bad]).blocks] == [("src/a.py",), ()]


KINDS = st.sampled_from(["user", "steering", "reply", "call", "result", "injected", "blank"])


def make(kind: str, call_id: str) -> Message:
    if kind == "user":
        return user("do it")
    if kind == "reply":
        return reply("done")
    if kind == "call":
        return message("assistant", call(call_id), call("a"))
    if kind == "result":
        return message("tool", result(call_id))
    if kind == "blank":
        return message("assistant", text(" ", "agent"))
    return message("user", text("<x>", "injected" if kind == "injected" else "steering"))


def histories() -> st.SearchStrategy[list[Message]]:
    return st.lists(st.builds(make, KINDS, st.sampled_from("abc")), max_size=25)


@given(histories())
def test_every_part_is_in_one_block_or_fixed_or_excluded(messages: list[Message]):
    found = segment(messages)
    placed = [ref for block in found.blocks for ref in block.refs]
    placed += [*found.fixed, *(exclusion.ref for exclusion in found.excluded)]
    every = [(i, j) for i, m in enumerate(messages) for j in range(len(m.parts))]
    assert sorted(tuple(ref) for ref in placed) == every


@given(histories(), st.data())
def test_blocks_of_a_prefix_stay_what_they_are(messages: list[Message], data: st.DataObject):
    cut = data.draw(st.integers(0, len(messages)))
    before, after = segment(messages[:cut]).blocks, segment(messages).blocks
    later = {block.id: block for block in after}
    for block in before:
        assert later[block.id].turn == block.turn
        if block.kind in ("user", "machine"):
            assert later[block.id] == block
