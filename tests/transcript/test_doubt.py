"""A format or dialect that is named and wrong is said to be so."""

from __future__ import annotations

import json
from typing import Any

import pytest

import recap
from recap.transcript.formats import read_bytes

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "a question " * 20},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c", "content": "a result " * 20},
]
LINE = {
    "type": "user", "uuid": "a", "parentUuid": None, "sessionId": "s",
    "message": {"role": "user", "content": "a question " * 20},
}  # fmt: skip


def doubts(transcript: recap.Transcript) -> list[str]:
    return [each.detail for each in transcript.findings if each.code == "other-format"]


@pytest.mark.parametrize("dialect", ["gemini", "langchain", "opencode"])
def test_a_wrong_dialect_is_doubted_and_the_better_one_is_named(dialect: str) -> None:
    (doubt,) = doubts(recap.read_messages(MESSAGES, dialect))
    assert "read as openai-chat it holds 4" in doubt


@pytest.mark.parametrize("dialect", ["openai", "auto", "anthropic"])
def test_a_dialect_that_reads_it_is_not_doubted(dialect: str) -> None:
    assert doubts(recap.read_messages(MESSAGES, dialect)) == []


@pytest.mark.parametrize("format", ["codex", "pi", "gemini-cli", "openai-chat", "langchain"])
def test_a_wrong_format_is_doubted(format: str) -> None:
    data = json.dumps(LINE).encode() + b"\n"
    (doubt,) = doubts(read_bytes(data, format=format))
    assert doubt.startswith(
        f"read as {format}, as asked, it holds 0 characters; read as claude-code"
    )
    assert doubts(read_bytes(data)) == doubts(read_bytes(data, format="claude-code")) == []


def test_what_no_format_knows_is_not_doubted() -> None:
    assert doubts(read_bytes(b'{"a": 1}\n', format="codex")) == []
