"""What a person wrote in agents' logs: JSON lines, and the markdown of Aider."""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tests.e2e.raw_words import Said, Session, human, lines_session, texts_of, words_in

if TYPE_CHECKING:
    from collections.abc import Iterable


def records(data: bytes) -> list[tuple[int, dict[str, Any]]]:
    """Return the parseable lines with their numbers; a cut-off head of a glued line is skipped."""
    lines = []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            record = json.loads(line)
        except ValueError:
            at = max(line.rfind(b'{"type":'), line.rfind(b'{"parentUuid":'))
            try:
                record = json.loads(line[at:]) if at > 0 else None
            except ValueError:
                record = None
        if isinstance(record, dict):
            lines.append((number, record))
    return lines


def claude_said(lines: Iterable[tuple[int, dict[str, Any]]]) -> list[Said]:
    """Return what the person typed in Claude Code's lines, side chains apart."""
    users = [(number, record) for number, record in lines if record.get("type") == "user"]
    is_agent = all(record.get("isSidechain") for _, record in users)  # a sub-agent's own file
    said = []
    for number, record in users:
        if record.get("isSidechain") and not is_agent:
            continue
        if record.get("isMeta") or record.get("isCompactSummary"):
            continue
        message = record.get("message") or {}
        said += [Said(number, words) for words in words_in(message.get("content"))]
    return said


def claude_code(data: bytes) -> Session:
    """Return a session of Claude Code."""
    return lines_session(data, claude_said(records(data)))


def codex(data: bytes) -> Session:
    """Return a session of Codex: its events name the requests, in older files its items hold them."""
    lines = [(at, record["type"], record["payload"]) for at, record in records(data)]
    events = [
        Said(at, payload["message"])
        for at, kind, payload in lines
        if kind == "event_msg" and payload["type"] == "user_message"
    ]
    items = [
        Said(at, words)
        for at, kind, payload in lines
        if kind == "response_item" and payload.get("role") == "user"
        for words in map(human, texts_of(payload["content"]))
        if words
    ]
    return lines_session(data, events or items)


def copilot_cli(data: bytes) -> Session:
    """Return a session of Copilot CLI."""
    said = [
        Said(at, record["data"]["content"])
        for at, record in records(data)
        if record["type"] == "user.message"
    ]
    return lines_session(data, said)


def gemini_cli(data: bytes) -> Session:
    """Return a session of Gemini CLI with a record a line."""
    said = [
        Said(at, words)
        for at, record in records(data)
        if record.get("type") == "user"
        for words in texts_of(record["content"])
    ]
    return lines_session(data, said)


def pi(data: bytes) -> Session:
    """Return a session of pi."""
    said = [
        Said(at, words)
        for at, record in records(data)
        if record["type"] == "message" and record["message"]["role"] == "user"
        for words in texts_of(record["message"]["content"])
    ]
    return lines_session(data, said)


def aider(data: bytes) -> Session:
    """Return the sessions of Aider's history: runs of ``#### `` lines but for bare commands."""
    said = []
    lines = enumerate(data.decode().split("\n"), 1)
    for is_prompt, run in groupby(lines, lambda line: line[1].startswith("#### ")):
        numbered = list(run)
        words = "\n".join(line.removeprefix("#### ").removesuffix("  ") for _, line in numbered)
        if is_prompt and not re.fullmatch(r"/[\w-]+", words):
            said.append(Said(numbered[-1][0], words))
    return lines_session(data, said)
