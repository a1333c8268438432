"""Claude Code logs written by hand: one function a line, in the shape the client writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from recap.transcript.formats import read_bytes

if TYPE_CHECKING:
    from recap.transcript.model import Message, Transcript

Line = dict[str, Any]


def node(kind: str, uuid: str, parent: str | None, **more: Any) -> Line:
    """Return a line of the chain."""
    return {"parentUuid": parent, "sessionId": "s1", "type": kind, "uuid": uuid, **more}


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> Line:
    """Return what the person, or a tool, said."""
    return node("user", uuid, parent, message={"role": "user", "content": content}, **more)


def agent(uuid: str, parent: str | None, *blocks: Line, id: str = "", **more: Any) -> Line:
    """Return a line of an assistant message; its id is the line's own unless given."""
    message = {"id": id or f"msg_{uuid}", "role": "assistant", "model": "m1", "content": blocks}
    return node("assistant", uuid, parent, message=message, **more)


def said(text: str) -> Line:
    """Return a text block."""
    return {"type": "text", "text": text}


def use(call_id: str, **arguments: Any) -> Line:
    """Return a tool call."""
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": arguments}


def result(call_id: str, content: Any = "done", **more: Any) -> Line:
    """Return a tool result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def answer(uuid: str, parent: str | None, call_id: str, *blocks: Line, **more: Any) -> Line:
    """Return a user line with the result of a call, and what else it holds."""
    return user(uuid, parent, [result(call_id, f"result of {call_id}"), *blocks], **more)


def boundary(uuid: str, logical_parent: str | None, **metadata: Any) -> Line:
    """Return a native compaction boundary."""
    return node(
        "system", uuid, None, subtype="compact_boundary", logicalParentUuid=logical_parent,
        compactMetadata={"trigger": "auto", "preTokens": 1000, **metadata},
    )  # fmt: skip


def summary(uuid: str, parent: str, text: str = "This session is being continued") -> Line:
    """Return the summary line after a boundary."""
    return user(uuid, parent, text, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def log(*lines: Line | bytes) -> bytes:
    """Return the bytes of a log; bytes stand for themselves."""
    return b"".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    )


def read(*lines: Line | bytes) -> Transcript:
    """Return the transcript of a log."""
    return read_bytes(log(*lines), format="claude-code")


def words(transcript: Transcript, *, active: bool | None = None) -> list[str]:
    """Return the texts of the parts in order: of all messages, or of the live ones or the others."""
    return [
        part.text()
        for message in transcript.messages
        if active is None or message.is_active == active
        for part in message.parts
        if part.kind != "call"
    ]


def authors(transcript: Transcript) -> list[str]:
    """Return the authors of the parts in order."""
    return [part.author for message in transcript.messages for part in message.parts]


def codes(transcript: Transcript) -> list[str]:
    """Return the codes of the findings."""
    return [finding.code for finding in transcript.findings]


def outline(transcript: Transcript) -> list[tuple[str, int]]:
    """Return the role and line of each message."""
    return [(message.role, message.line) for message in transcript.messages]


def only(transcript: Transcript) -> Message:
    """Return the one message of a transcript."""
    (message,) = transcript.messages
    return message
