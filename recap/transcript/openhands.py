"""OpenHands events: lists of them, and benchmark output with one session a row.

Contexts go out as OpenAI chat messages. Of several rows the first one with events is read; a finding
says how many more there are. An action holds the answer of the model it comes from: that answer is
what is read, once for all its actions. The result of a call is the observation that names it, or
whose cause is the call's action.

A request is a message of the source ``user``. What the client recalled for the agent is machine text;
commands of the person are context beside the conversation. Condensations have been seen in no file:
they are counted, and what they forgot stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from recap.transcript.events import Session, message_of
from recap.transcript.images import image_of
from recap.transcript.items import Fields, read_items, transcript_of
from recap.transcript.lines import Report, elements, members
from recap.transcript.model import Author, Held, Json, Part, Raw, Role, Transcript, is_clean
from recap.transcript.openai import MessageReader
from recap.transcript.parts import call_part, image_part, result_part, text_part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.sample import Sample

LIST_KEYS = ("history", "trajectory")
"""Where a row of a benchmark, or an answer of the server, holds its events."""

TOOLS = frozenset(
    ("run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "think",
     "finish", "delegate", "call_tool_mcp", "task_tracking")
)  # fmt: skip
"""Actions that are calls of a tool even where the model's answer is not kept with them."""

COMMANDS = {"run": "command", "run_ipython": "code"}
"""Actions the person may take, and the argument that holds what they typed."""

CONDENSATIONS = frozenset(("condensation", "condensation_request", "condense"))

STATES = frozenset(("change_agent_state", "agent_state_changed"))
"""Events that tell the agent's state."""

ENDED = frozenset(("awaiting_user_input", "paused", "stopped", "finished", "rejected", "error"))
"""States of the agent in which no tool loop is open."""

INSTRUCTIONS = ("repo_instructions", "additional_agent_instructions", "conversation_instructions")
"""What a recall may hold for the agent, beside the knowledge of its microagents."""

FAILED_EDIT = "ERROR:"
"""Begins what the editor says when it could not do what it was asked."""


def detect(sample: Sample) -> str | None:
    """Return what shows that a sample holds events of OpenHands; None if it does not."""
    for line, record in sample.records:
        if "instance_id" in record and _are_events(record.get("history")):
            return f"line {line}: instance_id with a history of events"
    document = sample.document
    if isinstance(document, dict):
        document = document.get("trajectory")
    records = [record for _, record in sample.records] if document is None else document
    return "events with a source" if _are_events(records) else None


def _are_events(value: Json) -> bool:
    return isinstance(value, list) and any(
        isinstance(event, dict)
        and "source" in event
        and isinstance(event.get("action", event.get("observation")), str)
        for event in value
    )


def read(document: Raw) -> Transcript:
    """Return the transcript of a list of events, or of the first session of several."""
    report = Report()
    items, session_id = _first_session(document, report)
    log = _Log(report)
    read_items(items, log.take, report)
    transcript = transcript_of("openhands", "openai", log.session.steered(), items, report)
    return replace(transcript, session_id=session_id, counts=dict(sorted(report.counts.items())))


def _first_session(document: Raw, report: Report) -> tuple[list[Raw], str]:
    """Return the events to read and what names their session; report how many more there are."""
    items = elements(document)
    rows = [members(item) for item in items or [document]]
    found = [(row, row[key]) for row in rows for key in LIST_KEYS if key in row]
    if not found:
        return items, ""
    report.counts["sessions"] = len(found)
    if len(found) > 1:
        detail = f"the file holds {len(found) - 1:,} more sessions, which are not read"
        report.add("more-sessions", detail, 0, "note")
    filled = ((row, events) for row, held in found if (events := elements(held)))
    row, events = next(filled, (found[0][0], []))
    name = row["instance_id"].load() if "instance_id" in row else ""
    return events, name if isinstance(name, str) else ""


