"""Reader of Copilot CLI event logs. Contexts go out as OpenAI chat messages.

Events stand in the order they happened; results come as events of their own, in the order the tools
ended. A person's words are ``content``, not the ``transformedContent`` the client wraps them in.
Events of sub-agents are left out.

Compactions are read as the client's schema describes them; no log with one has been seen. A summary
stands for what came before the compaction began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.errors import counted
from recap.transcript.authors import author_in, media_author
from recap.transcript.contexts import archived
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
from recap.transcript.images import image_address, image_of
from recap.transcript.items import UNREADABLE, Fields
from recap.transcript.lines import Report, elements, holding, members
from recap.transcript.model import Author, Held, Message, Part, Raw, Transcript
from recap.transcript.parts import (
    call_part,
    image_part,
    other_part,
    result_part,
    text_part,
    thinking_part,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recap.transcript.events import Members
    from recap.transcript.lines import Record
    from recap.transcript.sample import Sample
    from recap.transcript.sources import Sized

NAMES = frozenset(
    ("assistant", "hook", "permission", "session", "subagent", "system", "tool", "user")
)
"""What the types of events begin with."""

MACHINES = ("skill-", "agent-", "system")
"""Beginnings of the ``source`` of user messages that no person wrote."""

IS_RECORD = holding(("type", "data"))


def detect(sample: Sample) -> str | None:
    """Return what shows that a sample is an event log; None if it is none."""
    for line, record in sample.records:
        kind = record.get("type")
        if not isinstance(kind, str) or not isinstance(record.get("data"), dict):
            continue
        name, dot, rest = kind.partition(".")
        if name in NAMES and dot and rest:
            return f"line {line}: type {kind} with data"
    return None


def read(source: Sized) -> Transcript:
    """Return the session of an event log.

    Raises:
        InputError: The file lost bytes while it was read.
    """
    log = _Log(source)
    for record in read_events(source, log.report, IS_RECORD):
        log.take(record)
    return log.transcript()


class _Log:
    """State of one pass over a log."""

    def __init__(self, source: Sized) -> None:
        self.source = source
        self.report = Report()
        self.session = Session()
        self.places: dict[str, int] = {}  # event -> messages before it
        self.api_call = ""
        self.session_id = ""
        self.begun: int | None = None  # messages before the compaction that is under way
        self.replaced = 0  # messages that the last one replaced
        self.summaries: list[Message] = []
        self.has_summary = False
        self.prompts: list[Message] = []

    def take(self, record: Record[Members]) -> None:
        """Take one event."""
        self.places[text_of(record, "id")] = len(self.session)
        handle = _EVENTS.get(text_of(record, "type"))
        if handle is None:
            self.report.counts["other_lines"] += 1
            return
        body = body_of(self.source, record, "data", self.report)
        if body is None:
            return
        if text_of(record, "agentId") or body.fields.get("parentToolCallId"):
            self.report.counts["sidechain_lines"] += 1
            return
        try:
            handle(self, body, record.line)
        except UNREADABLE:
            self.report.add("unreadable-message", "this message cannot be read", record.line)

    def start(self, body: Body, line: int) -> None:
        """Take the session's id."""
        self.session_id = self.session_id or string(body.fields, "sessionId")

    def system(self, body: Body, line: int) -> None:
        """Take a system prompt: a later one of its role replaces it."""
        words = string(body.fields, "content")
        if words:
            part = text_part(members(body.raw)["content"], words, "system")
            uid = string(body.fields, "role")
            self.prompts.append(message_of("system", [part], line, uid=uid))

    def user(self, body: Body, line: int) -> None:
        """Take a request, or what the client sent in the person's place."""
        raw, fields = body
        handles, words = members(raw), string(fields, "content")
        is_machine = fields.get("isAutopilotContinuation") is True
        is_machine = is_machine or string(fields, "source").startswith(MACHINES)
        author: Author = "injected" if is_machine else author_in("user", words)
        parts = [text_part(handles["content"], words, author)] if words else []
        media: Author = "injected" if is_machine else media_author("user", [author])
        if isinstance(fields.get("attachments"), list):
            parts.extend(_attachment(each, media) for each in elements(handles["attachments"]))
        self.session.add(message_of("user", parts, line))

    def notification(self, body: Body, line: int) -> None:
        """Take what the client told the model in between."""
        words = string(body.fields, "content")
        if words:
            part = text_part(members(body.raw)["content"], words, "notification")
            self.session.add(message_of("user", [part], line))

    def assistant(self, body: Body, line: int) -> None:
        """Take an answer; one that was sent in pieces is one message."""
        fields = body.fields
        call = string(fields, "apiCallId")
        parts = _answer(body, line, self.report)
        model, uid = string(fields, "model"), fields.get("messageId")
        message = message_of("assistant", parts, line, model=model, uid=uid)
        self.session.add(message, is_piece=bool(call) and call == self.api_call)
        self.api_call = call

    def result(self, body: Body, line: int) -> None:
        """Take a tool's result."""
        self.session.add(message_of("tool", [_result(body)], line))

    def abort(self, body: Body, line: int) -> None:
        """Note that the person ended the turn."""
        self.report.counts["aborted_turns"] += 1
        self.session.stop()

    def begin_compaction(self, body: Body, line: int) -> None:
        """Note where a compaction began: what comes while it runs is not in its summary."""
        self.begun = len(self.session)

    def end_compaction(self, body: Body, line: int) -> None:
        """Take the summary that stands for what came before."""
        summary = string(body.fields, "summaryContent")
        if body.fields.get("success") is not False and summary:
            part = text_part(members(body.raw)["summaryContent"], summary, "summary")
            self.summaries.append(message_of("user", [part], line))
            self.replaced = len(self.session) if self.begun is None else self.begun
            self.has_summary = True
            self.report.counts["compactions"] += 1
        self.begun = None

    def clear(self, body: Body, line: int) -> None:
        """Note that the context was emptied."""
        self.report.counts["cleared_contexts"] += 1
        self.replaced, self.has_summary = len(self.session), False
        self.session.stop()

    def rewind(self, body: Body, line: int) -> None:
        """Leave out what the person took back: an event and all after it."""
        at = self.places.get(string(body.fields, "upToEventId"))
        if at is not None and (count := self.session.cut(at)):
            self.report.counts["rewound_messages"] += count
            detail = f"left out: {counted(count, 'message')} taken back"
            self.report.add("rewound", detail, line, "note")
            self.replaced = min(self.replaced, at)

    def transcript(self) -> Transcript:
        """Return the session the events hold."""
        messages = self.session.steered()
        roles = {message.uid: message for message in self.prompts}
        prompts = [message for message in self.prompts if roles[message.uid] is message]
        summaries = self.summaries[-1:] if self.has_summary else []
        old = [
            message
            for message in (*self.prompts, *self.summaries)
            if not any(message is kept for kept in (*prompts, *summaries))
        ]
        before, after = messages[: self.replaced], messages[self.replaced :]
        return transcript_of_log(
            "copilot-cli",
            self.source,
            self.report,
            [*prompts, *archived([*old, *before]), *summaries, *after],
            self.session_id,
        )


