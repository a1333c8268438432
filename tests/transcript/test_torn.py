"""Records of every log with one record a line come out of lines they do not fill."""

from __future__ import annotations

import json
from typing import Any

import pytest

import recap
from recap.transcript.formats import FORMATS, read_bytes

Row = dict[str, Any]


def _codex(n: int) -> Row:
    content = [{"type": "input_text", "text": f"word {n}"}]
    payload = {"type": "message", "role": "user", "content": content}
    return {"timestamp": f"2026-01-01T00:00:0{n}Z", "type": "response_item", "payload": payload}


def _copilot(n: int) -> Row:
    return {
        "id": f"{n}",
        "type": "user.message",
        "data": {"content": f"word {n}", "attachments": []},
    }


def _gemini(n: int) -> Row:
    return {"id": f"{n}", "timestamp": "2026", "type": "user", "content": f"word {n}"}


def _pi(n: int) -> Row:
    message = {"role": "user", "content": [{"type": "text", "text": f"word {n}"}], "timestamp": n}
    return {"type": "message", "timestamp": "2026", "message": message}


def _openhands(n: int) -> Row:
    return {
        "id": n, "source": "user", "action": "message",
        "args": {"content": f"word {n}"}, "message": f"word {n}",
    }  # fmt: skip


def _chat(n: int) -> Row:
    return {"content": f"word {n}", "role": "user"}


def _langchain(n: int) -> Row:
    return {"data": {"content": f"word {n}"}, "type": "human"}


def _gemini_contents(n: int) -> Row:
    return {"parts": [{"text": f"word {n}"}], "role": "user"}


def _responses(n: int) -> Row:
    return {"role": "user", "content": [{"type": "input_text", "text": f"word {n}"}]}


def _opencode(n: int) -> Row:
    part = {"id": f"p{n}", "type": "text", "text": f"word {n}"}
    return {"info": {"id": f"m{n}", "role": "user", "sessionID": "ses_1"}, "parts": [part]}


CASES = {
    "codex": (_codex, {"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}}),
    "copilot-cli": (_copilot, {"type": "session.start", "data": {"sessionId": "s"}, "id": "0"}),
    "gemini-cli": (_gemini, {"sessionId": "s", "projectHash": "p", "startTime": "t"}),
    "pi": (_pi, {"timestamp": "t", "type": "session", "id": "s", "cwd": "/"}),
    "openhands": (_openhands, _openhands(0)),
    "openai-chat": (_chat, {"role": "tool", "tool_call_id": "c", "content": "x"}),
    "langchain": (_langchain, {"type": "system", "data": {"content": "s"}}),
    "gemini-contents": (_gemini_contents, _gemini_contents(0)),
    "openai-responses": (_responses, _responses(0)),
    "opencode": (_opencode, _opencode(0)),
}


def words(data: bytes) -> set[str]:
    texts = {part.text() for message in read_bytes(data).messages for part in message.parts}
    return {text for text in texts if text.startswith("word")} - {"word 0"}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("cut", [5, 20, -3])
def test_the_record_behind_one_that_was_cut_is_read_in_every_format(name: str, cut: int) -> None:
    make, head = CASES[name]
    rows = [json.dumps(row).encode() for row in (head, *(make(n) for n in range(1, 5)))]
    data = b"\n".join([*rows[:3], rows[3][:cut] + rows[4], *rows[1:2], b""])
    assert read_bytes(data).format == name
    assert words(data) == {"word 1", "word 2", "word 4"}
    assert words(recap.repair(data).data) == {"word 1", "word 2", "word 4"}


@pytest.mark.parametrize("name", CASES)
def test_a_part_of_a_record_that_was_cut_is_no_record(name: str) -> None:
    make, head = CASES[name]
    rows = [json.dumps(row).encode() for row in (head, *(make(n) for n in range(1, 4)))]
    whole = b"\n".join([*rows[:3], b""])
    for cut in range(1, len(rows[3]), 3):
        data = b"\n".join([*rows[:3], rows[3][cut:], b""])
        assert words(data) == words(whole)


def test_every_format_with_records_a_line_knows_them() -> None:
    documents = {"claude-web", "aider", "claude-code"}
    claude = next(each.is_record for each in FORMATS if each.name == "claude-code")
    assert {each.name for each in FORMATS if each.is_record is claude} == documents
