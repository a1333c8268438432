"""Lines of made-up Claude Code logs, and a trim of them in memory."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from recap.cmv.options import TrimOptions
from recap.cmv.trim import trim
from recap.transcript.sources import ByteSource

if TYPE_CHECKING:
    from recap.cmv.report import TrimReport

Line = dict[str, Any]
LONG = "x" * 2000
EAGER = TrimOptions(keep_last=0, yes=True)
"""Trims all that may go, newest entries too."""


def node(kind: str, uuid: str, parent: str | None, **fields: Any) -> Line:
    return {
        "parentUuid": parent, "isSidechain": False, "type": kind, "uuid": uuid,
        "timestamp": "2026-01-01T00:00:00.000Z", "sessionId": "s", "version": "2.1.0", **fields,
    }  # fmt: skip


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> Line:
    return node("user", uuid, parent, message={"role": "user", "content": content}, **fields)


def agent(uuid: str, parent: str | None, *blocks: Any, id: str = "", **fields: Any) -> Line:
    message = {
        "id": id or f"m-{uuid}", "role": "assistant", "model": "claude", "content": list(blocks),
        "usage": {"input_tokens": 3, "output_tokens": 5},
    }  # fmt: skip
    return node("assistant", uuid, parent, message=message, **fields)


def said(text: str) -> Line:
    return {"type": "text", "text": text}


def thought(text: str = "hm") -> Line:
    return {"type": "thinking", "thinking": text, "signature": "sig"}


def use(id: str, name: str = "Bash", **arguments: Any) -> Line:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content: Any = LONG, **fields: Any) -> Line:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **fields}


def log(*lines: Any) -> bytes:
    """Return a log; a line given as bytes is taken as it is."""
    return b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )


def trimmed(data: bytes, options: TrimOptions = EAGER, **given: Any) -> tuple[bytes, TrimReport]:
    """Return the trimmed log and the report."""
    out = io.BytesIO()
    report = trim(ByteSource(data), out, options, **given)
    return out.getvalue(), report


def call(n: int, parent: str | None, content: Any = LONG, **arguments: Any) -> list[Line]:
    """Return a call and its result, ``a<n>`` and ``r<n>``."""
    return [
        agent(f"a{n}", parent, use(f"c{n}", **(arguments or {"command": "ls"}))),
        user(f"r{n}", f"a{n}", [result(f"c{n}", content)]),
    ]


def done(parent: str) -> Line:
    """Return a closing text."""
    return agent("end", parent, said("done"))
