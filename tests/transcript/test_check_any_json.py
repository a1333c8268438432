"""The validator never raises, whatever JSON it is given, and measures it rightly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.check import RULES, check, check_log
from recap.transcript.check.plain import CHUNK, escapes, measure
from recap.transcript.model import Finding, encode
from tests.transcript import check_examples as examples

if TYPE_CHECKING:
    from recap.transcript.model import Json


def codes(findings: list[Finding]) -> set[str]:
    return {finding.code for finding in findings}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
KINDS = (
    "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "server_tool_use",
    "web_search_tool_result", "image", "image_url", "function",
)  # fmt: skip
KEYS = (
    "type", "text", "thinking", "signature", "data", "id", "tool_use_id", "name", "input",
    "content", "is_error", "source", "media_type", "image_url", "url", "function", "arguments",
)  # fmt: skip
AWKWARD: tuple[Any, ...] = (
    *KINDS, "", "a", " ", "base64", "user", "assistant", "system", "\ud800", None, True, 0, -1.5,
    float("nan"), [], [[]], {}, [None], ["a"], [{"type": "text"}], [{"type": []}], [{"type": "image"}],
    {"type": "base64"}, {"type": {}}, {"url": "data:,x"}, {"url": []}, {"name": "a", "arguments": "["},
)  # fmt: skip
awkward = st.sampled_from(AWKWARD)
near_blocks = st.dictionaries(st.sampled_from(KEYS), awkward, max_size=6) | awkward
near_messages = st.dictionaries(
    st.sampled_from(("role", "content", "tool_calls", "tool_call_id", "refusal", "model")),
    st.lists(near_blocks, max_size=3) | awkward,
    max_size=4,
)
near_lists = st.lists(
    st.builds(lambda role, rest: {"role": role} | rest, awkward, near_messages) | awkward,
    max_size=5,
)
near_documents = st.fixed_dictionaries(
    {}, optional={"messages": near_lists | awkward, "system": near_lists, "tools": near_lists}
)


@given(near_lists | near_documents | json_values, st.sampled_from(("anthropic", "openai", "auto")))
def test_check_gives_known_findings_for_any_json_value(value: Json, dialect: Any) -> None:
    size = len(value) if isinstance(value, list | tuple) else 1 << 30
    for finding in check(value, dialect):
        assert finding.code in RULES["anthropic"] or finding.code in RULES["openai"]
        assert 0 <= finding.line <= size
        assert "{" not in finding.detail


@given(st.lists(st.binary(max_size=40) | json_values, max_size=8))
def test_check_log_gives_known_findings_for_any_lines(lines: list[Any]) -> None:
    data = b"".join(line if isinstance(line, bytes) else encode(line) + b"\n" for line in lines)
    assert codes(check_log(data)) <= RULES["claude-code"].keys()


@given(st.lists(st.fixed_dictionaries({}, optional={
    "type": st.sampled_from(("user", "assistant", "progress", "system")) | awkward,
    "uuid": st.sampled_from("abcd") | awkward,
    "parentUuid": st.sampled_from("abcde") | awkward,
    "message": near_messages,
    "subtype": st.just("compact_boundary"),
    "isSidechain": awkward,
}), max_size=8))  # fmt: skip
def test_check_log_gives_known_findings_for_any_chain(records: list[Any]) -> None:
    assert codes(check_log(examples.log(*map(encode_line, records)))) <= RULES["claude-code"].keys()


def encode_line(record: Any) -> bytes:
    return encode(record) + b"\n"


common_text = st.text(st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("\n\t\r"))
sized_values = st.recursive(
    st.none() | st.booleans() | common_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ké漢", max_size=2), inner),
    max_leaves=8,
)


def compact(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@given(sized_values)
def test_size_is_that_of_the_compact_json(value: Json) -> None:
    assert measure(value) == (len(compact(value)) - escapes(value), True)


@pytest.mark.parametrize("words", ["dé—漢😀" * CHUNK, "x" * (CHUNK + 1), 'a"\\' * CHUNK])
def test_size_of_long_texts_is_exact(words: str) -> None:
    assert measure([words, words]) == (len(compact([words, words])) - escapes([words, words]), True)


@given(st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False))
def test_size_of_numbers_is_near(number: float) -> None:
    size, is_json = measure(number)
    assert is_json
    assert abs(size - len(compact(number))) <= 2


@pytest.mark.parametrize(
    "value", [float("nan"), -float("inf"), b"x", {1}, {None: 1}, "\ud800", {"\udfff": 1}]
)
def test_what_json_cannot_hold_is_noticed(value: Any) -> None:
    assert not measure([value])[1]
    assert not measure({"a": [value, "x" * 5000]})[1]


def test_deep_nesting_needs_no_recursion() -> None:
    deep: Any = 0.5
    for _ in range(100_000):
        deep = [deep]
    assert (
        check([examples.user({"type": "new", "x": deep}), examples.user(deep)], "anthropic")[0].line
        == 2
    )
