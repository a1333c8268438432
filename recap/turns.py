"""Recognition of sessions, turns and boundaries from the messages alone.

The one function used by library, command line, gateway and server: any process that sees the same
messages finds the same turn, and so the same selection. Hashes are unkeyed BLAKE2b of the canonical
form; keyed ones are for ids at rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from recap.transcript.model import HUMAN_AUTHORS, Json, Message, digest

ID_HEADERS = (
    "x-recap-session",
    "x-claude-code-session-id",
    "x-session-id",
    "session-id",
    "x-session-affinity",
)
"""Headers that name a session, first present wins; then the body's own fields."""

AGENT_HEADER = "x-claude-code-agent-id"


@dataclass(frozen=True, slots=True)
class Boundary:
    """A real user message: where a turn begins, or where the person steered an open one.

    Attributes:
        message: Index of the message.
        turn_key: 32 hex digits: hash of the canonical prefix up to and including it.
        is_steering: It stands in an open tool loop: a new turn key, but no new selection.
        before: Hash of the canonical prefix before it, in hex; "" where there is none.
    """

    message: int
    turn_key: str
    is_steering: bool
    before: str = ""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """What names a session: an id alone never does, since side calls and sub-agents share it.

    Attributes:
        tenant: Whose session it is, "" for a single user.
        id: The client's session id, "" where it sends none.
        agent: The client's sub-agent id, "" for the main agent.
        root: 32 hex digits: hash of the canonical messages up to the first real user message.
    """

    tenant: str
    id: str
    agent: str
    root: str


def is_real_user(message: Message) -> bool:
    """Return True for a user message with at least one part a person made."""
    return message.role == "user" and any(
        part.author in HUMAN_AUTHORS and not part.is_blank for part in message.parts
    )


def is_steering(message: Message) -> bool:
    """Return True when all a person's parts of the message were written into an open tool loop."""
    authors = {part.author for part in message.parts if part.author in HUMAN_AUTHORS}
    return authors == {"steering"}


def chain(messages: Sequence[Message]) -> list[bytes]:
    """Return, for each message, the hash of the canonical prefix that ends with it.

    System and developer messages are no part of the canonical form and repeat the hash before them.
    Thinking, cache marks and item ids are left out (``Part.digest`` holds none of them).
    """
    hashes = []
    current = b""
    for message in messages:
        if message.role != "system":
            current = digest(current, message.role, *(p.digest for p in message.parts if p.digest))
        hashes.append(current)
    return hashes


def boundaries(messages: Sequence[Message]) -> tuple[Boundary, ...]:
    """Return every real user message with its turn key, in order."""
    prefixes = [b"", *chain(messages)]
    return tuple(
        Boundary(index, prefixes[index + 1].hex(), is_steering(message), prefixes[index].hex())
        for index, message in enumerate(messages)
        if is_real_user(message)
    )


def current_boundary(found: Sequence[Boundary]) -> Boundary | None:
    """Return the boundary a selection is keyed by: the last one that is not steering."""
    return next((b for b in reversed(found) if not b.is_steering), None)


def session_key(
    messages: Sequence[Message],
    headers: Mapping[str, str] | None = None,
    body: Mapping[str, Json] | None = None,
    *,
    tenant: str = "",
    found: Sequence[Boundary] | None = None,
) -> SessionKey:
    """Return the key of the session that ``messages`` belong to.

    Args:
        messages: Canonical messages of one request or transcript.
        headers: HTTP headers of the request; names are matched without regard to case.
        body: The request's other fields (``prompt_cache_key``, ``metadata``).
        tenant: Whose session it is.
        found: The boundaries of ``messages``, where they are known.
    """
    lowered = {name.lower(): value for name, value in (headers or {}).items()}
    if found is None:
        found = boundaries(messages)
    root = found[0].turn_key if found else ""
    return SessionKey(tenant, _client_id(lowered, body or {}), lowered.get(AGENT_HEADER, ""), root)


def selection_seed(session: SessionKey, turn_key: str) -> bytes:
    """Return the 16-byte seed of a turn's selection: equal in every process and computer."""
    return digest(session.tenant, session.id, session.agent, session.root, turn_key)


def _client_id(headers: Mapping[str, str], body: Mapping[str, Json]) -> str:
    for name in ID_HEADERS:
        if headers.get(name):
            return headers[name]
    cache_key = body.get("prompt_cache_key")
    if isinstance(cache_key, str) and cache_key:
        return cache_key
    metadata = body.get("metadata")
    return _user_id_session(metadata.get("user_id")) if isinstance(metadata, Mapping) else ""


def _user_id_session(user_id: Json) -> str:
    """Return the session in ``metadata.user_id``: JSON in a string, or ``..session_<uuid>``."""
    if not isinstance(user_id, str):
        return ""
    try:
        fields = msgspec.json.decode(user_id)
    except (ValueError, RecursionError):
        return user_id.rpartition("session_")[2] if "session_" in user_id else ""
    session = fields.get("session_id") if isinstance(fields, dict) else None
    return session if isinstance(session, str) else ""