class _Body:
    """An object of an event: its decoded members, and handles on them when they are asked for."""

    def __init__(self, fields: Json, handle: Callable[[], Raw]) -> None:
        self.fields: Fields = fields if isinstance(fields, dict) else {}
        self._handle = handle

    @cached_property
    def handles(self) -> Mapping[str, Raw]:
        return members(self._handle())

    def inner(self, key: str) -> _Body:
        """Return the object under a key; an empty one for anything else."""
        return _Body(self.fields.get(key), lambda: self.handles[key])

    def text(self, key: str) -> str:
        """Return the string under a key; "" for anything else."""
        value = self.fields.get(key)
        return value if isinstance(value, str) else ""

    def id(self, key: str) -> str:
        """Return an id, which some files give as a number and others as text; "" without one."""
        value = self.fields.get(key)
        return str(value) if isinstance(value, str | int) else ""

    def said(self, keys: Sequence[str], author: Author) -> list[Part]:
        """Return the texts under the keys; blank ones are left out."""
        said = [(key, words) for key in keys if (words := self.text(key)).strip()]
        return [text_part(self.handles[key], words, author) for key, words in said]


class _Answer(NamedTuple):
    """What an action says of the model's answer it comes from.

    Attributes:
        call_id: Id of the call in it; "" where the action names none.
        tool: Name of the tool.
        id: Id of the answer, "" where it has none.
        model: Model that gave it.
        message: The assistant message; empty where the log does not keep it.
        handle: Handle on the message.
    """

    call_id: str
    tool: str
    id: str
    model: str
    message: Fields
    handle: Callable[[], Raw]

    @classmethod
    def of(cls, action: _Body) -> _Answer:
        """Return what the action says."""
        metadata = action.inner("tool_call_metadata")
        response = metadata.inner("model_response")
        choices = response.fields.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        return cls(
            metadata.text("tool_call_id"),
            metadata.text("function_name") or action.text("action"),
            response.id("id"),
            response.text("model"),
            message if isinstance(message, dict) else {},
            lambda: members(elements(response.handles["choices"])[0])["message"],
        )


class _Log:
    """State of one pass over events."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.session = Session()
        self.chat = MessageReader()
        self.calls: dict[str, str] = {}  # id of an action -> id of its call
        self.commands: set[str] = set()  # ids of the person's own actions
        self.waiting: Counter[tuple[str, str]] = Counter()  # calls read before their action

    def take(self, raw: Raw, fields: Fields, line: int, report: Report) -> tuple[()]:
        """Take an event; the key that is present tells an action from an observation."""
        event = _Body(fields, lambda: raw)
        if event.text("action"):
            self._action(event, line)
        elif event.text("observation"):
            self._observation(raw, event, line)
        else:
            report.counts["other_events"] += 1
        return ()

    def _action(self, event: _Body, line: int) -> None:
        kind, source, args = event.text("action"), event.text("source"), event.inner("args")
        if kind in CONDENSATIONS:
            self._condensation(line)
        elif kind == "system":
            self._add("system", args.said(("content",), "system"), line)
        elif kind == "message" and source == "user":
            self._add("user", [*args.said(("content",), "human"), *_images(args)], line)
        elif kind == "message" and source == "agent":
            self._add("assistant", args.said(("content",), "agent"), line)
        elif kind in COMMANDS and source == "user":
            self.commands.add(event.id("id"))
            self._add("user", args.said((COMMANDS[kind],), "local"), line)
        elif source == "agent" and (kind in TOOLS or event.fields.get("tool_call_metadata")):
            self._call(event, args, line)
        else:
            self._other(kind, args)

    def _observation(self, raw: Raw, event: _Body, line: int) -> None:
        kind, extras, cause = event.text("observation"), event.inner("extras"), event.id("cause")
        call_id = event.inner("tool_call_metadata").text("tool_call_id")
        call_id = call_id or self.calls.get(cause, "")
        if kind in CONDENSATIONS:
            self._condensation(line)
        elif kind == "recall":
            self._add("user", _recalled(extras), line)
        elif call_id:
            self._add("tool", [_result(raw, event, extras, call_id)], line)
            if kind == "user_rejected":
                self.session.stop()
        elif event.text("content").strip() and kind not in STATES:
            author: Author = "local" if cause in self.commands else "tool"
            self._add("user", event.said(("content",), author), line)
        else:
            self._other(kind, extras)

    def _add(
        self, role: Role, parts: Sequence[Part], line: int, *, model: str = "", uid: str = ""
    ) -> None:
        if parts:
            self.session.add(message_of(role, parts, line, model=model, uid=uid))
        else:
            self.report.counts["empty_events"] += 1

    def _condensation(self, line: int) -> None:
        self.report.counts["condensations"] += 1
        detail = "a condensation is not followed: what it forgot stays in the context"
        self.report.add("condensation", detail, line, "note")

    def _other(self, kind: str, body: _Body) -> None:
        """Count what the model never saw; the agent's state may tell that a tool loop ended."""
        self.report.counts["other_events"] += 1
        if kind in STATES and body.text("agent_state") in ENDED:
            self.session.stop()

    def _call(self, event: _Body, args: _Body, line: int) -> None:
        """Take an action of the agent: the whole answer it comes from, at the first one of it."""
        answer = _Answer.of(event)
        call_id = answer.call_id or f"event_{event.id('id') or line}"
        self.calls[event.id("id")] = call_id
        if self.waiting[answer.id, call_id]:
            self.waiting[answer.id, call_id] -= 1
            return
        parts = self._answered(answer, line)
        if all(part.kind == "call" for part in parts):
            parts = [*args.said(("thought",), "agent"), *parts]
        calls = Counter(part.call_id for part in parts if part.kind == "call")
        if not calls[call_id]:
            parts.append(_made_call(answer.tool, call_id, args))
        calls[call_id] -= 1
        if answer.id:
            self.waiting.update({(answer.id, each): count for each, count in calls.items()})
        # Nothing answers the call that ends a session: what it says stands beside it as well.
        parts.extend(args.said(("final_thought",), "agent"))
        self._add("assistant", parts, line, model=answer.model, uid=answer.id)

    def _answered(self, answer: _Answer, line: int) -> list[Part]:
        """Return the parts of an answer that the log keeps."""
        if not answer.message:
            return []
        fields = {**answer.message, "role": "assistant"}
        messages = self.chat.read_message(answer.handle(), fields, line, self.report)
        return [part for message in messages for part in message.parts if not part.is_blank]


