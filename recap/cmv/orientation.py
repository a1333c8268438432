"""The orientation message of a branch: a line that the client delivers to the model like any other."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recap.cmv.index import Index
from recap.cmv.options import TrimOptions
from recap.errors import InputError, InvalidContextError
from recap.transcript.chain import chain_of
from recap.transcript.lines import Report
from recap.transcript.model import Json, decode, encode

if TYPE_CHECKING:
    from recap.transcript.links import Links, Parents
    from recap.transcript.sources import Sized

_COPIED = ("userType", "cwd", "version", "gitBranch", "slug")
"""Fields of the last line that say how things stand."""


def claude_line(source: Sized, text: str, session: str, now: float) -> bytes:
    """Return the line that follows the last one of a Claude Code conversation.

    Args:
        source: The log.
        text: What the line says.
        session: Id of the session.
        now: Unix time, seconds.

    Raises:
        InputError: The log holds no conversation.
    """
    last = _leaf_line(source)
    said = {name: last[name] for name in _COPIED if name in last}
    line: Json = {
        "parentUuid": last["uuid"],
        "isSidechain": False,
        **said,
        "sessionId": session,
        "type": "user",
        "message": {"role": "user", "content": text},
        "uuid": str(uuid.uuid4()),
        "timestamp": stamp(now),
    }
    return encode(line) + b"\n"


def codex_lines(text: str, now: float) -> list[bytes]:
    """Return the lines of a Codex rollout by which a person says something."""
    item = {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]
    }  # fmt: skip
    event = {"type": "user_message", "message": text, "images": []}
    lines = (("response_item", item), ("event_msg", event))
    return [
        encode({"timestamp": stamp(now), "type": kind, "payload": payload}) + b"\n"
        for kind, payload in lines
    ]


def demand_delivered(source: Sized, text: str) -> None:
    """Raise InvalidContextError unless a log's conversation ends with a line that says a text."""
    message = _leaf_line(source).get("message")
    if not isinstance(message, dict) or message.get("content") != text:
        raise InvalidContextError(
            "the orientation message would not reach the model; nothing was written, please report "
            "this"
        )


def stamp(now: float) -> str:
    """Return a time as agents write it."""
    moment = datetime.fromtimestamp(now, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _leaf_line(source: Sized) -> dict[str, Json]:
    """Return the line after which the client goes on: the last of the conversation in the file."""
    index = Index(source, TrimOptions()).read()
    leaf = _leaf(index.links, chain_of(index.links, Report()).parents)
    line = decode(index.line_at(leaf)) if leaf >= 0 else None
    if not isinstance(line, dict) or not isinstance(line.get("uuid"), str):
        raise InputError(
            f"{source.name}: holds no conversation that an orientation message could follow"
        )
    return line


def _leaf(links: Links, parents: Parents) -> int:
    spoken = [at for at in range(len(links)) if links.is_spoken(at) and not parents.repeated[at]]
    return next((at for at in reversed(spoken) if not parents.followed[at]), -1)
