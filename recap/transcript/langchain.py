"""Reader of LangChain messages, in both ways they are stored.

``messages_to_dict`` gives ``{"type": "ai", "data": {...}}``, ``dumpd`` gives ``{"lc": 1, "type":
"constructor", "id": [..., "AIMessage"], "kwargs": {...}}``. A list holds one of the two: neither of
LangChain's loaders takes both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from recap.transcript.authors import author_in, mark_steering
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
    Envelope,
    Held,
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
    from types import UnionType

ROLES: Mapping[str, Role] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}

CHAT_ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
}
"""Roles of messages of type ``chat``, which name their own."""

CALL_LISTS: Mapping[str, type | UnionType] = {
    "tool_calls": dict,
    "invalid_tool_calls": str | None,
}
"""Lists of an answer's calls -> type of the arguments in each: those that were no JSON stay text."""

CALL_BLOCKS = ("tool_use", "tool_call", "function_call", "custom_tool_call", "invalid_tool_call")
"""Blocks that repeat a call of ``tool_calls`` in the content, in the form of the model's vendor."""

THINKING: Mapping[str, str] = {
    "thinking": "thinking",
    "redacted_thinking": "data",
    "reasoning": "reasoning",
    "reasoning_content": "reasoning_content",
}
"""Type of a thinking block -> key of its text."""

BODIES = ("data", "kwargs")
"""Where a message's fields are: in what ``messages_to_dict`` writes, and in what ``dumpd`` does."""


class Body(NamedTuple):
    """A message: its type, the key of its fields, the fields, and handles on them.

    It is marked when the vendor's loader knows it for a message.
    """

    type: str
    key: str
    fields: Fields
    handles: Mapping[str, Raw]
    is_marked: bool


def detect(document: Json) -> str | None:
    """Return what shows that the document is a list of LangChain messages; None if it is none."""
    dialect, evidence = dialect_of(document)
    return evidence if dialect == "langchain" else None


def read(document: Raw) -> Transcript:
    """Return the transcript of a list of messages, or of a state that holds one (``messages``)."""
    report = Report()
    items, _ = items_of(document)
    messages = read_items(items, _Reader().read_message, report)
    return transcript_of("langchain", "langchain", mark_steering(messages), items, report)


def message_type(message: Fields) -> tuple[str, str]:
    """Return the type of a message without ``Chunk``, and the key of its fields; "" for none."""
    for key in BODIES:
        if isinstance(message.get(key), dict):
            break
    else:
        return "", ""
    name = message.get("type") if key == "data" else _class_name(message)
    if not isinstance(name, str):
        return "", key
    name = name.removesuffix("Chunk").removesuffix("Message")
    return name.lower(), key


def _class_name(message: Fields) -> Json:
    path = message.get("id")
    return path[-1] if isinstance(path, list) and path else message["kwargs"].get("type")


class _Reader:
    """Reads messages in order; legacy function calls have no ids, so their number names them."""

    def __init__(self) -> None:
        self.function_calls = 0

    def read_message(
        self, raw: Raw, fields: Fields, line: int, report: Report
    ) -> Sequence[Message]:
        kind, key = message_type(fields)
        data = fields[key] if key else {}
        role = ROLES.get(kind)
        if kind == "chat" and isinstance(data.get("role"), str):
            role = CHAT_ROLES.get(data["role"].lower())
        if role is None:
            detail = "The message has no type of this format; it was left out."
            report.add("unknown-role", detail, line)
            return []
        is_marked = key == "data" or "lc" in fields
        body = Body(kind, key, data, members(members(raw)[key]), is_marked)
        if role == "tool":
            part = self._result(raw, body)
            # Function messages have no call's id, other contents are none: both are written anew.
            parts, flaws = [part], int(part.dialect is None)
        elif role == "assistant":
            parts, flaws = self._answer(body, line, report)
        else:
            parts, flaws = _content(body, role, frozenset(), line, report)
        metadata, uid = data.get("response_metadata"), data.get("id")
        model = metadata.get("model_name") if isinstance(metadata, dict) else ""
        return [
            Message(
                role,
                tuple(parts),
                line,
                Envelope(raw if is_marked else None, len(parts) + flaws, "langchain"),
                model=model if isinstance(model, str) else "",
                uid=uid if isinstance(uid, str) else "",
            )
        ]

    def _result(self, raw: Raw, body: Body) -> Part:
        content, call_id = body.fields.get("content"), body.fields.get("tool_call_id")
        if body.type == "function":
            call_id = f"function_call_{self.function_calls}"
        is_whole = body.is_marked and (isinstance(content, str) or _are_blocks(content))
        return result_part(
            raw,
            call_id if isinstance(call_id, str) else "",
            content,
            path=(body.key, "content"),
            is_error=body.fields.get("status") == "error",
            dialect="langchain" if is_whole and body.type == "tool" else None,
        )

    def _answer(self, body: Body, line: int, report: Report) -> tuple[list[Part], int]:
        calls, flaws = self._calls(body, line, report)
        ids = frozenset(call.call_id for call in calls)
        content: list[Part] = []
        held = body.fields.get("content")
        if held or not (calls or flaws):
            content, more = _content(body, "assistant", ids, line, report)
            flaws += more
        elif not isinstance(held, str | list):
            flaws += 1  # nothing is lost, but a message must have a content
        return [*_thoughts(body), *content, *calls], flaws

    def _calls(self, body: Body, line: int, report: Report) -> tuple[list[Part], int]:
        """Return the calls, and how many of them cannot go out as they are.

        The vendor's own calls in ``additional_kwargs`` count where a message has no others: they are
        what older versions stored.
        """
        calls: list[Part | None] = []
        for key, form in CALL_LISTS.items():
            if isinstance(body.fields.get(key), list):
                calls.extend(_call(raw, raw.load(), form) for raw in elements(body.handles[key]))
        flaws = sum(call is not None and call.dialect is None for call in calls)
        extra = members(body.handles.get("additional_kwargs", Held({})))
        if not calls and "tool_calls" in extra:
            calls.extend(_vendor_call(raw, raw.load()) for raw in elements(extra["tool_calls"]))
        if not calls and "function_call" in extra:
            flaws = 1  # goes out in the new form
            self.function_calls += 1
            call_id = f"function_call_{self.function_calls}"
            call = extra["function_call"]
            calls.append(_function_call(call, call.load(), call_id))
        if None in calls:
            report.add("malformed-call", "A tool call lacks its tool; it was left out.", line)
        found = [call for call in calls if call is not None]
        return found, flaws + len(calls) - len(found)


