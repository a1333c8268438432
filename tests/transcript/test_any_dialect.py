"""Whatever a list holds, reading it is total and what goes out is valid, in every dialect."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recap
from recap.config import Settings
from recap.transcript.dialects import DIALECTS
from recap.transcript.lists import read_messages
from tests.transcript.any_dialect import LISTS
from tests.transcript.dialect_examples import (
    GEMINI,
    LANGCHAIN,
    MORE_GEMINI,
    MORE_LANGCHAIN,
    MORE_OPENCODE,
    MORE_RESPONSES,
    OPENCODE,
    RESPONSES,
)

SETTINGS = Settings(retention="1", markers=False)
LARGE = ("request-bytes", "content-chars", "image-count")
EXAMPLES = [
    pytest.param(dialect, example, id=f"{dialect}-{number}-{code}")
    for dialect, examples in (
        ("responses", [*RESPONSES.items(), *MORE_RESPONSES]),
        ("gemini", [*GEMINI.items(), *MORE_GEMINI]),
        ("langchain", [*LANGCHAIN.items(), *MORE_LANGCHAIN]),
        ("opencode", [*OPENCODE.items(), *MORE_OPENCODE]),
    )
    for number, (code, example) in enumerate(examples)
    if code not in LARGE
]


def errors(messages: Any, dialect: Any) -> list[str]:
    return [f.code for f in recap.check(messages, dialect) if f.severity == "error"]


@pytest.mark.parametrize("dialect", LISTS)
@given(data=st.data())
def test_any_json_is_survived_and_left_as_it_is(dialect: str, data: st.DataObject) -> None:
    messages = data.draw(LISTS[dialect])
    before = copy.deepcopy(messages)
    done = recap.compact(messages, "and now?", dialect=dialect, settings=SETTINGS)
    assert errors(done.messages, dialect) == []
    assert repr(messages) == repr(before)
    again = read_messages(done.messages, dialect)
    assert [f.code for f in again.findings if f.severity == "error"] == []


@pytest.mark.parametrize(("dialect", "example"), EXAMPLES)
@pytest.mark.parametrize("request_text", [None, "go on please"])
def test_every_input_the_validator_refuses_becomes_a_valid_context(
    dialect: str, example: Any, request_text: str | None
) -> None:
    for value in example:
        done = recap.compact(value, request_text, dialect=dialect, settings=SETTINGS)
        assert set(errors(done.messages, dialect)) <= {"no-messages"}
        if request_text:
            assert request_text in str(done.messages[-1])


@pytest.mark.parametrize("to", DIALECTS)
@pytest.mark.parametrize("dialect", LISTS)
@given(data=st.data())
def test_any_json_is_survived_in_every_other_dialect(
    dialect: str, to: Any, data: st.DataObject
) -> None:
    messages = data.draw(LISTS[dialect])
    done = recap.compact(messages, dialect=dialect, to=to, retention="0.5")
    assert set(errors(done.messages, to)) <= {"no-messages"}
    written = json.loads(done.to_json())
    assert isinstance(written, list) or done.system


@pytest.mark.parametrize("to", DIALECTS)
def test_calls_of_tools_whose_names_a_vendor_refuses_are_not_lost(to: Any) -> None:
    call = {"name": "1.fs read", "args": {}, "id": "c1", "type": "tool_call"}
    messages = [
        {"type": "human", "data": {"content": "go"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [call]}},
        {"type": "tool", "data": {"content": "done", "tool_call_id": "c1"}},
        {"type": "human", "data": {"content": "next"}},
    ]
    done = recap.compact(messages, settings=SETTINGS, to=to)
    assert "done" in done.to_json().decode()
    assert (errors(done.messages, to), done.report.notes) == ([], {})
