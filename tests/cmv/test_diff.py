"""Two sessions as the model sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.cmv.diff import diff
from recap.cmv.options import TrimOptions
from recap.transcript.formats import read_bytes
from tests.cmv.worlds import dumped, line, tool_steps

if TYPE_CHECKING:
    from recap.cmv.diff import Diff
    from tests.cmv.worlds import World

OUTPUTS = ["short", "long " * 300, "long too " * 300]
SESSION = tool_steps(OUTPUTS)


def compared(one: bytes, other: bytes) -> Diff:
    return diff(read_bytes(one), read_bytes(other))


def test_a_session_is_the_same_as_itself() -> None:
    found = compared(dumped(SESSION), dumped(SESSION))
    assert found.counts == {"kept": 5, "stubbed": 0, "changed": 0, "dropped": 0, "added": 0}
    assert found.are_texts_equal
    assert found.prefix_blocks == 5
    assert found.chars[0] == found.chars[1]


def test_a_trimmed_branch_has_stubs_and_equal_texts(world: World) -> None:
    row = world.snap(world.session(dumped(SESSION)), "one")
    data = world.branch(row, trim=TrimOptions(keep_last=0, yes=True)).path.read_bytes()
    found = compared(dumped(SESSION), data)
    assert [each.fate for each in found.blocks] == ["kept", "kept", "stubbed", "stubbed", "kept"]
    assert found.are_texts_equal
    assert found.prefix_blocks == 2
    assert found.prefix_tokens == found.prefix_chars // 4
    assert found.chars[1] < found.chars[0]


def test_what_went_came_or_changed_is_told_apart() -> None:
    changed = tool_steps(["other", *OUTPUTS[1:]])[:-1]
    changed.append(line("assistant", len(changed), [{"type": "text", "text": "another end"}]))
    found = compared(dumped(SESSION), dumped(changed))
    fates = [each.fate for each in found.blocks]
    assert fates == ["kept", "changed", "kept", "kept", "dropped", "added"]
    assert not found.are_texts_equal
    one, other = found.texts["assistant"]
    assert one.count == other.count
    assert one.sha256 != other.sha256
    assert found.texts["user"][0] == found.texts["user"][1]


def test_thinking_that_went_keeps_a_block_but_ends_the_common_prefix() -> None:
    thought = [dict(each) for each in tool_steps(["short"])]
    content = thought[1]["message"]["content"]
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    thought[1]["message"] = thought[1]["message"] | {"content": [thinking, *content]}
    found = compared(dumped(thought), dumped(tool_steps(["short"])))
    assert [each.fate for each in found.blocks] == ["kept", "kept", "kept"]
    assert found.prefix_blocks == 1


def test_nothing_is_like_nothing() -> None:
    empty = b'{"type":"mode","sessionId":"s","mode":"x"}\n'
    found = compared(empty, empty)
    assert (found.blocks, found.prefix_blocks, found.chars) == ((), 0, (0, 0))
    assert found.are_texts_equal
