"""Reader of pi's session logs, versions 1 to 3. Contexts go out as OpenAI chat messages.

Version 1 is a list of lines; later ones are a tree of ``id`` and ``parentId``, of which the session
is the walk from the last line to the root. After a native compaction the live context is its summary,
the entries from the first kept one on, and what came later.

``!command`` of the person is context beside the conversation, no request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recap.errors import counted
from recap.transcript.authors import author_in
from recap.transcript.contexts import archived
from recap.transcript.events import (
    Body,
    Session,
    body_of,
    message_of,
    read_events,
    text_of,
    transcript_of_log,
)
from recap.transcript.images import image_address, image_of
from recap.transcript.items import UNREADABLE, Fields, read_blocks
from recap.transcript.lines import Report, holding, members
from recap.transcript.parts import (
    call_part,
    image_part,
    other_part,
    result_part,
    text_part,
    thinking_part,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.transcript.events import Members
    from recap.transcript.lines import Record
    from recap.transcript.model import Author, Message, Part, Raw, Role, Transcript
    from recap.transcript.sample import Sample
    from recap.transcript.sources import Sized

ROLES: Mapping[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "toolResult": "tool",
    "bashExecution": "user",
    "custom": "user",
    "hookMessage": "user",
}

SUMMARIES = ("compaction", "branch_summary")
"""Types of the lines that hold a summary the client wrote."""

STOPPED = ("aborted", "error")
"""Reasons for which an answer ended that leave no tool loop open."""

IS_RECORD = holding(("type", "timestamp"))


def detect(sample: Sample) -> str | None:
    """Return what shows that a sample is a log of pi; None if it is none."""
    for line, record in sample.records[:1]:
        if record.get("type") == "session" and "id" in record and "cwd" in record:
            return f"line {line}: type session with id and cwd"
    return None


def read(source: Sized) -> Transcript:
    """Return the session of a log.

    Raises:
        InputError: The file lost bytes while it was read.
    """
    log = _Log(source)
    for record in read_events(source, log.report, IS_RECORD):
        log.take(record)
    return log.transcript()


@dataclass(slots=True)
class _Entry:
    """A line of the log.

    Attributes:
        line: 1-based line.
        uid: Its id, "" in version 1.
        parent: Id of the line before it in the tree; "" for a root or in version 1.
        message: What it holds of the conversation.
        is_stop: It ends the tool loop: the answer was aborted.
        kept: For a native compaction the first entry that it kept, by id or by index.
    """

    line: int
    uid: str
    parent: str
    message: Message | None = None
    is_stop: bool = False
    kept: str | int | None = None


class _Log:
    """State of one pass over a log."""

    def __init__(self, source: Sized) -> None:
        self.source = source
        self.report = Report()
        self.entries: list[_Entry] = []  # the session line too: version 1 counts it
        self.session_id = ""

    def take(self, record: Record[Members]) -> None:
        """Take one line."""
        kind = text_of(record, "type")
        entry = _Entry(record.line, text_of(record, "id"), text_of(record, "parentId"))
        self.entries.append(entry)
        if kind == "session":
            self.session_id = self.session_id or entry.uid
            entry.uid = ""
            return
        key = "message" if kind == "message" else ""
        if kind not in ("message", "custom_message", *SUMMARIES):
            self.report.counts["other_lines"] += 1
            return
        body = body_of(self.source, record, key, self.report)
        if body is not None:
            try:
                self._fill(entry, kind, body)
            except UNREADABLE:
                detail = "this message cannot be read"
                self.report.add("unreadable-message", detail, record.line)

    def _fill(self, entry: _Entry, kind: str, body: Body) -> None:
        raw, fields = body
        if kind in SUMMARIES:
            summary = fields.get("summary")
            if isinstance(summary, str):
                part = text_part(members(raw)["summary"], summary, "summary")
                entry.message = message_of("user", [part], entry.line, uid=entry.uid)
            if kind == "compaction":
                self.report.counts["compactions"] += 1
                entry.kept = _first_kept(fields)
            return
        name = "custom" if kind == "custom_message" else fields.get("role")
        role = ROLES.get(name) if isinstance(name, str) else None
        if role is None or not isinstance(name, str):
            self.report.add("unknown-role", "the message has no role of this format", entry.line)
            return
        model = fields.get("model")
        entry.message = message_of(
            role,
            self._parts(raw, fields, name, role, entry.line),
            entry.line,
            model=model if role == "assistant" and isinstance(model, str) else "",
            uid=entry.uid,
        )
        if role == "assistant" and fields.get("stopReason") in STOPPED:
            self.report.counts["aborted_answers"] += 1
            entry.is_stop = True

    def _parts(self, raw: Raw, fields: Fields, name: str, role: Role, line: int) -> list[Part]:
        if name == "toolResult":
            return [_result(raw, fields)]
        if name == "bashExecution":
            return self._command(raw, fields)
        handle, content = members(raw).get("content"), fields.get("content")
        parts: list[Part] = []
        if handle is not None and isinstance(content, str):
            parts = [text_part(handle, content, author_in(role, content))]
        elif handle is not None and isinstance(content, list):
            parts = read_blocks(handle, content, role, _read_block, line, self.report)[0]
        else:
            self.report.add("no-content", "the content is neither text nor a list", line)
        if name in ("user", "assistant"):
            return parts
        return [replace(part, author="injected") for part in parts]

    def _command(self, raw: Raw, fields: Fields) -> list[Part]:
        """Return a command the person ran and its output; none where the model never saw it."""
        if fields.get("excludeFromContext") is True:
            self.report.counts["excluded_commands"] += 1
            return []
        handles = members(raw)
        return [
            text_part(handles[key], fields[key], "local")
            for key in ("command", "output")
            if isinstance(fields.get(key), str) and fields[key]
        ]

    def transcript(self) -> Transcript:
        """Return the session the lines hold."""
        walk = self._walk()
        session = Session()
        for entry in walk:
            if entry.message is not None:
                session.add(entry.message)
            if entry.is_stop:
                session.stop()
        spoken = (entry for entry in walk if entry.message is not None)
        for entry, message in zip(spoken, session.steered(), strict=True):
            entry.message = message
        live = self._live(walk)
        is_live = {id(entry) for entry in live}
        old = archived(
            entry.message for entry in walk if entry.message and id(entry) not in is_live
        )
        messages = [*old, *(entry.message for entry in live if entry.message)]
        return transcript_of_log("pi", self.source, self.report, messages, self.session_id)

    def _live(self, walk: Sequence[_Entry]) -> Sequence[_Entry]:
        """Return the entries of the live context: the last compaction's summary stands first."""
        compactions = [place for place, entry in enumerate(walk) if entry.kept is not None]
        if not compactions:
            return walk
        at = compactions[-1]
        kept = walk[at].kept
        first = (
            self.entries[kept] if isinstance(kept, int) and 0 < kept < len(self.entries) else None
        )
        start = next((i for i in range(at) if walk[i] is first or walk[i].uid == kept), at)
        return [walk[at], *(e for e in walk[start:at] if e.kept is None), *walk[at + 1 :]]

    def _walk(self) -> list[_Entry]:
        """Return the entries of the session: all of them, or in a tree those on the way to the root."""
        if not any(entry.uid for entry in self.entries):
            return self.entries
        places = {entry.uid: place for place, entry in enumerate(self.entries) if entry.uid}
        walk: list[_Entry] = []
        seen: set[int] = set()
        at = len(self.entries) - 1
        while at >= 0 and at not in seen:
            seen.add(at)
            entry = self.entries[at]
            walk.append(entry)
            if entry.parent and entry.parent not in places:
                detail = "the line before it in the session is missing; the one above is taken"
                self.report.add("gap", detail, entry.line, "warning")
                at -= 1
            else:
                at = places.get(entry.parent, -1)
        self._report_rewound(seen)
        return walk[::-1]

    def _report_rewound(self, seen: set[int]) -> None:
        left = [e for i, e in enumerate(self.entries) if i not in seen and e.message is not None]
        if left:
            self.report.counts["rewound_messages"] += len(left)
            detail = f"left out: {counted(len(left), 'message')} of other branches"
            self.report.add("rewound", detail, left[0].line, "note")


