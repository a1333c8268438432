"""Anthropic Messages: reader of message lists and request documents, and writer of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.transcript.authors import author_in, mark_steering
from recap.transcript.convert import (
    anthropic_image,
    anthropic_result,
    arguments_object,
    is_image,
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
from recap.transcript.limits import IMAGE_MEDIA_TYPES
from recap.transcript.lines import Report, members
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.tree import Tree

__all__ = [
    "detect",
    "read",
    "read_content",
    "read_message",
    "system_blocks",
    "with_call_id",
    "without_images",
    "write_message",
]

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
"""``system`` stands in mid-conversation."""

SOURCES = {"base64": "data", "url": "url", "file": "file_id"}
"""Kinds of image sources, and the string each needs."""


def detect(document: Json) -> str | None:
    """Return what shows that the document is an Anthropic message list or request; None if not."""
    dialect, evidence = dialect_of(document)
    return evidence if dialect == "anthropic" and is_message_list(document) else None


def read(document: Raw) -> Transcript:
    """Return the transcript of a message list, or of a request document that holds one."""
    report = Report()
    items, fields = items_of(document)
    messages = read_items(items, read_message, report)
    if "system" in fields:
        messages.insert(0, _system_field(fields["system"], report))
    marked = mark_steering(messages)
    return transcript_of("anthropic-messages", "anthropic", marked, items, report)


def _system_field(raw: Raw, report: Report) -> Message:
    parts, flaws = read_content(raw, raw.load(), "system", 0, report)
    return Message("system", tuple(parts), 0, Envelope(None, len(parts) + flaws, "anthropic"))


def read_message(
    raw: Raw, fields: Fields, line: int, report: Report, *, can_go_out: bool = True
) -> list[Message]:
    """Return a message; a user message that mixes results and other content becomes two.

    ``can_go_out`` is False for messages with fields the vendor does not take.
    """
    name = fields.get("role")
    role = ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        report.add("unknown-role", "The message has no role of this format; it was left out.", line)
        return []
    content, value = members(raw).get("content"), fields.get("content")
    parts, flaws = read_content(content, value, role, line, report)
    envelope = Envelope(raw if can_go_out else None, len(parts) + flaws, "anthropic")
    model, uid = fields.get("model"), fields.get("id")
    results = [part for part in parts if part.kind == "result"]
    others = [part for part in parts if part.kind != "result"]
    split: list[tuple[Role, list[Part]]] = [("tool", results)] if results else []
    if others or not results:
        split.append((role, others))
    return [
        Message(
            each,
            tuple(group),
            line,
            envelope,
            model=model if isinstance(model, str) else "",
            uid=uid if isinstance(uid, str) else "",
        )
        for each, group in split
    ]


def read_content(
    raw: Raw | None, content: Json, role: Role, line: int, report: Report
) -> tuple[list[Part], int]:
    """Return the parts of a content value, and how much of it cannot go out as it is.

    Args:
        raw: Handle on the content; None where the message has none.
        content: The decoded value.
        role: Of the message.
        line: 1-based number of the message.
        report: Takes what is left out.
    """
    if raw is not None and isinstance(content, str):
        return [text_part(raw, content, author_in(role, content))], 0
    if raw is not None and isinstance(content, list):
        return read_blocks(raw, content, role, _read_block, line, report)
    report.add("no-content", "The content is neither text nor a list of blocks.", line)
    return [], 1


def _read_block(raw: Raw, block: Fields, role: Role, media: Author) -> Part | None:
    kind = block["type"]
    if kind in _READERS:
        owner, read_kind = _READERS[kind]
        return read_kind(raw, block, role, media) if owner in ("", role) else None
    if kind.endswith("_tool_result") and role == "user":
        return _read_result(raw, block, role, media)
    return other_part(raw, kind, media, call_id=_server_call(block), dialect="anthropic")


def _server_call(block: Fields) -> str:
    """Return the id that pairs a server tool's call with its result; "" for other blocks."""
    kind = block["type"]
    keys = {"_tool_use": "id", "_tool_result": "tool_use_id"}
    call_id = next((block.get(key) for ending, key in keys.items() if kind.endswith(ending)), "")
    return call_id if isinstance(call_id, str) else ""


def _read_text(raw: Raw, block: Fields, role: Role, _: Author) -> Part | None:
    words = block.get("text")
    if not isinstance(words, str):
        return None
    return text_part(raw, words, author_in(role, words), path=("text",), dialect="anthropic")