def _call(raw: Raw, call: Json, form: type | UnionType) -> Part | None:
    if not isinstance(call, dict):
        return None
    name, call_id, arguments = call.get("name"), call.get("id"), call.get("args")
    if not isinstance(name, str) or not name:
        return None
    return call_part(
        raw,
        name,
        call_id if isinstance(call_id, str) else "",
        arguments if arguments is not None else {},
        path=("args",),
        dialect="langchain" if isinstance(arguments, form) else None,
    )


def _vendor_call(raw: Raw, call: Json) -> Part | None:
    if not isinstance(call, dict):
        return None
    path = ("function", "arguments")
    return _function_call(raw, call.get("function"), call.get("id"), path=path)


def _function_call(
    raw: Raw, function: Json, call_id: Json, *, path: tuple[str, ...] = ("arguments",)
) -> Part | None:
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or not name:
        return None
    uid = call_id if isinstance(call_id, str) else ""
    return call_part(raw, name, uid, function.get("arguments"), path=path)


def _thoughts(body: Body) -> list[Part]:
    """Return the thinking that some servers put beside the content."""
    extra = members(body.handles.get("additional_kwargs", Held({})))
    raw = extra.get("reasoning_content")
    words = raw.load() if raw is not None else None
    if raw is None or not isinstance(words, str) or not words:
        return []
    return [thinking_part(raw, words, dialect="langchain")]


def _content(
    body: Body, role: Role, calls: frozenset[str], line: int, report: Report
) -> tuple[list[Part], int]:
    """Return the parts of the content but for what repeats a call, and how many are flawed."""
    content = body.fields.get("content")
    if isinstance(content, str):
        return [text_part(body.handles["content"], content, author_in(role, content))], 0
    if not isinstance(content, list):
        report.add("no-content", "The content is neither text nor a list of blocks.", line)
        return [], 1
    parts, flaws = read_blocks(body.handles["content"], content, role, _read_block, line, report)
    bare = sum(isinstance(block, str) for block in content)  # strings stand for text blocks here
    return [part for part in parts if not _repeats(part, calls)], flaws - bare


def _repeats(part: Part, calls: frozenset[str]) -> bool:
    return part.kind == "call" and part.call_id in calls


def _read_block(raw: Raw, block: Fields, role: Role, media: Author) -> Part | None:
    kind = block["type"]
    if kind == "text":
        words = block.get("text")
        if not isinstance(words, str):
            return None
        return text_part(raw, words, author_in(role, words), path=("text",), dialect="langchain")
    if kind in THINKING and role == "assistant":
        words = block.get(THINKING[kind])
        text = words if isinstance(words, str) else flat_text(block.get("summary"))
        return thinking_part(
            raw, text, path=(THINKING[kind],), has_signature=not text.strip(), dialect="langchain"
        )
    if kind in CALL_BLOCKS and role == "assistant":
        return _read_call_block(raw, block)
    if kind in ("image_url", "image", "input_image"):
        return image_part(raw, media, image_of(block), dialect="langchain")
    return other_part(raw, kind, media, dialect="langchain")


def _read_call_block(raw: Raw, block: Fields) -> Part | None:
    ids = (block.get("call_id"), block.get("id"))
    call_id = next((uid for uid in ids if isinstance(uid, str)), "")
    key = next((key for key in ("input", "args", "arguments") if key in block), "input")
    name = block.get("name")
    if not isinstance(name, str) or not name:
        return None
    return call_part(raw, name, call_id, block.get(key), path=(key,), dialect="langchain")


def _are_blocks(content: Json) -> bool:
    return isinstance(content, list) and all(
        isinstance(block, str) or (isinstance(block, dict) and _is_block(block))
        for block in content
    )


def _is_block(block: Fields) -> bool:
    kind = block.get("type", "text")
    return isinstance(kind, str) and (kind != "text" or isinstance(block.get("text"), str))
