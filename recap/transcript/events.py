"""Logs with one event a line: what the readers of several agents' logs share.

First the fields of a line with exact handles on them, then the session they make: its messages in
file order, and the tool loops in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from recap.transcript.authors import mark_steering
from recap.transcript.lines import Record, Report, is_strict, read_records
from recap.transcript.model import (
    Dialect,
    Envelope,
    Json,
    Message,
    Part,
    Role,
    Slice,
    Transcript,
    decode,
)
from recap.transcript.spans import is_deep, locate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recap.transcript.items import Fields
    from recap.transcript.lines import RecordTest
    from recap.transcript.sources import Sized

Members: TypeAlias = dict[str, msgspec.Raw]
"""A line's members, undecoded."""

DECODER = msgspec.json.Decoder(Members)


class Body(NamedTuple):
    """An object of a line: the handle on it, and its decoded fields."""

    raw: Slice
    fields: Fields


def string(fields: Fields, key: str) -> str:
    """Return a string among decoded fields; "" for anything else."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def read_events(source: Sized, report: Report, is_record: RecordTest) -> Iterator[Record[Members]]:
    """Yield the lines that hold an object; others are counted."""
    for record in read_records(source, DECODER, report, is_record):
        if record.value is not None:
            yield record
        else:
            report.counts["odd_lines"] += 1
            report.add("odd-line", "this line is no JSON object", record.line, "note")


def text_of(record: Record[Members], key: str) -> str:
    """Return a string of a line; "" for anything else."""
    value = (record.value or {}).get(key)
    try:
        decoded = decode(bytes(value)) if value is not None else None
    except ValueError:
        decoded = None
    return decoded if isinstance(decoded, str) else ""


def body_of(source: Sized, record: Record[Members], key: str, report: Report) -> Body | None:
    """Return the object a line holds under ``key``; None, with a finding, where there is none.

    The line itself where ``key`` is "".
    """
    if not key:
        end = record.start + len(record.data)
        return body_at(source, record.start, end, record.line, report)
    value = (record.value or {}).get(key)
    if value is None:
        report.add("no-message", f"this line has no {key}", record.line)
        return None
    start = record.start + max(locate(record.data, value, 0), 0)
    return body_at(source, start, start + memoryview(value).nbytes, record.line, report)


def body_at(source: Sized, start: int, end: int, line: int, report: Report) -> Body | None:
    """Return the object that lies in a source; None, with a finding, where it is no object."""
    data = source.read(start, end)
    if is_deep(data):
        report.add("too-deep", "this message nests too deeply to be read", line)
        return None
    try:
        fields = decode(data)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        report.add("no-message", "this message is no JSON object", line)
        return None
    clean = is_strict(data)
    if not clean:
        detail = "it holds what JSON forbids; what goes out has it replaced"
        report.add("not-strict-json", detail, line, "warning")
    return Body(Slice(source, start, end, clean), fields)


def message_of(
    role: Role, parts: Iterable[Part], line: int, *, model: str = "", uid: Json = ""
) -> Message:
    """Return a message of a log; no vendor's list holds it in that form, so its envelope is empty."""
    held = tuple(parts)
    name = uid if isinstance(uid, str) else ""
    return Message(role, held, line, Envelope(None, len(held), "openai"), model=model, uid=name)


@dataclass(slots=True)
class Session:
    """The messages of a log in file order.

    Attributes:
        runs: Each message, as the pieces it was written in.
        stops: Indices of messages before which a tool loop, if one was open, had ended.
    """

    runs: list[list[Message]] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.runs)

    def add(self, message: Message, *, is_piece: bool = False) -> None:
        """Add a message; a piece belongs to the message right before it, if that is of its role."""
        before = self.runs[-1] if self.runs and self.stops[-1:] != [len(self)] else None
        if is_piece and before and before[0].role == message.role:
            before.append(message)
        else:
            self.runs.append([message])

    def stop(self) -> None:
        """Note that the person, or the client, ended the turn here."""
        self.stops.append(len(self))

    def cut(self, at: int) -> int:
        """Take away the messages from index ``at`` on; return their number."""
        count = len(self) - at
        del self.runs[at:]
        self.stops = [stop for stop in self.stops if stop < at] + [at]
        return count

    def messages(self) -> list[Message]:
        """Return the messages, pieces joined."""
        return [_joined(run) for run in self.runs]

    def steered(self, messages: Sequence[Message] | None = None) -> list[Message]:
        """Return the session's messages, or those given in their place, with steering marked.

        Each tool loop is looked at by itself.
        """
        messages = self.messages() if messages is None else messages
        ends = pairwise((0, *self.stops, len(messages)))
        return list(chain.from_iterable(mark_steering(messages[a:b]) for a, b in ends))


def _joined(run: Sequence[Message]) -> Message:
    first = run[0]
    if len(run) == 1:
        return first
    parts = tuple(part for piece in run for part in piece.parts)
    model = next((piece.model for piece in run if piece.model), "")
    uid = next((piece.uid for piece in run if piece.uid), "")
    return message_of(first.role, parts, first.line, model=model, uid=uid)


def transcript_of_log(
    format: str,
    source: Sized,
    report: Report,
    messages: Iterable[Message],
    session_id: str = "",
) -> Transcript:
    """Return the transcript of a log; messages without parts are left out."""
    dialect: Dialect = "openai"
    lines = report.counts.pop("lines", 0)
    return Transcript(
        format=format,
        dialect=dialect,
        messages=tuple(message for message in messages if message.parts),
        findings=report.sorted(),
        session_id=session_id,
        bytes_read=source.size,
        lines=lines,
        counts={name: count for name, count in sorted(report.counts.items()) if count},
    )
