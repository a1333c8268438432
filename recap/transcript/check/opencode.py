"""The rules of OpenCode's messages: what its client cannot send, or would lose when it loads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recap.transcript.model import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.check.rules import Report

Fields = dict[str, Json]

ROLES = ("user", "assistant")
STATUSES = ("pending", "running", "completed", "error")
OWNER: Mapping[str, str] = {
    "file": "user",
    "compaction": "user",
    "subtask": "user",
    "reasoning": "assistant",
    "tool": "assistant",
}
"""Type of a part -> the only role for which the client sends it."""

STRINGS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "reasoning": ("text",),
    "file": ("mime", "url"),
}
"""Type of a part -> the strings it needs; unknown types pass."""


def check_opencode(document: Mapping[str, Json], messages: Sequence[Json], report: Report) -> None:
    """Report what the client would refuse or lose; the session around the list has no rules here."""
    del document
    session = _Session(report)
    for line, message in enumerate(messages, 1):
        info = message.get("info") if isinstance(message, dict) else None
        if not isinstance(info, dict) or not isinstance(message.get("parts"), list):
            report.add("not-a-message", line)
        elif info.get("role") not in ROLES:
            report.add("unknown-role", line)
        else:
            session.add(line, info, message["parts"])


@dataclass(slots=True)
class _Session:
    """Follows a list message by message."""

    report: Report
    _line: int = 0
    _number: int = 0
    _message_ids: set[str] = field(default_factory=set)
    _part_ids: set[str] = field(default_factory=set)
    _call_ids: set[str] = field(default_factory=set)  # of the message

    def add(self, line: int, info: Fields, parts: Sequence[Json]) -> None:
        """Take the next message."""
        self._line = line
        self._call_ids = set()
        if _repeats(info.get("id"), self._message_ids):
            self.report.add("duplicate-message-id", line)
        if not parts:
            self.report.add("empty-content", line)
        for number, part in enumerate(parts, 1):
            self._number = number
            self._check_part(part, info["role"])

    def _flag(self, code: str) -> None:
        self.report.add(code, self._line, block=self._number)

    def _check_part(self, part: Json, role: str) -> None:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            self._flag("malformed-part")
            return
        if _repeats(part.get("id"), self._part_ids):
            self._flag("duplicate-part-id")
        if OWNER.get(kind, role) != role:
            self._flag("wrong-role")
        elif not all(isinstance(part.get(key), str) for key in STRINGS.get(kind, ())):
            self._flag("malformed-part")
        elif kind == "text" and not part["text"].strip() and not part.get("ignored"):
            self._flag("blank-text")
        elif kind == "tool":
            self._check_tool(part)

    def _check_tool(self, part: Fields) -> None:
        call_id, name, state = part.get("callID"), part.get("tool"), part.get("state")
        if not isinstance(call_id, str) or not call_id:
            self._flag("call-id")
        elif _repeats(call_id, self._call_ids):
            self._flag("duplicate-call-id")
        if not isinstance(name, str) or not name:
            self._flag("call-name")
        if not isinstance(state, dict):
            self._flag("malformed-part")
            return
        if not isinstance(state.get("input"), dict):
            self._flag("call-input")
        status = state.get("status")
        if status not in STATUSES:
            self._flag("tool-status")
        else:
            _STATES[status](self, state)

    def _check_open(self, state: Fields) -> None:
        self._flag("unanswered-call")

    def _check_completed(self, state: Fields) -> None:
        if not isinstance(state.get("output"), str):
            self._flag("no-output")
        if not isinstance(state.get("time"), dict):
            self._flag("no-time")

    def _check_error(self, state: Fields) -> None:
        if not isinstance(state.get("error"), str):
            self._flag("no-error")


_STATES: Mapping[str, Callable[[_Session, Fields], None]] = {
    "pending": _Session._check_open,
    "running": _Session._check_open,
    "completed": _Session._check_completed,
    "error": _Session._check_error,
}


def _repeats(uid: Json, seen: set[str]) -> bool:
    """Return True for an id seen before; note it."""
    if not isinstance(uid, str):
        return False
    is_repeated = uid in seen
    seen.add(uid)
    return is_repeated
