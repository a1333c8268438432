from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.model import Held, Slice, is_clean
from recap.transcript.sources import ByteSource
from recap.transcript.tree import strict, to_bytes, to_object


def file(data: bytes, *, clean: bool = True) -> Slice:
    return Slice(ByteSource(data), 0, len(data), clean)


TEXT = st.text(st.characters(codec=None), max_size=20)  # lone surrogates included
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def test_a_clean_leaf_of_a_file_keeps_its_bytes():
    data = b'{ "b" : 1.0e0,\n "a": "\\u0041", "a": "\\u00e9" }'
    assert to_bytes({"role": "user", "content": [file(data)]}) == (
        b'{"role":"user","content":[' + data + b"]}"
    )


def test_a_clean_leaf_of_a_caller_comes_back_as_the_same_object():
    block = {"type": "text", "text": "a"}
    assert to_object([{"content": [Held(block)]}])[0]["content"][0] is block


def test_leaves_stand_anywhere_in_a_tree():
    tree = {"a": Held([1]), "b": [Held("x"), {"c": file(b"null")}], "d": (True, 1.5, None, "é")}
    assert to_object(tree) == json.loads(to_bytes(tree))
    assert to_object(tree) == {"a": [1], "b": ["x", {"c": None}], "d": [True, 1.5, None, "é"]}


@pytest.mark.parametrize(
    ("text", "legal"),
    [
        ("a\ud83d", "a\ufffd"),
        ("\ude00a", "\ufffda"),
        ("\ud83db", "\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
    ],
)
def test_lone_surrogates_become_replacement_characters(text, legal):
    """B050: a text cut in the middle of a pair made every later request invalid JSON."""
    for tree in (Held({text: text}, False), {text: text}):
        assert to_object(tree) == {legal: legal}
        assert json.loads(to_bytes(tree)) == {legal: legal}


def test_numbers_that_are_not_finite_become_null():
    value = {"a": float("nan"), "b": [float("inf"), -float("inf")], "c": 1.5}
    for tree in (Held(value, False), value):
        assert to_object(tree) == {"a": None, "b": [None, None], "c": 1.5}
        assert json.loads(to_bytes(tree)) == {"a": None, "b": [None, None], "c": 1.5}


def test_a_dirty_leaf_of_a_file_is_written_as_strict_json():
    dirty = file(b'{"t": "\\ud83d", "n": NaN}', clean=False)
    assert to_object(dirty) == {"t": "\ufffd", "n": None}
    assert to_bytes(dirty) == '{"t":"\ufffd","n":null}'.encode()


def test_only_dirty_leaves_are_copied():
    clean, dirty = {"text": "a"}, {"text": "\ud83d"}
    found = to_object([Held(clean), Held(dirty, False)])
    assert found[0] is clean
    assert found[1] == {"text": "\ufffd"}
    assert dirty == {"text": "\ud83d"}


def test_numbers_of_any_length_survive():
    assert to_bytes({"n": 10**40}) == b'{"n":' + str(10**40).encode() + b"}"
    assert to_object(Held({"n": 10**40, "t": "\ud83d"}, False))["n"] == 10**40


@given(JSON)
def test_every_value_is_written_as_strict_json(value):
    data = to_bytes(Held(value, is_clean(value)))
    data.decode("utf-8")
    json.loads(data, parse_constant=lambda name: pytest.fail(name))


@given(JSON)
def test_bytes_and_objects_of_a_tree_are_equal(value):
    tree = {"leaf": Held(value, is_clean(value)), "plain": value}
    assert json.loads(to_bytes(tree)) == to_object(tree)


@given(JSON)
def test_strict_changes_nothing_that_is_strict_already(value):
    once = strict(value)
    assert strict(once) == once
    if is_clean(value):
        assert once == value
