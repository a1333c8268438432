"""SWE-Together sessions: four shapes of ``{"session_id", "messages"}``, told apart by content.

A: Anthropic blocks, one block a message, results inside user messages.
B: strings, with ``thinking`` and ``tool_uses`` (a call and its result in one) beside them.
C: Anthropic blocks, whole messages, no results: every call stays open.
D: strings with ``<tool_use id=..>`` and ``<tool_result id=..>`` elements in the text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from recap.transcript import anthropic
from recap.transcript.authors import author_in, mark_steering
from recap.transcript.items import Fields, items_of, read_items, transcript_of
from recap.transcript.lines import Report, elements, members
from recap.transcript.model import (
    Dialect,
    Envelope,
    Held,
    Json,
    Message,
    Part,
    Raw,
    Role,
    Transcript,
    is_clean,
)
from recap.transcript.parts import (
    call_part,
    parsed_arguments,
    result_part,
    text_part,
    thinking_part,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from recap.transcript.items import ReadItem

Shape = Literal["A", "B", "C", "D"]

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}

FAILED = ("error", "cancelled")
"""Values of ``status`` in shape B of calls that failed."""

ERROR = "<tool_use_error>"
"""Begins the results of shape D that report an error."""

_CALL = re.compile(r'<tool_use id="([^"\n]*)">')
_RESULT = re.compile(r'^<tool_result id="([^"\n]*)">', re.MULTILINE)
_CUT_CALL = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\\n]+)"\s*,\s*"arguments"\s*:\s*')


def detect(document: Json) -> str | None:
    """Return what shows that the document is a SWE-Together session; None if it is none."""
    if not isinstance(document, dict) or "session_id" not in document:
        return None
    messages = document.get("messages")
    if not isinstance(messages, list) or not any(isinstance(m, dict) for m in messages):
        return None
    return f"session_id beside messages of shape {shape_of(messages)}"


def shape_of(messages: Sequence[Json]) -> Shape:
    """Return the shape of a session's messages, from their keys and the types of their content."""
    objects = [message for message in messages if isinstance(message, dict)]
    lists = [content for each in objects if isinstance(content := each.get("content"), list)]
    if lists:
        blocks = (block for content in lists for block in content if isinstance(block, dict))
        return "A" if any(block.get("type") == "tool_result" for block in blocks) else "C"
    return "B" if any("tool_uses" in each or "thinking" in each for each in objects) else "D"


def read(document: Raw) -> Transcript:
    """Return the transcript of a session of any shape; its contexts go out as Anthropic messages.

    What stands before the last compaction summary is no part of the live context.
    """
    report = Report()
    items, fields = items_of(document)
    shape = shape_of([item.load() for item in items])
    messages = read_items(items, _READERS[shape], report)
    if shape == "A":
        messages = [_merged(run) for _, run in groupby(messages, _Runs())]
    if shape != "B":  # its results stand inside their calls: no text stands right after them
        messages = list(mark_steering(messages))
    model = fields["model"].load() if "model" in fields else ""
    session_id = fields["session_id"].load() if "session_id" in fields else ""
    transcript = transcript_of("swe-together", "anthropic", _live(messages, model), items, report)
    return replace(transcript, session_id=session_id if isinstance(session_id, str) else "")


class _Runs:
    """Key for ``groupby``: consecutive assistant messages are one run, others stand alone."""

    def __init__(self) -> None:
        self.others = 0

    def __call__(self, message: Message) -> int:
        if message.role == "assistant":
            return -1
        self.others += 1
        return self.others


def _merged(run: Iterator[Message]) -> Message:
    first, *others = run
    if not others:
        return first
    parts = tuple(part for message in (first, *others) for part in message.parts)
    return replace(first, parts=parts, envelope=_envelope(len(parts)))


def _live(messages: Sequence[Message], model: Json) -> list[Message]:
    """Return the messages with their model, and what a compaction replaced as inactive."""
    summaries = [
        index
        for index, message in enumerate(messages)
        if any(part.author == "summary" for part in message.parts)
    ]
    start = summaries[-1] if summaries else 0
    written_by = model if isinstance(model, str) else ""
    return [
        replace(
            message,
            is_active=index >= start,
            model=written_by if message.role == "assistant" else "",
        )
        if index < start or written_by
        else message
        for index, message in enumerate(messages)
    ]


def _envelope(size: int) -> Envelope:
    """Return an envelope that never goes out whole: the messages hold fields no vendor takes."""
    return Envelope(None, size, "anthropic")


def _read_blocks(raw: Raw, fields: Fields, line: int, report: Report) -> list[Message]:
    """Read a message of shape A or C."""
    return anthropic.read_message(raw, fields, line, report, can_go_out=False)


