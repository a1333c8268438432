"""`compact` is total: whatever the list holds, the result is valid or the error names the caller's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recap
from tests.transcript.check_examples import ANTHROPIC, MORE_ANTHROPIC, MORE_OPENAI, OPENAI

LARGE = {"message-count", "request-bytes", "content-chars"}
EXAMPLES = [
    pytest.param(dialect, example, id=f"{dialect}-{number}-{code}")
    for dialect, examples in (
        ("anthropic", [*ANTHROPIC.items(), *MORE_ANTHROPIC]),
        ("openai", [*OPENAI.items(), *MORE_OPENAI]),
    )
    for number, (code, example) in enumerate(examples)
    if code not in LARGE and isinstance(example.broken, (list, dict))
]


@pytest.mark.parametrize(("dialect", "example"), EXAMPLES)
@pytest.mark.parametrize("request_text", [None, "go on please"])
def test_every_input_the_validator_refuses_becomes_a_valid_context(
    dialect: str, example: Any, request_text: str | None
):
    for value in example:
        done = recap.compact(value, request_text, dialect=dialect, retention="1")
        errors = [f for f in recap.check(done.messages, dialect) if f.severity == "error"]
        assert {f.code for f in errors} <= {"no-messages", *done.report.over_limit}
        if request_text:
            said = [m["content"] for m in done.messages if m["role"] != "system"]
            assert said[-1] == request_text


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
KEYS = st.sampled_from(
    ["role", "content", "type", "text", "id", "tool_use_id", "tool_call_id", "tool_calls", "name",
     "input", "function", "arguments", "thinking", "signature", "source", "is_error"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["user", "assistant", "system", "tool", "text", "tool_use", "tool_result", "thinking", "image",
     "server_tool_use", "web_search_tool_result", "a", "b", "", " ", "{}", "\ud83d"]
)  # fmt: skip
VALUES = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=12,
)
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool"]), "content": VALUES}
)


@given(st.lists(MESSAGES | VALUES, max_size=8), st.sampled_from(["anthropic", "openai", "auto"]))
def test_any_json_is_survived(messages: list[Any], dialect: str):
    done = recap.compact(messages, "and now?", dialect=dialect, retention="0.5")
    errors = [f for f in recap.check(done.messages, done.report.dialect) if f.severity == "error"]
    assert {f.code for f in errors} <= set(done.report.over_limit)


@given(st.lists(MESSAGES, max_size=8), st.sampled_from(["anthropic", "openai"]))
def test_any_json_is_survived_in_the_other_dialect(messages: list[Any], to: Any):
    done = recap.compact(messages, "and now?", retention="1", to=to)
    assert [f for f in recap.check(done.messages, to) if f.severity == "error"] == []
    assert recap.compact(messages, "and now?", retention="1", to=to).to_json() == done.to_json()


def test_the_input_is_not_changed():
    import copy

    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "x y", "name": "n", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x y", "content": "\ud83d"}]},
    ]  # fmt: skip
    before = copy.deepcopy(messages)
    recap.compact(messages, "go", retention="1")
    assert messages == before


def test_nothing_in_gives_nothing_out():
    done = recap.compact([])
    assert done.messages == []
    assert not done.report.is_effective


@pytest.mark.parametrize(
    "request_value",
    [5, b"x", {}, [{"role": "user", "content": "x"}], {"role": "user", "content": None}, "", " ",
     {"role": "assistant", "content": "x"}, {"content": "do this"}],
)  # fmt: skip
def test_a_request_that_is_none_is_refused(request_value: Any):
    with pytest.raises(recap.UsageError, match="request"):
        recap.compact([{"role": "user", "content": "hello"}], request_value)


@pytest.mark.parametrize(
    "arguments",
    [{"to": "x"}, {"to": 1}, {"policy": "fancy"}, {"policy": 1}, {"pins": [1]}, {"pins": "abcd"},
     {"settings": {}}, {"graph": b""}, {"dialect": "x"}],
)  # fmt: skip
def test_a_wrong_argument_is_a_usage_error(arguments: dict[str, Any]):
    with pytest.raises(recap.UsageError):
        recap.compact([{"role": "user", "content": "hello"}], "go", **arguments)


def test_a_person_may_begin_like_a_marker():
    words = ["[recap: remember to never touch config.py]", "[recap: also keep the API stable"]
    messages = [{"role": "user", "content": text} for text in words]
    done = recap.compact(messages, "next", retention="0.01")
    assert [m["content"] for m in done.messages] == [*words, "next"]


def test_a_request_is_the_persons_whatever_it_begins_with():
    text = "<system-reminder>what is this tag?</system-reminder>"
    done = recap.compact([{"role": "user", "content": "a"}], text)
    assert done.messages[-1]["content"] == text
    assert done.report.current_chars == len(text)
