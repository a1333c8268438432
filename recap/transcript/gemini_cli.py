"""Reader of Gemini CLI sessions, one document or one record a line. Contexts go out as OpenAI chat.

The newer files are a journal: a message is written anew whenever it changes, ``$rewindTo`` takes back
a message and all after it, ``$set`` with ``messages`` is the model's new context after a compression.
What a new context does not hold stays selectable as history.

A call and its result stand in one record, so a text after it is a new request, never steering.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from recap.errors import counted
from recap.transcript.contexts import is_copy, replaced
from recap.transcript.cut import whole_elements
from recap.transcript.events import (
    Body,
    body_at,
    body_of,
    read_events,
    string,
    transcript_of_log,
)
from recap.transcript.gemini_parts import answer_messages, user_messages
from recap.transcript.items import UNREADABLE, Fields
from recap.transcript.lines import Report, elements, holding, members
from recap.transcript.model import Message, Raw, Role, Slice, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from recap.transcript.sample import Sample
    from recap.transcript.sources import Sized

ROLES: Mapping[str, Role] = {"user": "user", "gemini": "assistant"}
"""Types of messages the model sees; others are notes of the client."""

HEAD_BYTES = 4096

_HEAD = re.compile(r'\ufeff?\s*\{\s*"sessionId"\s*:\s*"(?P<id>[^"\\]*)",\s*"projectHash"\s*:')

Key: TypeAlias = tuple[str, ...]
"""What is equal in all versions of a message: Gemini writes it anew whenever it changes."""

IS_RECORD = holding(
    ("id", "timestamp", "type"), ("sessionId", "projectHash"), ("$set",), ("$rewindTo",)
)


def detect(sample: Sample) -> str | None:
    """Return what shows that a sample is a session, whole or cut off; None if it is none."""
    heads = [record for _, record in sample.records[:1]]
    for head in (*heads, sample.document):
        if isinstance(head, dict) and "sessionId" in head and "projectHash" in head:
            return "sessionId with projectHash"
    is_cut = sample.document is None and not heads and _HEAD.match(sample.head)
    return "sessionId with projectHash in a document that is cut off" if is_cut else None


def read(source: Sized, document: Slice | None = None) -> Transcript:
    """Return a session.

    Args:
        source: The file.
        document: Handle on the one JSON value it holds; None where it holds several or none.

    Raises:
        InputError: The file lost bytes while it was read.
    """
    chat = _Chat(source)
    fields = members(document) if document else {}
    if "messages" in fields:
        chat.take_document(fields)
        return chat.transcript()
    chat.take_lines()
    if not chat.session_id and not chat.live:
        cut = _Chat(source)
        if cut.take_cut_document():
            return cut.transcript()
    return chat.transcript()


class _Chat:
    """State of one pass over a session."""

    def __init__(self, source: Sized) -> None:
        self.source = source
        self.report = Report()
        self.live: dict[Key, list[Message]] = {}
        self.archived: list[Message] = []
        self.session_id = ""

    def take_document(self, fields: Mapping[str, Raw]) -> None:
        """Take a whole document."""
        session_id = fields["sessionId"].load() if "sessionId" in fields else ""
        self.session_id = session_id if isinstance(session_id, str) else ""
        for number, raw in enumerate(elements(fields["messages"]), 1):
            if isinstance(raw, Slice):
                self._take_element(raw.start, raw.end, number)

    def take_cut_document(self) -> bool:
        """Take what is whole of a document that is cut off; False where it is none."""
        data = self.source.read(0, self.source.size)
        head = _HEAD.match(data[:HEAD_BYTES].decode("utf-8", "replace"))
        if head is None:
            return False
        self.session_id = head["id"]
        spans = whole_elements(data, "messages")
        for number, (start, end) in enumerate(spans, 1):
            self._take_element(start, end, number)
        detail = f"the document is cut off; {len(spans):,} whole messages are read"
        self.report.add("cut-document", detail)
        return True

    def _take_element(self, start: int, end: int, number: int) -> None:
        self.report.counts["lines"] = number
        body = body_at(self.source, start, end, number, self.report)
        if body is not None:
            self.live[(str(number),)] = self._messages(body, number)

    def take_lines(self) -> None:
        """Take the records of a journal."""
        for record in read_events(self.source, self.report, IS_RECORD):
            body = body_of(self.source, record, "", self.report)
            if body is None:
                continue
            fields = body.fields
            if isinstance(target := fields.get("$rewindTo"), str):
                self._rewind(target, record.line)
            elif isinstance(fields.get("id"), str):
                self.live[_key(fields)] = self._messages(body, record.line)
            else:
                self._set(body, record.line)

    def _set(self, body: Body, line: int) -> None:
        """Take fields of the session; with messages among them, the model's new context."""
        raw: Raw = body.raw
        fields = body.fields
        if isinstance(fields.get("$set"), dict):
            raw, fields = members(raw)["$set"], fields["$set"]
        session_id = fields.get("sessionId")
        if isinstance(session_id, str):
            self.session_id = session_id
        messages = fields.get("messages")
        if not isinstance(messages, list) or not messages:
            return  # an empty context means the file as it is, also to the client
        context: dict[Key, list[Message]] = {}
        for each in elements(members(raw)["messages"]):
            value = each.load()
            if isinstance(each, Slice) and isinstance(value, dict):
                context[_key(value)] = self._messages(Body(each, value), line)
        before = [*self.archived, *_flat(self.live)]
        self.archived, live = replaced(before, list(_flat(context)))
        rest = deque(live)
        self.live = {
            key: [rest.popleft() for message in held if rest and is_copy(rest[0], message)]
            for key, held in context.items()
        }
        self.report.counts["compactions"] += bool(before)

    def _rewind(self, target: str, line: int) -> None:
        keys = list(self.live)
        start = next((at for at, key in enumerate(keys) if key[0] == target), -1)
        if start < 0:
            detail = "the message to go back to is not in the log; nothing is taken back"
            self.report.add("unknown-rewind", detail, line, "warning")
            return
        for key in keys[start:]:
            del self.live[key]
        count = len(keys) - start
        self.report.counts["rewound_messages"] += count
        detail = f"left out: {counted(count, 'message')} taken back"
        self.report.add("rewound", detail, line, "note")

    def _messages(self, body: Body, line: int) -> list[Message]:
        role = ROLES.get(string(body.fields, "type"))
        if role is None:
            self.report.counts["notes"] += 1
            return []
        try:
            return (
                user_messages(body, line)
                if role == "user"
                else answer_messages(body, line, self.report)
            )
        except UNREADABLE:
            self.report.add("unreadable-message", "this message cannot be read", line)
            return []

    def transcript(self) -> Transcript:
        """Return the session that was read."""
        messages = [*self.archived, *_flat(self.live)]
        return transcript_of_log("gemini-cli", self.source, self.report, messages, self.session_id)


def _flat(turns: Mapping[Key, Sequence[Message]]) -> Iterator[Message]:
    return (message for messages in turns.values() for message in messages)


def _key(fields: Fields) -> Key:
    return tuple(string(fields, name) for name in ("id", "type", "timestamp"))
