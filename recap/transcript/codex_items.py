"""Items of a Codex rollout to messages: those of the Responses API, as the client stores them.

Items go out in that API's dialect as they came; the client's own fields in them are no part of what
they cost.
"""

from __future__ import annotations

import re
from dataclasses import replace

from recap.transcript.authors import author_in
from recap.transcript.events import message_of, string
from recap.transcript.images import image_of
from recap.transcript.items import Fields, read_blocks
from recap.transcript.lines import Report, members
from recap.transcript.model import Author, Dialect, Json, Message, Part, Raw, Role, flat_text
from recap.transcript.parts import (
    call_part,
    image_part,
    other_part,
    result_part,
    text_part,
    thinking_part,
)
from recap.transcript.responses import CALLS, OUTPUTS, ROLES, SUMMARIES

NOT_SENT = frozenset(("ghost_snapshot",))
"""Types of the items that no model sees."""

TEXTS = ("input_text", "output_text", "text")

_FAILED = re.compile(
    r"apply_patch verification failed|aborted by user|Exit code: (?!0\b)"
    r"|(?:(?!Output:)[^\n]*\n){0,4}?Process exited with code (?!0\b)"
    r'|\{"output":.*"metadata":\{"exit_code":(?!0\b)',
    re.DOTALL,
)
"""How the output of a command or patch begins that failed."""


def read_item(raw: Raw, fields: Fields, line: int, model: str, report: Report) -> Message | None:
    """Return the message that holds an item; None for what the model does not see."""
    kind, uid = string(fields, "type"), fields.get("id")
    if kind in NOT_SENT:
        report.counts["items_not_sent"] += 1
        return None
    if kind == "message":
        return _message(raw, fields, line, model, report)
    if kind.endswith("_output"):
        part: Part | None = _result(raw, fields, OUTPUTS.get(kind, "output"))
        role: Role = "tool"
    elif kind in SUMMARIES:
        sealed = other_part(raw, kind, "summary", dialect="responses")
        role, part = "user", replace(sealed, has_signature=True)
    else:
        role, part = "assistant", _piece(raw, fields, kind)
    if part is None:
        report.add("malformed-block", "an item lacks what its type needs; it is left out", line)
        return None
    return message_of(role, [part], line, model=model if role == "assistant" else "", uid=uid)


def _message(raw: Raw, fields: Fields, line: int, model: str, report: Report) -> Message | None:
    role = ROLES.get(string(fields, "role"))
    content = fields.get("content")
    if role is None:
        report.add("unknown-role", "the message has no role of this format", line)
        return None
    if not isinstance(content, str | list):
        report.add("no-content", "the content is neither text nor a list of parts", line)
        return None
    handle = members(raw)["content"]
    if role == "assistant" and _is_answer(content):
        path, words = ("content",), flat_text(content)
        parts = [text_part(raw, words, "agent", path=path, dialect="responses")]
    elif isinstance(content, str):
        parts = [text_part(handle, content, author_in(role, content))]
    else:
        parts, _ = read_blocks(handle, content, role, _read_block, line, report)
    is_answer = role == "assistant"
    return message_of(role, parts, line, model=model if is_answer else "", uid=fields.get("id"))


def _is_answer(content: Json) -> bool:
    """Return True for content of texts alone, which is one text to whoever reads it."""
    return isinstance(content, list) and all(
        isinstance(block, dict)
        and block.get("type") == "output_text"
        and isinstance(block.get("text"), str)
        for block in content
    )


def _read_block(raw: Raw, block: Fields, role: Role, media: Author) -> Part | None:
    kind = block["type"]
    if kind in TEXTS:
        words = block.get("text")
        if not isinstance(words, str):
            return None
        dialect: Dialect | None = "responses" if kind == "input_text" else None
        return text_part(raw, words, author_in(role, words), path=("text",), dialect=dialect)
    if kind == "input_image":
        return image_part(raw, media, image_of(block), dialect="responses")
    return other_part(raw, kind, media)


def _piece(raw: Raw, fields: Fields, kind: str) -> Part | None:
    """Return thinking, a call, or what is neither: searches answered by the vendor, unknown items."""
    if kind == "reasoning":
        return _reasoning(raw, fields)
    if kind not in CALLS:
        return other_part(raw, kind, "agent", dialect="responses") if kind else None
    key, tool = CALLS[kind]
    name, arguments = tool or string(fields, "name"), fields.get(key)
    if not name:
        return None
    call_id = string(fields, "call_id") or string(fields, "id")
    sent = {"call_id": call_id, "name": name, key: arguments}
    can_go_out = "call_id" in fields and (bool(tool) or isinstance(arguments, str))
    dialect: Dialect | None = "responses" if can_go_out else None
    return call_part(raw, name, call_id, arguments, path=(key,), dialect=dialect, sent=sent)


def _reasoning(raw: Raw, fields: Fields) -> Part:
    key = "content" if flat_text(fields.get("content")).strip() else "summary"
    return thinking_part(
        raw,
        flat_text(fields.get(key)),
        path=(key,),
        has_signature=bool(string(fields, "encrypted_content")),
        dialect="responses" if isinstance(fields.get("summary"), list) else None,
    )


def _result(raw: Raw, fields: Fields, key: str) -> Part:
    content = fields.get(key)
    path: tuple[str, ...] = (key,)
    is_error = False
    if isinstance(content, dict) and "content" in content:  # older versions
        is_error = content.get("success") is False
        content, path = content["content"], (key, "content")
    is_error = is_error or (isinstance(content, str) and _FAILED.match(content) is not None)
    call_id, can_go_out = string(fields, "call_id"), len(path) == 1 and bool(content)
    dialect: Dialect | None = (
        "responses" if can_go_out and isinstance(content, str | list) else None
    )
    return result_part(raw, call_id, content, path=path, is_error=is_error, dialect=dialect)