def _first_kept(fields: Fields) -> str | int:
    for key in ("firstKeptEntryId", "firstKeptEntryIndex"):
        value = fields.get(key)
        if value and isinstance(value, str | int):
            return value
    return -1


def _read_block(raw: Raw, block: Fields, role: Role, media: Author) -> Part | None:
    kind = block["type"]
    if kind == "text":
        words = block.get("text")
        if not isinstance(words, str):
            return None
        return text_part(raw, words, author_in(role, words), path=("text",))
    if kind == "thinking":
        words = block.get("thinking")
        return thinking_part(
            raw,
            words if isinstance(words, str) else "",
            path=("thinking",),
            has_signature=bool(block.get("thinkingSignature")),
        )
    if kind == "toolCall":
        name, call_id = block.get("name"), block.get("id")
        if not isinstance(name, str) or not name:
            return None
        uid, arguments = call_id if isinstance(call_id, str) else "", block.get("arguments")
        sent = {"id": uid, "name": name, "arguments": arguments}
        return call_part(raw, name, uid, arguments, path=("arguments",), sent=sent)
    if kind == "image" and image_address(block):
        return image_part(raw, media, image_of(block))
    return other_part(raw, kind, media)


def _result(raw: Raw, fields: Fields) -> Part:
    call_id = fields.get("toolCallId")
    return result_part(
        raw,
        call_id if isinstance(call_id, str) else "",
        fields.get("content"),
        path=("content",),
        is_error=fields.get("isError") is True,
    )
