"""Reader of Codex CLI rollouts. Contexts go out as OpenAI chat messages.

Content comes from ``response_item`` lines; ``event_msg`` repeats it for the screen, and is used for
two things: it says which user texts are requests, and where the person interrupted.

``compacted`` lines hold the model's new context. A message of it that stands in the log before (every
request does) is taken once: it moves from the old lines to its place in the new context, so that no
word is doubled and none is lost. What the new context does not hold stays selectable as history.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from recap.errors import counted
from recap.transcript.codex_items import read_item
from recap.transcript.codex_requests import judged
from recap.transcript.contexts import has_words, replaced
from recap.transcript.events import (
    Body,
    Session,
    body_of,
    message_of,
    read_events,
    string,
    text_of,
    transcript_of_log,
)
from recap.transcript.items import UNREADABLE
from recap.transcript.lines import Report, elements, holding, members
from recap.transcript.parts import text_part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.events import Members
    from recap.transcript.lines import Record
    from recap.transcript.model import Message, Transcript
    from recap.transcript.sample import Sample
    from recap.transcript.sources import Sized

LINES = frozenset(("session_meta", "turn_context", "response_item", "event_msg", "compacted"))
TASKS = frozenset(("task_started", "turn_started"))

IS_RECORD = holding(("type", "payload"))


def detect(sample: Sample) -> str | None:
    """Return what shows that a sample is a rollout; None if it is none."""
    for line, record in sample.records:
        kind = record.get("type")
        if isinstance(kind, str) and kind in LINES and isinstance(record.get("payload"), dict):
            return f"line {line}: type {kind} with payload"
    return None


def read(source: Sized) -> Transcript:
    """Return the session of a rollout.

    Raises:
        InputError: The file lost bytes while it was read.
    """
    rollout = _Rollout(source)
    for record in read_events(source, rollout.report, IS_RECORD):
        rollout.take(record)
    return rollout.transcript()


@dataclass(frozen=True, slots=True)
class _Compacted:
    """A native compaction after ``at`` messages, and the context it made."""

    at: int
    context: tuple[Message, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _Undone:
    """After ``at`` messages the person took back the last turns."""

    at: int
    turns: int
    line: int


class _Rollout:
    """State of one pass over a rollout."""

    def __init__(self, source: Sized) -> None:
        self.source = source
        self.report = Report()
        self.session = Session()
        self.requests: list[int] = []  # messages made of events, in case their items are missing
        self.marks: list[_Compacted | _Undone] = []
        self.base: Message | None = None
        self.session_id = ""
        self.model = ""

    def take(self, record: Record[Members]) -> None:
        """Take one line."""
        kind = text_of(record, "type")
        handle = _LINES.get(kind)
        if handle is None:
            self.report.counts["other_lines"] += 1
            return
        body = body_of(self.source, record, "payload", self.report)
        if body is not None:
            try:
                handle(self, body, record.line)
            except UNREADABLE:
                detail = "this message cannot be read"
                self.report.add("unreadable-message", detail, record.line)

    def meta(self, body: Body, line: int) -> None:
        """Take the session's id and base instructions; forks repeat those of their origin."""
        if self.session_id:
            return
        self.session_id = string(body.fields, "id")
        base = body.fields.get("base_instructions")
        if isinstance(base, dict) and isinstance(base.get("text"), str):
            raw = members(body.raw)["base_instructions"]
            part = text_part(raw, base["text"], "system", path=("text",))
            self.base = message_of("system", [part], line)

    def context(self, body: Body, line: int) -> None:
        """Take the model of the turn that begins."""
        self.model = string(body.fields, "model")

    def item(self, body: Body, line: int) -> None:
        """Take what the model saw or wrote."""
        message = read_item(body.raw, body.fields, line, self.model, self.report)
        if message is not None:
            self.session.add(message, is_piece=message.role == "assistant")

    def event(self, body: Body, line: int) -> None:
        """Take what an event says beyond the items: requests, and where a turn began or ended."""
        kind = string(body.fields, "type")
        words = string(body.fields, "message")
        if kind == "user_message" and words:
            self.requests.append(len(self.session))
            part = text_part(members(body.raw)["message"], words, "human")
            self.session.add(message_of("user", [part], line))
        elif kind in TASKS:
            self.session.stop()
        elif kind == "turn_aborted":
            self.report.counts["aborted_turns"] += 1
            self.session.stop()
        elif kind == "thread_rolled_back":
            turns = body.fields.get("num_turns")
            at = len(self.session)
            self.marks.append(_Undone(at, turns if isinstance(turns, int) else 0, line))
            self.session.stop()

    def compacted(self, body: Body, line: int) -> None:
        """Take a native compaction: the new context, or in older versions its summary alone."""
        self.report.counts["compactions"] += 1
        history, summary = body.fields.get("replacement_history"), string(body.fields, "message")
        context = Session()
        if isinstance(history, list):
            for raw in elements(members(body.raw)["replacement_history"]):
                fields = raw.load()
                if isinstance(fields, dict):
                    message = read_item(raw, fields, line, self.model, self.report)
                    if message is not None:
                        context.add(message, is_piece=message.role == "assistant")
        elif summary:
            part = text_part(members(body.raw)["message"], summary, "summary")
            context.add(message_of("user", [part], line))
        at = len(self.session)
        self.marks.append(_Compacted(at, tuple(context.messages()), isinstance(history, list)))

    def transcript(self) -> Transcript:
        """Return the session the lines hold."""
        is_whole = not self.report.counts["bad_lines"]
        found = self.session.messages()
        found, copies = judged(found, self.requests, is_whole=is_whole)
        live: list[Message] = []
        old: list[Message] = []
        marks = iter([*self.marks, None])
        mark = next(marks)
        for index, message in enumerate([*self.session.steered(found), None]):
            while mark is not None and mark.at <= index:
                if isinstance(mark, _Undone):
                    live = self._without_turns(live, mark)
                else:
                    before = [*old, *live]
                    old, live = replaced(before, _context(before, mark))
                mark = next(marks)
            if message is not None and index not in copies:
                live.append(message)
        base = [self.base] if self.base else []
        messages = [*base, *old, *live]
        return transcript_of_log("codex", self.source, self.report, messages, self.session_id)

    def _without_turns(self, live: list[Message], mark: _Undone) -> list[Message]:
        starts = [index for index, message in enumerate(live) if has_words(message)]
        if not starts or mark.turns <= 0:
            return live
        start = starts[-min(mark.turns, len(starts))]
        self.report.counts["rewound_messages"] += len(live) - start
        detail = f"left out: {counted(mark.turns, 'turn')} that the person took back"
        self.report.add("rewound", detail, mark.line, "note")
        return live[:start]


def _context(before: Sequence[Message], mark: _Compacted) -> list[Message]:
    """Return the context after a compaction."""
    if mark.is_complete:
        return list(mark.context)
    # Older versions kept the first context and every request, and added the summary.
    live = [message for message in before if message.is_active]
    root = list(takewhile(lambda message: message.role != "assistant", live))
    kept = [
        message
        for at, message in enumerate(live)
        if has_words(message) or (at < len(root) and not _is_summary(message))
    ]
    return [*kept, *mark.context]


def _is_summary(message: Message) -> bool:
    return any(part.author == "summary" for part in message.parts)


_LINES: Mapping[str, Callable[[_Rollout, Body, int], None]] = {
    "session_meta": _Rollout.meta,
    "turn_context": _Rollout.context,
    "response_item": _Rollout.item,
    "event_msg": _Rollout.event,
    "compacted": _Rollout.compacted,
}
