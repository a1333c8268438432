"""Reader of OpenAI Responses: item lists, request documents and answers.

Messages of the person are items with content parts. What the model made has no message around it:
reasoning, texts and calls up to the next output or message are one assistant message here, each item
one part.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

from recap.transcript.authors import author_in, mark_steering
from recap.transcript.convert import (
    APPROVALS,
)
from recap.transcript.images import image_of
from recap.transcript.items import (
    Fields,
    dialect_of,
    items_of,
    read_blocks,
    read_items,
    transcript_of,
)
from recap.transcript.lines import Report, elements, members
from recap.transcript.model import (
    Author,
    Dialect,
    Envelope,
    Json,
    Message,
    Part,
    Raw,
    Role,
    Transcript,
    flat_text,
)
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


ROLES: Mapping[str, Role] = {
    "developer": "system",
    "system": "system",
    "user": "user",
    "assistant": "assistant",
}


class CallType(NamedTuple):
    """A type of item that calls a tool: key of its arguments, and the tool where it is fixed."""

    arguments: str
    tool: str = ""


CALLS: Mapping[str, CallType] = {
    "function_call": CallType("arguments"),
    "custom_tool_call": CallType("input"),
    "local_shell_call": CallType("action", "local_shell"),
    "shell_call": CallType("action", "shell"),
    "apply_patch_call": CallType("operation", "apply_patch"),
    "computer_call": CallType("action", "computer"),
    "tool_search_call": CallType("arguments", "tool_search"),
    "mcp_approval_request": CallType("arguments"),
    "program": CallType("code", "program"),
}

OUTPUTS: Mapping[str, str] = {
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "local_shell_call_output": "output",
    "shell_call_output": "output",
    "apply_patch_call_output": "output",
    "computer_call_output": "output",
    "tool_search_output": "tools",
    "mcp_approval_response": "approve",
    "program_output": "result",
}
"""Type of an item that answers a call -> key of its content."""

SEARCHES = ("tool_search_call", "tool_search_output")
"""A search without a call's id was run by the vendor itself."""

SUMMARIES = ("compaction", "compaction_summary", "context_compaction")
"""Items with a summary of what was before that only the vendor can read."""

TEXTS = ("input_text", "output_text")


def detect(document: Json) -> str | None:
    """Return what shows that the document is a list of items, a request or an answer; None if not."""
    if isinstance(document, dict) and document.get("object") == "response":
        return "object response"
    dialect, evidence = dialect_of(document)
    return evidence if dialect == "responses" else None


def read(document: Raw) -> Transcript:
    """Return the transcript of a list of items, of a request around it, or of an answer."""
    report = Report()
    items, fields = items_of(document)
    reader = _Reader()
    asked = fields.get("input")
    if not items and "output" in fields:  # an answer of the vendor
        items = elements(fields["output"])
    messages = read_items(items, reader.read_item, report)
    if asked is not None and isinstance(words := asked.load(), str):
        part = text_part(asked, words, author_in("user", words))
        messages, items = [Message("user", (part,), 1, Envelope(None, 1, "responses"))], [asked]
    instructions = fields.get("instructions")
    if instructions is not None and isinstance(words := instructions.load(), str):
        part = text_part(instructions, words, "system")
        messages.insert(0, Message("system", (part,), 0, Envelope(None, 1, "responses")))
    marked = mark_steering(_joined(messages))
    return transcript_of("openai-responses", "responses", marked, items, report)


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Return the messages, with runs of the model's items as one message each."""
    joined: list[Message] = []
    for role, run in groupby(messages, lambda message: message.role):
        group = list(run)
        if role == "assistant" and len(group) > 1:
            parts = tuple(chain.from_iterable(message.parts for message in group))
            group = [
                replace(group[0], parts=parts, envelope=Envelope(None, len(parts), "responses"))
            ]
        joined.extend(group)
    return joined


class _Reader:
    """Reads items in order."""

    def __init__(self) -> None:
        self.ids: set[str] = set()  # of items
        self.call_ids: dict[str, str] = {}  # of the item -> of its call
        self.rewritten: set[str] = set()  # calls that go out in another form, and so their outputs

    def read_item(self, raw: Raw, fields: Fields, line: int, report: Report) -> Sequence[Message]:
        messages = self._messages(raw, fields, line, report)
        uid = _uid(fields)
        if not uid or fields.get("type") == "local_shell_call_output":  # that names its call
            return messages
        if uid in self.ids:  # the vendor refuses it twice: what it holds goes out without the id
            messages = [_without_form(message) for message in messages]
            self.rewritten.update(p.call_id for m in messages for p in m.parts if p.kind == "call")
        self.ids.add(uid)
        return messages

    def _messages(self, raw: Raw, fields: Fields, line: int, report: Report) -> Sequence[Message]:
        kind = fields.get("type")
        if kind == "message" or (kind is None and "role" in fields):
            return _message(raw, fields, line, report)
        if not isinstance(kind, str):
            report.add("unknown-item", "The item has neither a role nor a type.", line)
            return []
        role: Role = "assistant"
        part: Part | None
        is_ours = kind not in SEARCHES or bool(_call_id(fields))
        if kind in OUTPUTS and is_ours:
            role, part = "tool", self._output(raw, fields, kind, self._answered(fields))
        elif kind in CALLS and is_ours:
            part = self._call(raw, fields, kind, line, report)
        elif kind == "reasoning":
            part = _reasoning(raw, fields)
        elif kind in SUMMARIES:
            role = "user"
            sealed = other_part(raw, kind, "summary", dialect="responses")
            part = replace(sealed, has_signature=True)
        else:  # tools that the vendor runs itself answer in the same item
            part = other_part(raw, kind, "agent", dialect="responses")
        if part is None:
            return []
        return [Message(role, (part,), line, Envelope(None, 1, "responses"), uid=_uid(fields))]

    def _call(self, raw: Raw, fields: Fields, kind: str, line: int, report: Report) -> Part | None:
        key, tool = CALLS[kind]
        name, call_id, arguments = tool or fields.get("name"), _call_id(fields), fields.get(key)
        if not isinstance(name, str) or not name:
            report.add("malformed-call", "A call lacks its tool; it was left out.", line)
            return None
        is_bare = arguments is None and fields.get("actions") is None
        is_whole = not is_bare if tool else isinstance(arguments, str)
        if not is_whole:
            self.rewritten.add(call_id)
        if uid := _uid(fields):
            self.call_ids[uid] = call_id
        dialect: Dialect | None = "responses" if is_whole else None
        return call_part(raw, name, call_id, arguments, path=(key,), dialect=dialect)

    def _answered(self, fields: Fields) -> str:
        """Return the id of the call an output answers; outputs of a local shell name the item."""
        uid = _uid(fields)
        if fields["type"] == "local_shell_call_output" and not _is_text(fields, "call_id"):
            return self.call_ids.get(uid, uid)
        return _call_id(fields)

    def _output(self, raw: Raw, fields: Fields, kind: str, call_id: str) -> Part:
        key = OUTPUTS[kind]
        content = fields.get(key)
        can_go_out = call_id not in self.rewritten and _is_output(kind, content)
        is_error = fields.get("status") == "failed"
        return result_part(
            raw,
            call_id,
            content,
            path=(key,),
            is_error=is_error,
            dialect="responses" if can_go_out else None,
        )


