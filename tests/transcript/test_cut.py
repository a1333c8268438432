from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.cut import whole_elements

ITEMS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text('ab"\\{}[],:', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"', max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text('ab"', max_size=3), ITEMS, max_size=3)


@given(st.lists(OBJECTS, max_size=4), OBJECTS, st.integers(0, 400), st.sampled_from([None, 2]))
def test_a_cut_document_holds_a_beginning_of_its_elements(
    items: list[Any], before: dict[str, Any], at: int, indent: int | None
):
    document = {**before, "x": "messages", "other": [{"a": []}], "messages": items, "y": [{}]}
    data = json.dumps(document, indent=indent).encode()
    found = [
        json.loads(data[:at][start:end]) for start, end in whole_elements(data[:at], "messages")
    ]
    assert found == items[: len(found)]
    assert [json.loads(data[a:b]) for a, b in whole_elements(data, "messages")] == items


def test_an_array_of_another_level_is_not_meant():
    assert whole_elements(b'{"a": {"messages": [{}]}, "b": [{"messages": [{}]}]', "messages") == []


def test_deep_nesting_ends_the_search():
    deep = b'{"messages": [{"a": 1}, ' + b"[" * 100_000
    assert len(whole_elements(deep, "messages")) == 1