def _read_thinking(raw: Raw, block: Fields, _: Role, __: Author) -> Part | None:
    is_redacted = block["type"] == "redacted_thinking"
    key = "data" if is_redacted else "thinking"
    words, signature = block.get(key), block.get("signature")
    if not isinstance(words, str):
        return None
    has_signature = bool(words) if is_redacted else isinstance(signature, str) and bool(signature)
    return thinking_part(raw, words, path=(key,), has_signature=has_signature, dialect="anthropic")


def _read_call(raw: Raw, block: Fields, _: Role, __: Author) -> Part | None:
    call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(call_id, str) or not isinstance(name, str) or not name:
        return None
    dialect: Dialect | None = "anthropic" if isinstance(arguments, dict) else None
    path = ("input",)
    return call_part(raw, name, call_id, arguments, path=path, dialect=dialect, sent=block)


def _read_result(raw: Raw, block: Fields, _: Role, __: Author) -> Part | None:
    call_id, content = block.get("tool_use_id"), block.get("content")
    if not isinstance(call_id, str):
        return None
    is_error = block.get("is_error") is True
    is_whole = content is None or isinstance(content, str) or _are_blocks(content)
    # The vendor refuses an error that says nothing.
    can_go_out = is_whole and bool(content or not is_error)
    return result_part(
        raw,
        call_id,
        content,
        path=("content",),
        is_error=is_error,
        dialect="anthropic" if can_go_out else None,
    )


def _are_blocks(content: Json) -> bool:
    return isinstance(content, list) and all(
        isinstance(block, dict)
        and isinstance(block.get("type"), str)
        and (block["type"] != "text" or isinstance(block.get("text"), str))
        and (not is_image(block) or _has_source(block))
        for block in content
    )


def _read_image(raw: Raw, block: Fields, _: Role, media: Author) -> Part | None:
    if not _has_source(block):
        return None
    return image_part(raw, media, image_of(block), dialect="anthropic")


def _has_source(block: Fields) -> bool:
    source = block.get("source")
    if not isinstance(source, dict):
        return False
    kind = source.get("type")
    key = SOURCES.get(kind) if isinstance(kind, str) else None
    if key and not isinstance(source.get(key), str):
        return False
    return kind != "base64" or source.get("media_type") in IMAGE_MEDIA_TYPES


_READERS: Mapping[str, tuple[str, Callable[[Raw, Fields, Role, Author], Part | None]]] = {
    "text": ("", _read_text),
    "image": ("", _read_image),
    "thinking": ("assistant", _read_thinking),
    "redacted_thinking": ("assistant", _read_thinking),
    "tool_use": ("assistant", _read_call),
    "tool_result": ("user", _read_result),
}
"""Block type -> the only role that may hold it ("" for any), and its reader."""


def write_message(role: Role, parts: Sequence[Part]) -> list[Tree]:
    """Return the messages that hold ``parts``: one, or none for system parts and empty ones.

    Results stand first. System text goes beside the list, see ``system_blocks``. Thinking must be
    signed and of this dialect: the caller drops any other.
    """
    if role == "system" or not parts:
        return []
    ordered = sorted(parts, key=lambda part: part.kind != "result") if role == "tool" else parts
    is_string = len(parts) == 1 and _is_bare_text(parts[0])
    content = parts[0].raw if is_string else [_block(part) for part in ordered]
    return [{"role": "assistant" if role == "assistant" else "user", "content": content}]


def system_blocks(parts: Sequence[Part]) -> list[Tree]:
    """Return the blocks of the ``system`` field that hold system parts."""
    return [_block(part) for part in parts]


def _block(part: Part) -> Tree:
    if _is_bare_text(part):
        return text_block(part.raw)
    assert part.kind != "thinking" or (part.dialect == "anthropic" and part.has_signature)
    return part.raw if part.dialect == "anthropic" else _WRITERS[part.kind](part)


def _is_bare_text(part: Part) -> bool:
    """Return True for a text that came, or was made, as a string and no block."""
    return part.kind == "text" and not part.path


def _write_call(part: Part) -> Tree:
    return {
        "type": "tool_use",
        "id": part.call_id,
        "name": part.name,
        "input": arguments_object(part.payload()),
    }


def _write_result(part: Part) -> Tree:
    content = anthropic_result(part.payload())
    block: dict[str, Tree] = {
        "type": "tool_result",
        "tool_use_id": part.call_id,
        "content": content,
    }
    return {**block, "is_error": True} if part.is_error and content else block


_WRITERS: Mapping[str, Callable[[Part], Tree]] = {
    "text": lambda part: text_block(text_leaf(part)),
    "image": lambda part: anthropic_image(part.payload()),
    "call": _write_call,
    "result": _write_result,
    "other": other_as_text,
}
