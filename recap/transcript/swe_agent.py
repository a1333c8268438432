"""SWE-agent and mini-swe-agent trajectories. Contexts go out as OpenAI chat messages.

The context is ``history`` (SWE-agent) or ``messages`` (mini-swe-agent); ``trajectory`` repeats it and
is read only where there is no history. Demonstrations are no part of the session.

The person's words are the first user message, the task, and what they typed when they interrupted
the agent. Every other user message is what a command printed or the client said: agents that write
commands as plain text get their observations in the user role. Such an observation answers no call,
and none is made up for it: it is machine text of the author ``tool``, so that its names feed the index
as those of results do, and a block of its own, unprotected and selected apart from the reply before it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recap.transcript.authors import interjection_author
from recap.transcript.events import message_of
from recap.transcript.items import Fields, items_of, read_items, transcript_of
from recap.transcript.lines import Report, elements, members
from recap.transcript.openai import MessageReader
from recap.transcript.parts import result_part, text_part, thinking_part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recap.transcript.model import Author, Json, Message, Part, Raw, Role, Transcript
    from recap.transcript.sample import Sample

PROMPT_KEYS = ("query", "messages")
"""Where a step of a trajectory holds the messages the model was asked with."""

OBSERVATION = "<returncode>"
"""Begins the observations of mini-swe-agent."""


def detect(sample: Sample) -> str | None:
    """Return what shows that a sample is a trajectory of SWE-agent; None if it is none."""
    document = sample.document
    if not isinstance(document, dict):
        return None
    steps = _objects(document.get("trajectory"))
    if any(("action" in each or "observation" in each) and "source" not in each for each in steps):
        return "trajectory with history" if "history" in document else "trajectory"
    history = _objects(document.get("history"))
    if any("role" in message and "agent" in message for message in history):
        return "history of messages with an agent"
    return None


def detect_mini(sample: Sample) -> str | None:
    """Return what shows that a sample is a trajectory of mini-swe-agent; None if it is none."""
    document = sample.document
    if isinstance(document, dict):
        return "trajectory_format" if "trajectory_format" in document else None
    is_observed = any(
        message.get("role") == "user" and _starts(message.get("content"), OBSERVATION)
        for message in _objects(document)
    )
    return f"observations that begin with {OBSERVATION}" if is_observed else None


def read(document: Raw) -> Transcript:
    """Return the transcript of a trajectory of SWE-agent."""
    report, fields = Report(), members(document)
    items = elements(fields["history"]) if "history" in fields else []
    history = _History()
    if items:
        messages = read_items(items, history.read_message, report)
    else:
        items = elements(fields["trajectory"]) if "trajectory" in fields else []
        messages = [*_prompt(items, history, report), *read_items(items, _read_step, report)]
    return _transcript("swe-agent", messages, items, report)


def read_mini(document: Raw) -> Transcript:
    """Return the transcript of a trajectory of mini-swe-agent, a document or a bare list."""
    report = Report()
    items, _ = items_of(document)
    messages = read_items(items, _History().read_message, report)
    return _transcript("mini-swe-agent", messages, items, report)


def _transcript(
    format: str, messages: Sequence[Message], items: Sequence[Raw], report: Report
) -> Transcript:
    transcript = transcript_of(format, "openai", messages, items, report)
    return replace(transcript, counts=dict(report.counts))


class _History:
    """Reads messages in order; the first one in the user role is the person's task."""

    def __init__(self) -> None:
        self.chat = MessageReader()
        self.has_task = False

    def read_message(self, raw: Raw, fields: Fields, line: int, report: Report) -> list[Message]:
        if fields.get("is_demo") or fields.get("message_type") == "demonstration":
            report.counts["demonstrations"] += 1
            return []
        if fields.get("role") == "exit":  # how the run ended, said to the caller
            report.counts["exits"] += 1
            return []
        if fields.get("role") == "tool":
            return [message_of("tool", [_result(raw, fields, line, report)], line)]
        messages = self.chat.read_message(raw, fields, line, report)
        return [self._authored(message, raw, fields) for message in messages]

    def _authored(self, message: Message, raw: Raw, fields: Fields) -> Message:
        """Return the message as one that never goes out whole: it holds fields no vendor takes."""
        parts: Iterable[Part] = message.parts
        if message.role == "assistant":
            parts = [*_thinking(raw, fields, message), *parts]
        elif message.role == "user":
            author = self._author(message)
            parts = [replace(part, author=author) for part in parts]
        return message_of(message.role, parts, message.line, model=message.model, uid=message.uid)

    def _author(self, message: Message) -> Author:
        if self.has_task:
            return interjection_author("\n".join(part.text() for part in message.parts)) or "tool"
        self.has_task = True
        return "human"


def _result(raw: Raw, fields: Fields, line: int, report: Report) -> Part:
    """Return the result a tool message holds. It names its call in a list of ids."""
    ids = fields.get("tool_call_ids", fields.get("tool_call_id"))
    ids = ids if isinstance(ids, list) else [ids]
    if len(ids) > 1:
        detail = f"it answers {len(ids)} calls at once and is read as the result of the first"
        report.add("shared-result", detail, line, "warning")
    call_id = ids[0] if ids and isinstance(ids[0], str) else ""
    content = members(raw).get("content")
    if content is None:
        return result_part(raw, call_id, None, path=("content",))
    return result_part(content, call_id, fields["content"], path=())


def _thinking(raw: Raw, fields: Fields, message: Message) -> list[Part]:
    """Return the signed thinking beside an assistant's content, unless it was read already."""
    blocks = fields.get("thinking_blocks")
    if not isinstance(blocks, list) or any(part.kind == "thinking" for part in message.parts):
        return []
    return [
        thinking_part(
            handle,
            block["thinking"],
            path=("thinking",),
            has_signature=bool(block.get("signature")),
            dialect="anthropic",
        )
        for handle, block in zip(elements(members(raw)["thinking_blocks"]), blocks, strict=True)
        if isinstance(block, dict) and isinstance(block.get("thinking"), str)
    ]


def _prompt(steps: Sequence[Raw], history: _History, report: Report) -> list[Message]:
    """Return the messages the first step of a trajectory was asked with."""
    fields = members(steps[0]) if steps else {}
    asked = next((elements(fields[key]) for key in PROMPT_KEYS if key in fields), [])
    messages = read_items(asked, history.read_message, report)
    return [replace(message, line=1) for message in messages]


def _read_step(raw: Raw, fields: Fields, line: int, report: Report) -> list[Message]:
    """Read a step of a trajectory: what the model wrote, and what it then saw."""
    handles = members(raw)
    keys = ("response",) if _is_said(fields.get("response")) else ("thought", "action")
    groups: tuple[tuple[Role, Author, tuple[str, ...]], ...] = (
        ("assistant", "agent", keys),
        ("user", "tool", ("observation",)),
    )
    messages = []
    for role, author, names in groups:
        said = [name for name in names if _is_said(fields.get(name))]
        parts = [text_part(handles[name], fields[name], author) for name in said]
        if parts:
            messages.append(message_of(role, parts, line))
    if not messages:
        detail = "the step holds neither an answer nor an observation"
        report.add("empty-step", detail, line, "note")
    return messages


def _is_said(words: Json) -> bool:
    return isinstance(words, str) and bool(words.strip())


def _starts(words: Json, beginning: str) -> bool:
    return isinstance(words, str) and words.startswith(beginning)


def _objects(value: Json) -> list[Fields]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
