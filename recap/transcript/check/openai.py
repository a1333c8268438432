"""The rules of OpenAI Chat Completions over a decoded message list."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from recap.transcript.check.dialect import ANTHROPIC_TYPES
from recap.transcript.check.images import LinedImage, check_images
from recap.transcript.images import image_of
from recap.transcript.limits import exceeded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.transcript.check.rules import Report
    from recap.transcript.model import Json

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
STAND_INS = ("tool_calls", "function_call", "refusal", "audio")
"""What an assistant message may hold in place of content."""

NAME = re.compile(r"[a-zA-Z0-9_-]+")
TEXT_PARTS = ("text", "input_text", "output_text")
CALL_BODIES = {"function": "arguments", "custom": "input"}
"""Kinds of calls and the string each carries; unknown kinds pass."""

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def check_openai(document: Mapping[str, Json], messages: Sequence[Json], report: Report) -> None:
    """Report what Chat Completions would refuse; the rest of the request has no rules here."""
    del document
    chat = _Chat(report)
    for line, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            report.add("not-a-message", line)
        elif message.get("role") not in ROLES:
            report.add("unknown-role", line)
        else:
            chat.add(line, message)
    chat.close_calls()
    check_images(chat.images, "openai", report)


@dataclass(slots=True)
class _Chat:
    """Follows a message list; calls are open only while tool messages follow."""

    report: Report
    images: list[LinedImage] = field(default_factory=list)
    _line: int = 0
    _ids: set[str] = field(default_factory=set)  # of all calls of earlier messages
    _calls: dict[str, tuple[int, int]] = field(default_factory=dict)  # still without a result
    _answered: set[str] = field(default_factory=set)  # calls of the last assistant message

    def add(self, line: int, message: Mapping[str, Json]) -> None:
        """Take the next message, an object of a known role."""
        self._line = line
        role = message["role"]
        if role == "tool":
            self._add_result(message.get("tool_call_id"))
        else:
            self.close_calls()
        self._check_content(message, role)
        if role == "assistant":
            self._add_calls(message.get("tool_calls"))

    def close_calls(self) -> None:
        """Report the calls nothing answered; no later message can."""
        for line, number in self._calls.values():
            self.report.add("unanswered-call", line, block=number)
        self._calls, self._answered = {}, set()

    def _add_result(self, call_id: Json) -> None:
        if not isinstance(call_id, str):
            self.report.add("orphan-result", self._line)
        elif self._calls.pop(call_id, None) is not None:
            self._answered.add(call_id)
        elif call_id in self._answered:
            self.report.add("duplicate-result", self._line)
        else:
            self.report.add("orphan-result", self._line)

    def _check_content(self, message: Mapping[str, Json], role: str) -> None:
        content = message.get("content")
        has_stand_in = role == "assistant" and any(message.get(key) for key in STAND_INS)
        if isinstance(content, str):
            self._check_text(content, 1, may_be_blank=has_stand_in or role in ("tool", "function"))
        elif isinstance(content, list) and (content or has_stand_in):
            for number, part in enumerate(content, 1):
                self._check_part(part, number, role)
        elif isinstance(content, list):
            self.report.add("empty-content", self._line)
        elif content is not None or not has_stand_in:
            self.report.add("no-content", self._line)

    def _check_text(self, text: str, number: int, *, may_be_blank: bool) -> None:
        if most := exceeded(len(text), "openai", "content_chars"):
            self.report.add("content-chars", self._line, count=len(text), limit=most)
        if not may_be_blank and (not text or text.isspace()):
            self.report.add("blank-text", self._line, block=number)

    def _check_part(self, part: Json, number: int, role: str) -> None:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            self.report.add("malformed-part", self._line, block=number)
        elif kind in TEXT_PARTS:
            text = part.get("text")
            if isinstance(text, str):
                self._check_text(text, number, may_be_blank=role in ("tool", "function"))
            else:
                self.report.add("malformed-part", self._line, block=number)
        elif kind == "image_url":
            self._check_image(part, number)
        elif kind in ANTHROPIC_TYPES:
            self.report.add("foreign-part", self._line, block=number)

    def _check_image(self, part: Mapping[str, Json], number: int) -> None:
        url = part.get("image_url")
        if not isinstance(url.get("url") if isinstance(url, dict) else None, str):
            self.report.add("malformed-part", self._line, block=number)
        else:
            self.images.append((self._line, image_of(dict(part))))

    def _add_calls(self, calls: Json) -> None:
        if calls is None:
            return
        if not isinstance(calls, list) or not calls:
            self.report.add("empty-calls", self._line)
            return
        if most := exceeded(len(calls), "openai", "calls"):
            self.report.add("call-count", self._line, count=len(calls), limit=most)
        for number, call in enumerate(calls, 1):
            if isinstance(call, dict):
                self._add_call(call, number)
                self._check_body(call, number)
            else:
                self._flag("malformed-call", number)
        self._ids.update(self._calls)

    def _add_call(self, call: Mapping[str, Json], number: int) -> None:
        call_id = call.get("id")
        if not isinstance(call_id, str) or not call_id:
            self._flag("call-id", number)
            return
        if most := exceeded(len(call_id), "openai", "id_chars"):
            self._flag("call-id-long", number, count=len(call_id), limit=most)
        if call_id in self._calls:
            self._flag("duplicate-call-id", number)
        elif call_id in self._ids:
            self._flag("repeated-call-id", number)
        self._calls.setdefault(call_id, (self._line, number))

    def _check_body(self, call: Mapping[str, Json], number: int) -> None:
        kind = call.get("type", "function")
        key = CALL_BODIES.get(kind) if isinstance(kind, str) else None
        body = call.get(kind) if key else None
        if key is None:
            return
        if not isinstance(body, dict) or not isinstance(body.get(key), str):
            self._flag("malformed-call", number)
            return
        name = body.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self._flag("call-name", number)
        elif exceeded(len(name), "openai", "name_chars_documented"):
            self._flag("call-name-doubtful", number)
        if kind == "function" and not is_object(body[key]):
            self._flag("arguments-not-object", number)

    def _flag(self, code: str, number: int, **numbers: int) -> None:
        self.report.add(code, self._line, block=number, **numbers)


def is_object(text: str) -> bool:
    """Return True when the text is one JSON object, strict or not."""
    try:
        _OBJECT.decode(text)
    except (ValueError, RecursionError):
        return _is_lenient_object(text)
    return True


def _is_lenient_object(text: str) -> bool:
    if text.lstrip()[:1] != "{":
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
