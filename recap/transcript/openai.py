"""OpenAI chat completions: reader of message lists and request documents, and writer of messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeGuard

from recap.transcript.authors import OMISSION_PREFIX, author_in, mark_steering
from recap.transcript.convert import (
    arguments_text,
    openai_image,
    openai_result,
    other_as_text,
    text_block,
    text_leaf,
    with_call_id,
    without_images,
)
from recap.transcript.images import image_of
from recap.transcript.items import (
    Fields,
    dialect_of,
    is_message_list,
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
)
from recap.transcript.parts import (
    call_part,
    image_part,
    other_part,
    result_part,
    text_part,
    thinking_part,
)
from recap.transcript.signs import ANTHROPIC_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.tree import Tree

FOREIGN_TYPES = ANTHROPIC_TYPES | {"tool_result"}
"""Blocks of Anthropic messages, which chat messages refuse."""

__all__ = [
    "MessageReader",
    "detect",
    "read",
    "with_call_id",
    "without_images",
    "write_message",
]

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}

REASONING_KEYS = ("reasoning_content", "reasoning")
"""Where compatible servers put thinking, the first that holds text counts."""

CALL_BODIES = {"function": "arguments", "custom": "input"}
"""Kind of call -> key of its arguments."""

_REFUSED_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")

IMAGES_OF_RESULT = f"{OMISSION_PREFIX}images of the results above]"
"""Stands before images that results of another dialect held: tool messages have no place for them."""


def detect(document: Json) -> str | None:
    """Return what shows that the document is an OpenAI message list or request; None if not."""
    dialect, evidence = dialect_of(document)
    return evidence if dialect == "openai" and is_message_list(document) else None


def read(document: Raw) -> Transcript:
    """Return the transcript of a message list, or of a document that holds one (tau-bench too)."""
    report = Report()
    items, _ = items_of(document)
    messages = read_items(items, MessageReader().read_message, report)
    return transcript_of("openai-chat", "openai", mark_steering(messages), items, report)


class MessageReader:
    """Reads messages in order; legacy function calls have no ids, so their number names them."""

    def __init__(self) -> None:
        self.function_calls = 0

    def read_message(
        self, raw: Raw, fields: Fields, line: int, report: Report
    ) -> Sequence[Message]:
        """Return the message; none, with a finding, for what has no role of this format."""
        name = fields.get("role")
        role = ROLES.get(name) if isinstance(name, str) else None
        if role is None:
            detail = "The message has no role of this format; it was left out."
            report.add("unknown-role", detail, line)
            return []
        if role == "tool":
            parts, flaws = [self._result(raw, fields)], 0
        else:
            parts, flaws = self._parts(raw, fields, role, line, report)
        flaws += any(part.dialect is None and part.path for part in parts)
        model, uid = fields.get("model"), fields.get("id")
        return [
            Message(
                role,
                tuple(parts),
                line,
                Envelope(raw, len(parts) + flaws, "openai"),
                model=model if isinstance(model, str) else "",
                uid=uid if isinstance(uid, str) else "",
            )
        ]

    def _result(self, raw: Raw, fields: Fields) -> Part:
        call_id, content = fields.get("tool_call_id"), fields.get("content")
        is_whole = isinstance(content, str) or (_are_parts(content) and bool(content))
        if fields["role"] == "function":
            is_whole = is_whole and call_id is None  # with an id it has to be a tool message
            call_id = self._function_id() if call_id is None else call_id
        return result_part(
            raw,
            call_id if isinstance(call_id, str) else "",
            content,
            path=("content",),
            dialect="openai" if is_whole else None,
        )

    def _parts(
        self, raw: Raw, fields: Fields, role: Role, line: int, report: Report
    ) -> tuple[list[Part], int]:
        handles = members(raw)
        if role != "assistant":
            return _content(handles, fields, role, line, report)
        calls, flaws = self._calls(handles, fields, line, report)
        refusal = fields.get("refusal")
        refusals = [text_part(handles["refusal"], refusal, "agent")] if _is_said(refusal) else []
        has_stand_in = bool(calls or flaws or refusals)
        content, content_flaws = _content(handles, fields, role, line, report, has_stand_in)
        parts = [*_thinking(raw, fields), *content, *refusals, *calls]
        return parts, flaws + content_flaws

    def _calls(
        self, handles: Mapping[str, Raw], fields: Fields, line: int, report: Report
    ) -> tuple[list[Part], int]:
        values = fields.get("tool_calls")
        calls, flaws = [], 0
        if isinstance(values, list):
            raws = elements(handles["tool_calls"])
            calls = [_call(raw, value) for raw, value in zip(raws, values, strict=True)]
            flaws = 0 if values else 1
        elif values is not None:
            calls = [None]
        if isinstance(fields.get("function_call"), dict):
            self.function_calls += 1
            calls.append(self._function_call(handles["function_call"], fields["function_call"]))
        for call in calls:
            if call is None:
                detail = "A tool call lacks its function; it was left out."
                report.add("malformed-call", detail, line)
        flaws += calls.count(None)
        return [call for call in calls if call is not None], flaws

    def _function_call(self, raw: Raw, call: Fields) -> Part | None:
        name, arguments = call.get("name"), call.get("arguments")
        if not isinstance(name, str) or not name:
            return None
        dialect: Dialect | None = "openai" if isinstance(arguments, str) else None
        path = ("arguments",)
        return call_part(raw, name, self._function_id(), arguments, path=path, dialect=dialect)

    def _function_id(self) -> str:
        return f"function_call_{self.function_calls}"


def _thinking(raw: Raw, fields: Fields) -> list[Part]:
    for key in REASONING_KEYS:
        words = fields.get(key)
        if _is_said(words):
            return [thinking_part(raw, words, path=(key,), dialect="openai")]
    return []


def _is_said(words: Json) -> TypeGuard[str]:
    return isinstance(words, str) and bool(words)


def _content(
    handles: Mapping[str, Raw],
    fields: Fields,
    role: Role,
    line: int,
    report: Report,
    has_stand_in: bool = False,
) -> tuple[list[Part], int]:
    """Return the parts of the content, and how much of it cannot go out as it is.

    ``has_stand_in`` is True for a message whose calls or refusal stand in for empty content.
    """
    content = fields.get("content")
    if has_stand_in and not content and (content is None or isinstance(content, str | list)):
        return [], 0
    if isinstance(content, str):
        return [text_part(handles["content"], content, author_in(role, content))], 0
    if isinstance(content, list):
        return read_blocks(handles["content"], content, role, _read_part, line, report)
    if role != "assistant" or content is not None:
        report.add("no-content", "The content is neither text nor a list of parts.", line)
    return [], 1


def _call(raw: Raw, call: Json) -> Part | None:
    """Return a tool call, whatever its arguments are; None without a function and its name."""
    if not isinstance(call, dict):
        return None
    kind = call.get("type") or "function"
    key = CALL_BODIES.get(kind) if isinstance(kind, str) else None
    body = call.get(kind) if key else None
    if key is None or not isinstance(body, dict):
        return None
    call_id, name, arguments = call.get("id"), body.get("name"), body.get(key)
    if not isinstance(name, str) or not name:
        return None
    return call_part(
        raw,
        name,
        call_id if isinstance(call_id, str) else "",
        arguments,
        path=(kind, key),
        dialect="openai" if isinstance(arguments, str) else None,
    )


def _are_parts(content: Json) -> bool:
    return isinstance(content, list) and all(
        isinstance(part, dict)
        and isinstance(part.get("type"), str)
        and (part["type"] != "text" or isinstance(part.get("text"), str))
        for part in content
    )


def _read_part(raw: Raw, part: Fields, role: Role, media: Author) -> Part | None:
    kind = part["type"]
    if kind in ("text", "input_text", "output_text", "refusal"):
        key = "refusal" if kind == "refusal" else "text"
        words = part.get(key)
        if not isinstance(words, str):
            return None
        return text_part(raw, words, author_in(role, words), path=(key,), dialect="openai")
    if kind in ("image_url", "input_image", "image"):
        return _read_image(raw, part, media)
    # A block only Anthropic has is refused here: it goes out as text.
    return other_part(raw, kind, media, dialect=None if kind in FOREIGN_TYPES else "openai")


def _read_image(raw: Raw, part: Fields, media: Author) -> Part | None:
    """Return an image part; one in another vendor's form is converted where it goes out."""
    url = part.get("image_url")
    if part["type"] != "image_url" or not isinstance(url, dict):
        return image_part(raw, media, image_of(part))
    if not isinstance(url.get("url"), str):
        return None
    return image_part(raw, media, image_of(part), dialect="openai")


