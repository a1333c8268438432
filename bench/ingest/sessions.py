"""Files of made-up sessions of any size, one layout for each format that is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from bench.ingest import documents, logs
from bench.ingest.turns import turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from bench.ingest.turns import Turn

    Pieces = Callable[[Turn], Iterable[bytes]]

WRITE_BYTES = 1 << 20


class Layout(NamedTuple):
    """How a format lays out turns.

    Attributes:
        pieces: Gives the records, or elements, of a turn.
        head: Stands before the first piece.
        joint: Stands between two.
        tail: Stands after the last one.
    """

    pieces: Pieces
    head: bytes = b""
    joint: bytes = b"\n"
    tail: bytes = b"\n"


def _document(
    elements: Callable[[Turn], Iterable[documents.Record]], head: bytes = b"[", tail: bytes = b"]"
) -> Layout:
    def pieces(turn: Turn) -> Iterator[bytes]:
        return (json.dumps(each, ensure_ascii=False).encode() for each in elements(turn))

    return Layout(pieces, head, b",\n", tail)


LAYOUTS: Mapping[str, Layout] = {
    "claude-code": Layout(logs.claude_code),
    "claude-web": Layout(logs.claude_web, b'{"loglines": [', b",\n", b"]}"),
    "codex": Layout(logs.codex, b'{"type":"session_meta","payload":{"id":"s1","cwd":"/"}}\n'),
    "copilot-cli": Layout(logs.copilot_cli, b'{"type":"session.start","data":{"sessionId":"s"}}\n'),
    "gemini-cli": Layout(logs.gemini_cli, b'{"sessionId":"s1","projectHash":"h"}\n'),
    "pi": Layout(logs.pi, b'{"type":"session","id":"s1","cwd":"/"}\n'),
    "aider": Layout(logs.aider, b"# aider chat started at 2026-01-02 03:04:05\n\n"),
    "anthropic-messages": _document(documents.anthropic),
    "openai-chat": _document(documents.openai),
    "openai-responses": _document(documents.responses),
    "gemini-contents": _document(documents.gemini, b'{"contents": [', b"]}"),
    "langchain": _document(documents.langchain, b'{"messages": [', b"]}"),
    "opencode": _document(documents.opencode, b'{"info": {"id": "ses_1"}, "messages": [', b"]}"),
    "swe-together": _document(documents.swe_together, b'{"session_id": "s1", "messages": [', b"]}"),
    "swe-agent": _document(documents.swe_agent, b'{"trajectory": [], "history": [', b"]}"),
    "mini-swe-agent": _document(
        documents.mini_swe_agent, b'{"trajectory_format": "1", "messages": [', b"]}"
    ),
    "openhands": _document(documents.openhands),
}
"""Format -> how its sessions are laid out."""


def write_session(path: Path, layout: Layout, size: int) -> int:
    """Write a session of at least ``size`` bytes; return its number of turns."""
    held, held_bytes, written = [layout.head], len(layout.head), 0
    session = turns()
    joint = b""
    with path.open("wb") as file:
        for turn in session:
            for piece in layout.pieces(turn):
                held += (joint, piece)
                held_bytes += len(joint) + len(piece)
                joint = layout.joint
            is_done = written + held_bytes >= size
            if is_done or held_bytes >= WRITE_BYTES:
                written += file.write(b"".join(held))
                held, held_bytes = [], 0
            if is_done:
                file.write(layout.tail)
                return turn.number + 1
    raise AssertionError("turns have no end")
