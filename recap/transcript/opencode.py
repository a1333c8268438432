"""Reader of OpenCode exports, and of lists of their messages (info and parts).

A call and its result are one part there. Here they are two, in an assistant message and a tool message
that share the vendor's message; the writer makes one of them again.

What OpenCode does not send to the model is no part here: steps, patches, texts it ignores, files that
stand in a text of their own. It goes out with a message that is kept whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recap.transcript.authors import mark_steering
from recap.transcript.items import (
    Fields,
    dialect_of,
    items_of,
    read_items,
    transcript_of,
)
from recap.transcript.lines import Report, elements, members
from recap.transcript.model import (
    Envelope,
    Json,
    Message,
    Part,
    Raw,
    Role,
    Transcript,
)
from recap.transcript.opencode_parts import Parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}

GOES_ON = ("tool-calls", "unknown")
"""Values of ``finish`` after which the agent's loop runs on."""


def detect(document: Json) -> str | None:
    """Return what shows that the document is an export or a list of messages; None if not."""
    dialect, evidence = dialect_of(document)
    if dialect == "opencode":
        return evidence
    info = document.get("info") if isinstance(document, dict) else None
    session_id = info.get("id") if isinstance(info, dict) else None
    is_session = isinstance(session_id, str) and session_id.startswith("ses_")
    return "a session id ses_" if is_session else None


def read(document: Raw) -> Transcript:
    """Return the transcript of an export, or of a list of its messages."""
    report = Report()
    items, fields = items_of(document)
    reader = _Reader()
    read_items(items, reader.read_message, report)
    info = fields["info"].load() if "info" in fields else {}
    session_id = info.get("id") if isinstance(info, dict) else ""
    transcript = transcript_of("opencode", "opencode", reader.live_last(), items, report)
    counts = {name: count for name, count in sorted(report.counts.items()) if count}
    return replace(
        transcript,
        session_id=session_id if isinstance(session_id, str) else "",
        counts=counts,
    )


class _Reader:
    """Reads messages in order. Ids may be blanked out and repeat: only positions count."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.stops = [0]  # indices of messages before which a loop had ended
        self.starts: dict[str, int] = {}  # id of a vendor's message -> index of its first message
        self.compactions: list[tuple[str, int, Json]] = []  # (id, index, id of the tail kept)
        self.live_start = 0

    def live_last(self) -> list[Message]:
        """Return the messages with steering marked, those before a native compaction inactive."""
        ends = [*self.stops[1:], len(self.messages)]
        runs = zip(self.stops, ends, strict=True)
        marked = [
            message for start, end in runs for message in mark_steering(self.messages[start:end])
        ]
        return [
            replace(message, is_active=index >= self.live_start)
            for index, message in enumerate(marked)
        ]

    def read_message(
        self, raw: Raw, fields: Fields, line: int, report: Report
    ) -> Sequence[Message]:
        info = fields.get("info")
        info = info if isinstance(info, dict) else {}
        name = info.get("role")
        role = ROLES.get(name) if isinstance(name, str) else None
        if role is None:
            detail = "The message has no role of this format; it was left out."
            report.add("unknown-role", detail, line)
            return []
        handle = members(raw).get("parts")
        values = handle.load() if handle is not None else None
        if handle is None or not isinstance(values, list):
            report.add("no-content", "The message has no list of parts.", line)
            return []
        if role == "assistant" and _is_unsent(info, values):
            report.counts["failed_messages"] += 1
            self.stops.append(len(self.messages))
            return []
        parts = Parts(role, values, line, report)
        for each, value in zip(elements(handle), values, strict=True):
            parts.take(each, value)
        self._add(raw, info, parts, line)
        self._compact(info, values)
        return []

    def _add(self, raw: Raw, info: Fields, parts: Parts, line: int) -> None:
        size = len(parts.found) + len(parts.results) + parts.flaws
        envelope = Envelope(raw, size, "opencode")
        model, uid = info.get("modelID"), info.get("id")
        if isinstance(uid, str):
            self.starts[uid] = len(self.messages)
        groups: list[tuple[Role, list[Part]]] = [(parts.role, parts.found)]
        if parts.results:
            groups.append(("tool", parts.results))
        for role, group in groups:
            self.messages.append(
                Message(
                    role,
                    tuple(group),
                    line,
                    envelope,
                    model=model if isinstance(model, str) else "",
                    uid=uid if isinstance(uid, str) else "",
                )
            )
        if parts.role == "assistant" and info.get("finish") not in (None, *GOES_ON):
            self.stops.append(len(self.messages))

    def _compact(self, info: Fields, values: Sequence[Json]) -> None:
        """Note a native compaction: a user's part asks for it, the summary completes it."""
        at = self.starts.get(_text(info, "id"), len(self.messages))
        if info["role"] == "user":
            for value in values:
                if isinstance(value, dict) and value.get("type") == "compaction":
                    self.compactions.append((_text(info, "id"), at, value.get("tail_start_id")))
        elif info.get("summary") is True and info.get("finish") and not info.get("error"):
            parent = _text(info, "parentID")
            named = [each for each in self.compactions if each[0] == parent]
            for _, start, tail in (named or self.compactions)[-1:]:
                kept = self.starts.get(tail, start) if isinstance(tail, str) else start
                self.live_start = max(self.live_start, min(kept, start))


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _is_unsent(info: Fields, values: Sequence[Json]) -> bool:
    """Return True for a failed answer that OpenCode leaves out: all but one aborted on its way."""
    error = info.get("error")
    if not error:
        return False
    is_aborted = isinstance(error, dict) and error.get("name") == "MessageAbortedError"
    said = (value.get("type") for value in values if isinstance(value, dict))
    return not (is_aborted and any(kind not in ("step-start", "reasoning") for kind in said))
