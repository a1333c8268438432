from __future__ import annotations

import pytest

from recap.blocks.protected import protect
from recap.blocks.segment import segment
from recap.errors import UsageError
from tests.testing import reply, step, user


def edit(call_id: str, path: str, size: int = 10):
    return step(call_id, "x" * size, "Edit", file_path=path)


def test_human_words_and_the_latest_edit_of_each_file_are_protected():
    blocks = segment(
        [user("go"), *edit("1", "a.py"), *edit("2", "b.py"), *edit("3", "a.py")]
    ).blocks
    assert protect(blocks, None) == {0: "protected:user", 2: "protected:edit", 3: "protected:edit"}


def test_an_edit_above_the_cap_competes_and_no_older_one_takes_its_place():
    blocks = segment([*edit("1", "a.py"), *edit("2", "a.py", 9000)]).blocks
    assert protect(blocks, 8000) == {}
    assert protect(blocks, None) == {1: "protected:edit"}


def test_pins_are_protected_by_id_or_unique_beginning():
    blocks = segment([reply("one"), reply("two")]).blocks
    assert protect(blocks, None, [blocks[1].id]) == {1: "protected:pin"}
    assert protect(blocks, None, [blocks[0].id[:6]]) == {0: "protected:pin"}


@pytest.mark.parametrize("pin", ["", "abc", "zzzzzzzz"])
def test_an_unknown_pin_is_a_usage_error(pin: str):
    with pytest.raises(UsageError, match="names no block"):
        protect(segment([reply("one")]).blocks, None, [pin])


def test_words_inside_a_refused_call_are_protected_with_it():
    refusal = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. "
        "To tell you how to proceed, the user said:\nKeep it simple, no pooling"
    )
    answer = 'User has answered your questions: "Which one?"="The second"'
    blocks = segment(
        [*step("1", refusal), *step("2", answer), *step("3", "the user said: x")]
    ).blocks
    assert protect(blocks, None) == {0: "protected:user", 1: "protected:user"}
