from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.images import image_of
from recap.transcript.model import Held, Part
from recap.transcript.parts import (
    call_part,
    image_part,
    other_part,
    parsed_arguments,
    result_part,
    text_part,
    thinking_part,
)

TEXT = st.text(st.characters(codec=None), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def call(arguments: Any, call_id: str = "a", name: str = "f", **extra: Any) -> Part:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments, **extra}
    return call_part(Held(block), name, call_id, arguments, path=("input",))


def result(content: Any, call_id: str = "a") -> Part:
    return result_part(Held({"content": content}), call_id, content, path=("content",))


def image(block: Any) -> Part:
    return image_part(Held(block), "human", image_of(block))


def text_block(words: str, **extra: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **extra}


ANTHROPIC_IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
}
OPENAI_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
MARK = {"cache_control": {"type": "ephemeral"}}


def test_a_text_costs_its_characters_whatever_they_are():
    """B058: a count of quarter bytes undercounted Chinese text and emoji."""
    for words in ("abcd", "会话会话", "😀😀😀😀"):
        assert text_part(Held(words), words, "human").cost_chars == 4


def test_white_space_is_blank():
    assert text_part(Held(" \n"), " \n", "human").is_blank
    assert not text_part(Held("a"), "a", "human").is_blank


def test_a_string_and_a_text_block_are_the_same_text():
    block = text_block("hello", **MARK)
    one = text_part(Held("hello"), "hello", "human")
    two = text_part(Held(block), "hello", "human", path=("text",), dialect="anthropic")
    assert one.digest == two.digest
    assert one.payload() == two.payload() == one.text() == two.text() == "hello"


def test_thinking_has_no_identity_and_is_blank_only_when_it_holds_nothing():
    assert thinking_part(Held("a"), "a").digest == b""
    assert thinking_part(Held("a"), "abc").cost_chars == 3
    assert thinking_part(Held(""), "").is_blank
    assert not thinking_part(Held(""), "", has_signature=True).is_blank


def test_a_call_costs_its_block_as_compact_json():
    """B066: a count without calls and results freed nothing and let the request overflow."""
    part = call({"path": "a.py"})
    assert part.cost_chars == len('{"type":"tool_use","id":"a","name":"f","input":{"path":"a.py"}}')
    assert part.text() == "f\na.py"


def test_arguments_are_equal_as_object_and_as_string_of_any_spelling():
    one, two = call({"a": 1, "b": "é"}), call('{ "b": "\\u00e9",\n"a": 1 }')
    assert one.digest == two.digest != call({"a": 2, "b": "é"}).digest


@pytest.mark.parametrize("arguments", ['{"url":"a"}{"url":"b"}', "", "not json", "{", "\ud83d"])
def test_arguments_that_are_no_json_are_text(arguments):
    """B013: glued arguments ended every later read of the session."""
    assert parsed_arguments(arguments) == arguments
    part = call(arguments)
    assert part.payload() == arguments
    assert part.digest != call({}).digest


def test_a_call_is_known_by_id_name_and_arguments_alone():
    assert call({}).digest == call({}, caller={"type": "direct"}, **MARK).digest
    assert len({call({}).digest, call({}, "b").digest, call({}, name="g").digest}) == 3


def test_a_result_is_equal_as_string_and_as_list_of_texts():
    assert result("a").digest == result([text_block("a", **MARK)]).digest
    assert result("").digest == result(None).digest == result([]).digest
    assert len({result("a").digest, result("b").digest, result("a", "b").digest}) == 3


def test_a_result_costs_its_text_and_its_images():
    part = result([text_block("abc"), ANTHROPIC_IMAGE])
    assert part.images == ((0, 0, 4),)
    assert part.cost_chars == len("abc\n") + 4 * 1600
    assert part.text() == "abc\n"


@pytest.mark.parametrize("content", ["", None, [], [text_block(" ")]])
def test_a_result_without_words_is_blank(content):
    assert result(content).is_blank
    assert not result([ANTHROPIC_IMAGE]).is_blank


@pytest.mark.parametrize(
    "content", [5, True, {"a": 1}, [None], ["x"], [[1]], [{"type": 5}], [{"type": {}}]]
)
def test_a_result_of_an_odd_kind_is_counted_as_its_json(content):
    part = result(content)
    assert part.cost_chars > 0
    assert part.digest != result("").digest


def test_an_image_is_the_same_in_every_dialect_and_under_a_cache_mark():
    one = image(ANTHROPIC_IMAGE)
    assert one.digest == image(OPENAI_IMAGE).digest == image({**ANTHROPIC_IMAGE, **MARK}).digest
    other = {**ANTHROPIC_IMAGE, "source": {**ANTHROPIC_IMAGE["source"], "data": "QUJE"}}
    assert image(other).digest != one.digest
    assert one.images == ((0, 0, 4),)


def test_images_inside_results_are_the_same_in_every_dialect():
    one = result([text_block("a"), ANTHROPIC_IMAGE])
    assert one.digest == result([text_block("a", **MARK), OPENAI_IMAGE]).digest
    assert one.digest != result([text_block("b"), OPENAI_IMAGE]).digest


def test_an_unknown_block_is_known_by_its_json_without_the_cache_mark():
    block = {"type": "new", "x": [1]}
    one = other_part(Held(block), "new", "agent", call_id="s")
    assert one.digest == other_part(Held({**block, **MARK}), "new", "agent").digest
    assert (one.name, one.call_id, one.cost_chars) == ("new", "s", len('{"type":"new","x":[1]}'))


@given(JSON)
def test_no_content_makes_a_part_fail(value):
    for part in (call(value), result(value), other_part(Held(value), "x", "agent")):
        assert part.cost_chars >= 0
        assert part.payload() == value
        part.text()


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4))
def test_a_call_has_one_digest_in_both_dialects(arguments):
    assert call(arguments).digest == call(json.dumps(arguments)).digest