def write_message(role: Role, parts: Sequence[Part]) -> list[Tree]:
    """Return the messages that hold ``parts``; a tool message for each result.

    Thinking must be of this dialect: the caller drops any other. All results of one assistant
    message belong in one call, because images of foreign results follow in a user message.
    """
    if not parts:
        return []
    if role == "tool":
        return _results(parts)
    if role == "assistant":
        return [_assistant(parts)]
    return [{"role": role, "content": _written_content(parts)}]


def _results(parts: Sequence[Part]) -> list[Tree]:
    messages: list[Tree] = []
    images: list[Tree] = []
    for part in parts:
        if part.dialect == "openai":
            messages.append(part.raw)
            continue
        text, found = openai_result(part.payload())
        messages.append({"role": "tool", "tool_call_id": part.call_id, "content": text})
        images.extend(found)
    if images:
        messages.append({"role": "user", "content": [text_block(IMAGES_OF_RESULT), *images]})
    return messages


def _assistant(parts: Sequence[Part]) -> Tree:
    content = [part for part in parts if part.kind not in ("thinking", "call")]
    message: dict[str, Tree] = {
        "role": "assistant",
        "content": _written_content(content) if content else None,
    }
    calls: list[Tree] = []
    for part in parts:
        if part.kind == "thinking":
            assert part.dialect == "openai"
            message[part.path[0]] = members(part.raw)[part.path[0]]
        elif part.kind == "call" and part.dialect == "openai" and part.path == ("arguments",):
            message["function_call"] = part.raw
        elif part.kind == "call":
            calls.append(_written_call(part))
    return {**message, "tool_calls": calls} if calls else message


def _written_call(part: Part) -> Tree:
    if part.dialect == "openai":
        return part.raw
    name = _REFUSED_IN_NAMES.sub("_", part.name)
    function = {"name": name, "arguments": arguments_text(part.payload())}
    return {"id": part.call_id, "type": "function", "function": function}


def _written_content(parts: Sequence[Part]) -> Tree:
    """Return one text as a string, anything else as a list of content parts."""
    if len(parts) == 1 and parts[0].kind == "text" and _is_foreign(parts[0]):
        return text_leaf(parts[0])
    return [_written_part(part) for part in parts]


def _written_part(part: Part) -> Tree:
    return _WRITERS[part.kind](part) if _is_foreign(part) else part.raw


def _is_foreign(part: Part) -> bool:
    """Return True for what is no content part of ours: another dialect's, or a bare string."""
    return part.dialect != "openai" or (part.kind == "text" and not part.path)


_WRITERS: Mapping[str, Callable[[Part], Tree]] = {
    "text": lambda part: text_block(text_leaf(part)),
    "image": lambda part: openai_image(part.payload()),
    "result": other_as_text,
    "other": other_as_text,
}
