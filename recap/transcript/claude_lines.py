"""Lines of Claude Code logs: the fields that are read, and what tells such a line from others."""

from __future__ import annotations

from typing import Any

import msgspec

from recap.transcript.links import Compaction, NodeKind
from recap.transcript.model import Json, decode

KINDS: dict[str, NodeKind] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "progress": "link",
    "attachment": "link",
}
"""Types of the lines that are links of the chain."""

NULL = msgspec.Raw(b"null")


class Line(msgspec.Struct, gc=False):
    """The fields of a line that are read; their names are the client's. Any of them may be odd."""

    type: Any = None
    uuid: Any = None
    parentUuid: Any = ""  # noqa: N815
    logicalParentUuid: Any = None  # noqa: N815
    sourceToolAssistantUUID: Any = None  # noqa: N815
    sessionId: Any = None  # noqa: N815
    agentId: Any = None  # noqa: N815
    subtype: Any = None
    isSidechain: Any = None  # noqa: N815
    isMeta: Any = None  # noqa: N815
    isCompactSummary: Any = None  # noqa: N815
    isApiErrorMessage: Any = None  # noqa: N815
    message: msgspec.Raw = NULL
    attachment: msgspec.Raw = NULL
    compactMetadata: msgspec.Raw = NULL  # noqa: N815


class Body(msgspec.Struct, gc=False):
    """The fields of a line's message that are read."""

    id: Any = None
    model: Any = None
    content: msgspec.Raw = NULL


BODY_DECODER = msgspec.json.Decoder(Body)
DECODER = msgspec.json.Decoder(Line)


def detect(record: Json) -> str | None:
    """Return what shows that a decoded record is a line of this format; None if it is not."""
    if not isinstance(record, dict):
        return None
    kind = record.get("type")
    if kind in ("user", "assistant") and isinstance(record.get("message"), dict):
        if "uuid" in record or "parentUuid" in record or "sessionId" in record:
            return f"type {kind} with message and uuid"
        return f"type {kind} with message"
    keys = _METADATA.get(kind, ()) if isinstance(kind, str) else ()
    return f"type {kind} with {keys[0]}" if keys and all(key in record for key in keys) else None


_METADATA = {
    "system": ("uuid", "parentUuid"),
    "progress": ("uuid", "parentUuid"),
    "attachment": ("uuid", "attachment"),
    "summary": ("leafUuid", "summary"),
    "file-history-snapshot": ("messageId", "snapshot"),
    "file-history-delta": ("messageId",),
    "queue-operation": ("operation", "sessionId"),
    "last-prompt": ("sessionId",),
    "mode": ("sessionId", "mode"),
    "permission-mode": ("sessionId", "permissionMode"),
    "ai-title": ("sessionId",),
    "custom-title": ("sessionId",),
    "agent-name": ("sessionId",),
    "pr-link": ("sessionId",),
    "bridge-session": ("sessionId",),
    "worktree-state": ("sessionId",),
}
"""Types of other lines, and the keys that tell them from another format's of the same name."""


def text_of(value: Json) -> str:
    """Return a string as it is, "" for anything else."""
    return value if isinstance(value, str) else ""


def parent_of(value: Json) -> str | None:
    """Return the parent's uuid; None for a root, "" where it is not stated."""
    return None if value is None else text_of(value)


def session_of(line: Line) -> str:
    """Return the session's id. A sub-agent's lines carry its parent's, so its own is added."""
    session, agent = text_of(line.sessionId), text_of(line.agentId)
    return f"{session}/{agent}" if agent and line.isSidechain is True else session


def compaction_of(line: Line) -> Compaction:
    """Return what a native compaction boundary says."""
    try:
        fields = decode(bytes(line.compactMetadata))
    except ValueError:
        fields = None
    segment, listed = (
        found if isinstance(fields, dict) and isinstance(found := fields.get(key), dict) else {}
        for key in ("preservedSegment", "preservedMessages")
    )
    uuids = listed.get("uuids")
    return Compaction(
        logical_parent=text_of(line.logicalParentUuid),
        anchor=text_of(listed.get("anchorUuid")) or text_of(segment.get("anchorUuid")),
        preserved=tuple(map(text_of, uuids)) if isinstance(uuids, list) else (),
        head=text_of(segment.get("headUuid")),
        tail=text_of(segment.get("tailUuid")),
    )