_EVENTS: Mapping[str, Callable[[_Log, Body, int], None]] = {
    "session.start": _Log.start,
    "system.message": _Log.system,
    "system.notification": _Log.notification,
    "user.message": _Log.user,
    "assistant.message": _Log.assistant,
    "tool.execution_complete": _Log.result,
    "abort": _Log.abort,
    "session.compaction_start": _Log.begin_compaction,
    "session.compaction_complete": _Log.end_compaction,
    "session.context_cleared": _Log.clear,
    "session.snapshot_rewind": _Log.rewind,
}


def _answer(body: Body, line: int, report: Report) -> list[Part]:
    raw, fields = body
    handles = members(raw)
    thinking, words = string(fields, "reasoningText"), string(fields, "content")
    is_sealed = bool(string(fields, "reasoningOpaque") or string(fields, "encryptedContent"))
    parts: list[Part] = []
    if thinking or is_sealed:
        path = ("reasoningText",)
        parts.append(thinking_part(raw, thinking, path=path, has_signature=is_sealed))
    if words:
        parts.append(text_part(handles["content"], words, "agent"))
    requests = fields.get("toolRequests")
    for each in elements(handles["toolRequests"]) if isinstance(requests, list) else ():
        call = each.load()
        name = string(call, "name") if isinstance(call, dict) else ""
        if name:
            call_id, arguments = string(call, "toolCallId"), call.get("arguments")
            sent = {"toolCallId": call_id, "name": name, "arguments": arguments}
            path = ("arguments",)
            parts.append(call_part(each, name, call_id, arguments, path=path, sent=sent))
        else:
            report.add("malformed-call", "a tool request lacks its tool; it is left out", line)
    return parts


def _result(body: Body) -> Part:
    raw: Raw = body.raw
    result, error = body.fields.get("result"), body.fields.get("error")
    key, inner = ("result", "content") if isinstance(result, dict) else ("error", "message")
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(result, dict) and isinstance(error, dict):
        content = error.get("message")
    path: tuple[str, ...] = (key, inner)
    images = _images(result)
    if images:
        text = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
        content = [*text, *images]
        raw, path = Held(content, raw.is_clean), ()
    call_id, is_error = string(body.fields, "toolCallId"), body.fields.get("success") is False
    return result_part(raw, call_id, content, path=path, is_error=is_error)


def _images(result: Fields | None) -> list[Fields]:
    """Return the images that the model saw in a result, where the log still holds them."""
    binaries = result.get("binaryResultsForLlm") if isinstance(result, dict) else None
    return [
        each
        for each in (binaries if isinstance(binaries, list) else ())
        if isinstance(each, dict) and each.get("type") == "image" and image_address(each)
    ]


def _attachment(raw: Raw, media: Author) -> Part:
    """Return what the person attached: an image where the log holds it, else the reference."""
    value = raw.load()
    fields = value if isinstance(value, dict) else {}
    if string(fields, "mimeType").startswith("image/") and image_address(fields):
        return image_part(raw, media, image_of(fields))
    return other_part(raw, string(fields, "type"), media)
