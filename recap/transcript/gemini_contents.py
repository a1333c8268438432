"""Reader of Gemini contents: lists and request documents.

Calls and responses often have no ids: then a response answers the first open call of its name, and a
number names the call.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from recap.transcript.authors import author_in, mark_steering, media_author
from recap.transcript.images import image_of
from recap.transcript.items import (
    UNREADABLE,
    Fields,
    dialect_of,
    items_of,
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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


ROLES: Mapping[str, Role] = {
    "user": "user",
    "model": "assistant",
    "function": "user",
    "tool": "user",
}
"""Older versions gave responses a role of their own."""

CALL_KEYS = ("functionCall", "function_call")
RESPONSE_KEYS = ("functionResponse", "function_response")
INLINE_KEYS = ("inlineData", "inline_data")
IMAGE_KEYS = (*INLINE_KEYS, "fileData", "file_data")
SIGNATURE_KEYS = ("thoughtSignature", "thought_signature")
SYSTEM_KEYS = ("systemInstruction", "system_instruction")
"""Each field has two spellings: of the wire, and of the vendor's Python package."""

ANSWER_KEYS = ("output", "error", "result", "content")
"""Where a response holds its text."""


def detect(document: Json) -> str | None:
    """Return what shows that the document is a list of contents or a request; None if not."""
    dialect, evidence = dialect_of(document)
    return evidence if dialect == "gemini" else None


def read(document: Raw) -> Transcript:
    """Return the transcript of a list of contents, or of a request document that holds one."""
    report = Report()
    items, fields = items_of(document)
    messages = read_items(items, _Reader().read_content, report)
    for key in SYSTEM_KEYS:
        if key in fields:
            messages.insert(0, _system(fields[key], report))
    marked = mark_steering(messages)
    return transcript_of("gemini-contents", "gemini", marked, items, report)


def _system(raw: Raw, report: Report) -> Message:
    """Return the system instruction, a content or a bare string."""
    value = raw.load()
    if isinstance(value, str):
        parts: list[Part] = [text_part(raw, value, "system")]
    else:
        parts, _ = _Reader().parts_of(members(raw).get("parts"), "system", 0, report)
    return Message("system", tuple(parts), 0, Envelope(None, len(parts), "gemini"))