def _read_tool_uses(raw: Raw, fields: Fields, line: int, report: Report) -> list[Message]:
    """Read a message of shape B; call ids are made of the message's number and the call's."""
    role = _role(fields, line, report)
    if role is None:
        return []
    handles = members(raw)
    thinking, content, uses = (fields.get(key) for key in ("thinking", "content", "tool_uses"))
    parts: list[Part] = []
    results: list[Part] = []
    if isinstance(thinking, str) and thinking:
        parts.append(thinking_part(handles["thinking"], thinking))
    if isinstance(content, str) and (content or not uses):
        parts.append(text_part(handles["content"], content, author_in(role, content)))
    for number, each in enumerate(elements(handles["tool_uses"]) if uses else [], 1):
        use = each.load()
        if not isinstance(use, dict) or not isinstance(use.get("tool"), str):
            report.add("malformed-block", "A tool use lacks its tool; it was left out.", line)
            continue
        call_id = f"call_{line}_{number}"
        parts.append(_call(call_id, use["tool"], use.get("input")))
        if use.get("output") is not None:
            is_error = use.get("status") in FAILED
            results.append(_result(members(each)["output"], call_id, use["output"], is_error))
    words = [part for part in parts if part.kind == "text"]
    # The agent's, whatever role stands there.
    made = [part for part in parts if part.kind != "text"]
    if role == "assistant" or not made:
        return _split(line, (role, parts), ("tool", results))
    return _split(line, (role, words), ("assistant", made), ("tool", results))


def _call(call_id: str, name: str, arguments: Json) -> Part:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    dialect: Dialect | None = "anthropic" if isinstance(arguments, dict) else None
    raw = Held(block, is_clean(block))
    return call_part(raw, name, call_id, arguments, path=("input",), dialect=dialect)


def _result(raw: Raw, call_id: str, output: Json, is_error: bool) -> Part:
    # {"text": ..} holds a text and {} an empty one; other objects are results as they are.
    is_wrapped = isinstance(output, dict) and (not output or "text" in output)
    content = output.get("text") if is_wrapped else output
    path = ("text",) if is_wrapped else ()
    return result_part(raw, call_id, content, path=path, is_error=is_error)


def _read_text(raw: Raw, fields: Fields, line: int, report: Report) -> list[Message]:
    """Read a message of shape D; elements of the text become calls and results."""
    role, content = _role(fields, line, report), fields.get("content")
    if role is None:
        return []
    if not isinstance(content, str):
        report.add("no-content", "The content is no text; the message was left out.", line)
        return []
    parts = _pieces(content, role)
    if all(part.kind == "text" for part in parts):
        parts = [text_part(members(raw)["content"], content, author_in(role, content))]
    results = [part for part in parts if part.kind == "result"]
    others = [part for part in parts if part.kind != "result"]
    return _split(line, ("tool", results), (role, others))


def _pieces(content: str, role: Role) -> list[Part]:
    """Return the calls (of the assistant) or results (of the user) in a text, and what is between."""
    parts: list[Part] = []
    at = 0
    for opening in (_CALL if role == "assistant" else _RESULT).finditer(content):
        if opening.start() < at:  # quoted inside the element before
            continue
        body, end = _body(content, opening)
        if role == "assistant":
            part = _call_of(opening.group(1), body)
        else:
            part = _result_of(opening.group(1), body) if end else None
        if part is not None:
            parts.extend(_texts(content[at : opening.start()], role))
            parts.append(part)
            at = end or len(content)
    parts.extend(_texts(content[at:], role))
    return parts


def _body(content: str, opening: re.Match[str]) -> tuple[str, int]:
    """Return what an element holds and where it ends, 0 where the log cut it off."""
    tag = opening.group().partition(" ")[0].removeprefix("<")
    start = opening.end()
    # A body on lines of its own ends on a line of its own: it may quote the tag.
    closing = f"\n</{tag}>" if content.startswith("\n", start) else f"</{tag}>"
    end = content.find(closing, start)
    if end < 0:
        return content[start:], 0
    return content[start:end].removeprefix("\n"), end + len(closing)


def _call_of(call_id: str, body: str) -> Part | None:
    call = parsed_arguments(body)
    if isinstance(call, dict) and isinstance(call.get("name"), str):
        return _call(call_id, call["name"], call.get("arguments"))
    cut = _CUT_CALL.match(body)
    return _call(call_id, cut.group(1), body[cut.end() :]) if cut else None


def _result_of(call_id: str, body: str) -> Part:
    return result_part(
        Held(body, is_clean(body)), call_id, body, path=(), is_error=body.startswith(ERROR)
    )


def _texts(text: str, role: Role) -> list[Part]:
    if not text.strip():
        return []
    return [text_part(Held(text, is_clean(text)), text, author_in(role, text))]


def _role(fields: Fields, line: int, report: Report) -> Role | None:
    name = fields.get("role")
    role = ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        report.add("unknown-role", "The message has no role of this format; it was left out.", line)
    return role


def _split(line: int, *groups: tuple[Role, list[Part]]) -> list[Message]:
    """Return a message for each group that has parts, and one without parts where none has."""
    filled = [group for group in groups if group[1]] or [g for g in groups if g[0] != "tool"]
    envelope = _envelope(sum(len(parts) for _, parts in filled))
    return [Message(role, tuple(parts), line, envelope) for role, parts in filled]


_READERS: Mapping[Shape, ReadItem] = {
    "A": _read_blocks,
    "B": _read_tool_uses,
    "C": _read_blocks,
    "D": _read_text,
}
