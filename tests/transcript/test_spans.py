from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.model import decode
from recap.transcript.spans import (
    MAX_DEPTH,
    element_spans,
    is_deep,
    leading_objects,
    member_spans,
    strict_twin,
    trailing_objects,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
layouts = st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")}])


def dumped(value: object, layout: dict[str, object]) -> bytes:
    return json.dumps(value, **layout).encode("utf-8", "surrogatepass")  # type: ignore[arg-type]


def cut(data: bytes, spans: list[tuple[int, int]]) -> list[bytes]:
    return [data[start:end] for start, end in spans]


@given(st.dictionaries(st.text(), json_values, max_size=5), layouts)
def test_members_are_found_wherever_they_stand(value, layout):
    data = dumped(value, layout)
    found = {key: decode(data[start:end]) for key, (start, end) in member_spans(data).items()}
    assert found == value


@given(st.lists(json_values, max_size=5), layouts)
def test_elements_are_found_in_order_without_overlap(value, layout):
    data = dumped(value, layout)
    spans = element_spans(data)
    assert [decode(piece) for piece in cut(data, spans)] == value
    assert [at for span in spans for at in span] == sorted(at for span in spans for at in span)


@given(st.lists(json_values, max_size=4), st.sampled_from([b'"\\ud83d"', b"NaN", b'"\xff"']))
def test_elements_are_found_where_strict_json_refuses_one(value, odd):
    data = b"[" + b" , ".join([odd, *(json.dumps(item).encode() for item in value)]) + b"]"
    pieces = cut(data, element_spans(data))
    assert pieces[0] == odd
    assert [decode(piece) for piece in pieces[1:]] == value


def test_members_are_found_where_strict_json_refuses_a_key_or_a_value():
    data = b'{"a": NaN, "b\\u00e9": ["]", {"}": 1}] , "\\ud83d" : "x" }'
    spans = member_spans(data)
    assert cut(data, list(spans.values())) == [b"NaN", b'["]", {"}": 1}]', b'"x"']
    assert list(spans)[:2] == ["a", "bé"]


def test_the_last_of_repeated_keys_counts():
    data = b'{"a": 1, "b": 2, "a": 3}'
    spans = member_spans(data)
    assert {key: data[start:end] for key, (start, end) in spans.items()} == {"a": b"3", "b": b"2"}


@pytest.mark.parametrize("data", [b"1", b'"a"', b"null", b"[1", b"{", b"", b'{"a" 1}', b"nul[1]"])
def test_what_is_no_object_or_array_is_refused(data):
    with pytest.raises(ValueError):
        member_spans(data)
    with pytest.raises(ValueError):
        element_spans(data)


def test_a_strict_twin_differs_only_where_json_forbids_it():
    data = '{"é": "\\ud83d\\ude00 \\ud83d \\\\ud83d\x0b\t", "n": [NaN, -Infinity, "NaN"]}'.encode()
    twin = strict_twin(data)
    assert len(twin) == len(data)
    assert json.loads(twin) == {"??": "\U0001f600 \ufffd \\ud83d? ", "n": [0, 0, "NaN"]}


@pytest.mark.parametrize(
    "data", [b"[-NaN]", b"[1NaN]", b"[NaN1]", b"[1\x0c]", b"[\xff1]", b"[+Infinity]"]
)
def test_a_strict_twin_of_what_is_no_json_is_none_either(data):
    with pytest.raises(ValueError):
        json.loads(strict_twin(data))


@given(json_values, layouts)
def test_a_strict_twin_has_the_spans_of_the_original(value, layout):
    data = dumped([value, value], layout)
    assert element_spans(strict_twin(data)) == element_spans(data)


def test_depth_counts_brackets_outside_strings():
    assert not is_deep(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    assert is_deep(b"[" * (MAX_DEPTH + 1))
    assert not is_deep(b'["' + b"[" * 1000 + b'"]')
    assert not is_deep(b"[]" * 1000)


@given(
    st.lists(st.dictionaries(st.text(), json_values, max_size=3), max_size=3),
    layouts,
    st.sampled_from(["", " ", "\0\0", "\r"]),
)
def test_whole_objects_are_found_from_either_end(values, layout, between):
    pieces = [dumped(value, layout) for value in values]
    data = between.encode().join(pieces)
    assert cut(data, leading_objects(data)) == pieces
    assert cut(data, trailing_objects(data)) == pieces


@given(st.dictionaries(st.text(), json_values, max_size=3), json_values, st.data())
def test_an_object_behind_a_cut_one_is_found_from_the_end(whole, other, data):
    broken = json.dumps({"type": "user", "message": other}).encode()
    broken = broken[: data.draw(st.integers(0, len(broken) - 1))]
    tail = json.dumps(whole).encode()
    joined = broken + tail
    assert cut(joined, trailing_objects(joined))[-1:] == [tail]


HOSTILE = {
    "brackets": b"[",
    "braces": b'{"type":',
    "quotes": b'"',
    "backslashes": b"\\",
    "escaped quotes": b'\\"',
    "lone surrogates": b'"\\ud83d',
    "strings": b'{"type":"a",',
    "objects": b'{"type":"a"}',
    "escaped backslashes": b'"\\\\',
}


def seconds(data: bytes) -> float:
    start = time.process_time()
    for scan in (strict_twin, is_deep, leading_objects, trailing_objects):
        scan(data)
    for spans in (member_spans, element_spans):
        try:
            spans(data)
        except ValueError:
            continue
    return time.process_time() - start


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_take_time_linear_in_their_length(name):
    small, large = (
        min(seconds(HOSTILE[name] * size) for _ in range(3)) for size in (8_000, 64_000)
    )
    assert large < 0.02 + 24 * small  # eight times the bytes; a square would be 64 times