class _Reader:
    """Reads contents in order."""

    def __init__(self) -> None:
        self.calls = 0  # without an id so far
        self.open: deque[tuple[str, str]] = deque()  # (name, id) of the last content's calls

    def read_content(
        self, raw: Raw, fields: Fields, line: int, report: Report
    ) -> Sequence[Message]:
        name = fields.get("role", "user")
        role = ROLES.get(name) if isinstance(name, str) else None
        if role is None:
            detail = "The content has no role of this format; it was left out."
            report.add("unknown-role", detail, line)
            return []
        if role == "assistant":
            self.open.clear()
        parts, flaws = self.parts_of(members(raw).get("parts"), role, line, report)
        # No version takes a role ``tool``: what it holds goes out as the person's.
        whole = None if name == "tool" else raw
        envelope = Envelope(whole, len(parts) + flaws, "gemini")
        results = [part for part in parts if part.kind == "result"]
        others = [part for part in parts if part.kind != "result"]
        split: list[tuple[Role, list[Part]]] = [("tool", results)] if results else []
        if others or not results:
            split.append((role, others))
        return [Message(each, tuple(group), line, envelope) for each, group in split]

    def parts_of(
        self, raw: Raw | None, role: Role, line: int, report: Report
    ) -> tuple[list[Part], int]:
        """Return the parts of a content, and how many of them cannot go out as they are."""
        values = raw.load() if raw is not None else None
        if raw is None or not isinstance(values, list):
            report.add("no-content", "The content has no list of parts.", line)
            return [], 1
        texts = [
            author_in(role, part["text"])
            for part in values
            if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
        media = media_author(role, texts)
        parts: list[Part] = []
        for handle, value in zip(elements(raw), values, strict=True):
            part = self._part(handle, value, role, media) if isinstance(value, dict) else None
            if part is None:
                report.add("malformed-block", "A part lacks what it needs; it was left out.", line)
            else:
                parts.append(part)
        return parts, len(values) - sum(part.dialect == "gemini" for part in parts)

    def _part(self, raw: Raw, part: Fields, role: Role, media: Author) -> Part | None:
        try:
            if any(key in part for key in CALL_KEYS):
                return self._call(raw, part) if role == "assistant" else None
            if any(key in part for key in RESPONSE_KEYS):
                return self._response(raw, part) if role == "user" else None
            return _plain_part(raw, part, role, media)
        except UNREADABLE:
            return None

    def _call(self, raw: Raw, part: Fields) -> Part | None:
        key = _key(part, CALL_KEYS)
        call = part[key] if key else {}
        name, call_id = call.get("name"), call.get("id")
        if not isinstance(name, str) or not name:
            return None
        if not isinstance(call_id, str) or not call_id:
            self.calls += 1
            call_id = f"call_{self.calls}"
        self.open.append((name, call_id))
        arguments = call.get("args")
        dialect: Dialect | None = "gemini" if arguments is None or _is_object(arguments) else None
        path = (key, "args")
        # The signature beside the call is a seal of the vendor's and costs nothing.
        return call_part(raw, name, call_id, arguments or {}, path=path, dialect=dialect, sent=call)

    def _response(self, raw: Raw, part: Fields) -> Part | None:
        key = _key(part, RESPONSE_KEYS)
        if not key:
            return None
        response = part[key]
        call_id = response.get("id")
        if isinstance(call_id, str) and call_id:
            self.open = deque(each for each in self.open if each[1] != call_id)
        else:
            call_id = self._answered(response.get("name"))
        content = response.get("response")
        path: tuple[str, ...] = (key, "response")
        is_error = _is_object(content) and "error" in content
        if _is_object(content) and len(content) == 1:
            inner = next(iter(content))
            if inner in ANSWER_KEYS and isinstance(content[inner], str):
                path, content = (*path, inner), content[inner]
        name = response.get("name")
        is_whole = isinstance(name, str) and bool(name) and _is_object(response.get("response"))
        dialect: Dialect | None = "gemini" if is_whole else None
        return result_part(raw, call_id, content, path=path, is_error=is_error, dialect=dialect)

    def _answered(self, name: Json) -> str:
        """Return the id of the first open call of the name, else of the first open one."""
        named = next((each for each in self.open if each[0] == name), None)
        found = named or next(iter(self.open), None)
        if found is None:
            return ""
        self.open.remove(found)
        return found[1]


def _is_object(value: Json) -> bool:
    return isinstance(value, dict)


def _key(part: Fields, keys: Sequence[str]) -> str:
    """Return the key under which the part holds an object; "" where it holds none."""
    return next((key for key in keys if _is_object(part.get(key))), "")


def _plain_part(raw: Raw, part: Fields, role: Role, media: Author) -> Part | None:
    """Return a part that is no call and no response; None for one that lacks what it needs."""
    if "text" in part:
        return _text(raw, part, role)
    held = next((key for key in IMAGE_KEYS if key in part), "")
    kind = held or next((key for key in part if _is_object(part[key])), "")
    if not kind or not _is_object(part[kind]):
        return None
    if kind in INLINE_KEYS and not (_media_type(part[kind]) and _has_data(part[kind])):
        return None
    if held and _media_type(part[held]).startswith("image/"):
        return image_part(raw, media, image_of(part), dialect="gemini")
    return other_part(raw, kind, media, dialect="gemini")


def _text(raw: Raw, part: Fields, role: Role) -> Part | None:
    words = part["text"]
    if not isinstance(words, str):
        return None
    is_signed = any(part.get(key) for key in SIGNATURE_KEYS)
    if part.get("thought") is True or (is_signed and not words):
        return thinking_part(raw, words, path=("text",), has_signature=is_signed, dialect="gemini")
    return text_part(raw, words, author_in(role, words), path=("text",), dialect="gemini")


def _has_data(data: Fields) -> bool:
    return isinstance(data.get("data"), str)


def _media_type(data: Fields) -> str:
    found = data.get("mimeType", data.get("mime_type"))
    return found if isinstance(found, str) else ""