def _made_call(name: str, call_id: str, args: _Body) -> Part:
    """Return the call of an action whose answer the log does not keep, made of its arguments."""
    arguments = {key: value for key, value in args.fields.items() if key != "thought"}
    block = {"id": call_id, "name": name, "arguments": arguments}
    return call_part(Held(block, is_clean(block)), name, call_id, arguments, path=("arguments",))


def _result(raw: Raw, event: _Body, extras: _Body, call_id: str) -> Part:
    kind = event.text("observation")
    is_error = (
        kind in ("error", "user_rejected")
        or event.fields.get("success") is False
        or (kind in ("edit", "read") and event.text("content").startswith(FAILED_EDIT))
    )
    # Older versions kept the difference in ``content``, and what the model saw beside it.
    body, key = (event, "content")
    if kind == "edit" and extras.text("formatted_output_and_error"):
        body, key = (extras, "formatted_output_and_error")
    if key not in body.fields:
        return result_part(raw, call_id, None, path=(key,), is_error=is_error)
    return result_part(body.handles[key], call_id, body.fields[key], path=(), is_error=is_error)


def _recalled(extras: _Body) -> list[Part]:
    """Return what the client recalled for the agent: instructions, and microagents' knowledge."""
    parts = extras.said(INSTRUCTIONS, "injected")
    knowledge = extras.fields.get("microagent_knowledge")
    if isinstance(knowledge, list):
        handles = elements(extras.handles["microagent_knowledge"])
        for handle, item in zip(handles, knowledge, strict=True):
            words = item.get("content") if isinstance(item, dict) else None
            if isinstance(words, str) and words.strip():
                parts.append(text_part(members(handle)["content"], words, "injected"))
    return parts


def _images(args: _Body) -> list[Part]:
    urls = args.fields.get("image_urls")
    blocks = [
        {"type": "image_url", "image_url": {"url": url}}
        for url in (urls if isinstance(urls, list) else [])
        if isinstance(url, str) and url
    ]
    return [
        image_part(Held(block, is_clean(block)), "human", image_of(block), dialect="openai")
        for block in blocks
    ]
