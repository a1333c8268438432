from __future__ import annotations

import pytest

from recap.transcript.claude_lines import Line, detect, session_of, text_of
from tests.transcript.logs import agent, boundary, node, user


@pytest.mark.parametrize(
    "record",
    [
        user("u", None, "x"),
        agent("a", "u"),
        {"type": "user", "message": {"content": "x"}},
        boundary("b", "u"),
        node("progress", "p", None),
        node("attachment", "p", None, attachment={}),
        {"type": "summary", "summary": "x", "leafUuid": "u"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s"},
    ],
)
def test_lines_of_the_client_are_recognised(record):
    assert detect(record)


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"type": None},
        {"type": []},
        {"type": "user"},
        {"type": "user", "message": "x"},
        {"type": "user", "content": "x"},
        {"type": "summary", "summary": "x"},
        {"type": "system", "content": "x"},
        {"role": "user", "content": "x"},
    ],
)
def test_other_records_are_not(record):
    assert detect(record) is None


def test_a_sub_agents_session_is_named_with_its_agent():
    assert session_of(Line(sessionId="s", agentId="7", isSidechain=True)) == "s/7"
    assert session_of(Line(sessionId="s", agentId="7")) == "s"


def test_only_text_is_text():
    assert (text_of("x"), text_of(7), text_of(None)) == ("x", "", "")