def _without_form(message: Message) -> Message:
    """Return the message with nothing that can go out as it is."""
    parts = tuple(replace(part, dialect=None) for part in message.parts)
    return replace(message, parts=parts, envelope=Envelope(None, len(parts), "responses"))


def _is_text(fields: Fields, key: str) -> bool:
    return isinstance(fields.get(key), str)


def _call_id(fields: Fields) -> str:
    """Return the id by which a call and its output name each other; "" where there is none."""
    key = APPROVALS.get(fields["type"], "call_id")
    return fields[key] if _is_text(fields, key) else ""


def _uid(fields: Fields) -> str:
    uid = fields.get("id")
    return uid if isinstance(uid, str) else ""


def _is_output(kind: str, content: Json) -> bool:
    """Return True for content that the vendor takes in an output of this type."""
    if kind in ("tool_search_output", "mcp_approval_response"):
        return True
    if content is None:
        return kind == "apply_patch_call_output"
    return isinstance(content, str | dict) or (
        isinstance(content, list) and all(map(_is_output_part, content))
    )


def _is_output_part(part: Json) -> bool:
    """Return True for a part of ours, or a piece of a shell's output, which has no type."""
    if not isinstance(part, dict):
        return False
    if part.get("type") == "input_image":
        return _is_text(part, "image_url") or _is_text(part, "file_id")
    return part.get("type", "input_text") in ("input_text", "input_file", "input_audio")


def _reasoning(raw: Raw, fields: Fields) -> Part:
    """Return reasoning; an item that is sealed, or kept by the vendor under its id, is signed."""
    pieces = (fields.get("summary"), fields.get("content"))
    words = "\n".join(filter(None, map(flat_text, pieces)))
    is_sealed = bool(fields.get("encrypted_content") or fields.get("id"))
    dialect: Dialect | None = "responses" if isinstance(fields.get("summary"), list) else None
    return thinking_part(raw, words, path=("summary",), has_signature=is_sealed, dialect=dialect)


def _message(raw: Raw, fields: Fields, line: int, report: Report) -> list[Message]:
    name, content = fields.get("role"), fields.get("content")
    role = ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        detail = "The message has no role of this format; it was left out."
        report.add("unknown-role", detail, line)
        return []
    if not isinstance(content, str | list):
        report.add("no-content", "The content is neither text nor a list of parts.", line)
        return []
    if role == "assistant":
        dialect: Dialect | None = "responses" if _is_answer(content) else None
        words = flat_text(content)
        part = text_part(raw, words, "agent", path=("content",), dialect=dialect)
        return [Message(role, (part,), line, Envelope(None, 1, "responses"), uid=_uid(fields))]
    handle = members(raw)["content"]
    if isinstance(content, str):
        parts, flaws = [text_part(handle, content, author_in(role, content))], 0
    else:
        parts, flaws = read_blocks(handle, content, role, _read_part, line, report)
    envelope = Envelope(raw, len(parts) + flaws, "responses")
    return [Message(role, tuple(parts), line, envelope, uid=_uid(fields))]


def _is_answer(content: Json) -> bool:
    return isinstance(content, str) or all(
        isinstance(part, dict)
        and (part.get("type") == "refusal" or _is_text(part, "text"))
        and part.get("type") in ("output_text", "refusal")
        for part in content
    )


def _read_part(raw: Raw, part: Fields, role: Role, media: Author) -> Part | None:
    kind, words = part["type"], part.get("text")
    if kind in (*TEXTS, "text"):
        if not isinstance(words, str):
            return None
        dialect: Dialect | None = "responses" if kind in TEXTS else None
        return text_part(raw, words, author_in(role, words), path=("text",), dialect=dialect)
    if kind in ("input_image", "image_url", "image"):
        is_ours = kind == "input_image" and (
            _is_text(part, "image_url") or _is_text(part, "file_id")
        )
        return image_part(raw, media, image_of(part), dialect="responses" if is_ours else None)
    return other_part(raw, kind, media, dialect="responses")
