"""Rules about single messages and blocks of the Anthropic Messages API."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recap.transcript.images import image_of
from recap.transcript.limits import IMAGE_MEDIA_TYPES, exceeded
from recap.transcript.model import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.check.images import LinedImage
    from recap.transcript.check.rules import Report

Block = dict[str, Json]

NAME = re.compile(r"[a-zA-Z0-9_-]*")
CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
THINKING = ("thinking", "redacted_thinking")
OWNER: Mapping[str, str] = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}
"""Block types that only one role may hold."""

SOURCE_FIELDS = (("base64", "data"), ("url", "url"), ("file", "file_id"))
"""Image sources and the string each needs; unknown sources pass."""


def is_directive(message: Mapping[str, Json]) -> bool:
    """Return True for the system message that only carries an ``output_config``.

    It is the one message that may be empty and may stand anywhere.
    """
    return (
        message.get("role") == "system"
        and message.get("content") == []
        and "output_config" in message
    )


def _is_thinking(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") in THINKING


def _is_blank(text: str) -> bool:
    """Return True for a text that is empty or only white space."""
    return not text or text.isspace()


@dataclass(slots=True)
class Blocks:
    """Checks messages one by one; keeps what is limited for the request as a whole.

    Attributes:
        report: Takes the findings.
        images: Every image seen.
        markers: Blocks with ``cache_control`` seen.
    """

    report: Report
    images: list[LinedImage] = field(default_factory=list)
    markers: int = 0
    _line: int = 0
    _number: int = 0

    def check_head(self, system: Json, tools: Json) -> None:
        """Check the system blocks and count the cache markers of system and tools."""
        for number, block in enumerate(system if isinstance(system, list) else (), 1):
            self._number = number
            if isinstance(block, dict):
                self._count_marker(block)
                if block.get("type") == "text":
                    self._check_text(block)
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict):
                self._count_marker(tool)

    def check_message(self, line: int, message: Block) -> None:
        """Check one message of a known role."""
        self._line, self._number = line, 1
        role, content = message["role"], message.get("content")
        if isinstance(content, str):
            if content.isspace():
                self._flag("blank-text")
        elif not isinstance(content, list):
            self.report.add("no-content", line)
        else:
            self._check_blocks(content, role)
        if content in ("", []) and not is_directive(message):
            code = "empty-assistant" if content == [] and role == "assistant" else "empty-content"
            self.report.add(code, line)

    def _check_blocks(self, content: Sequence[Json], role: str) -> None:
        for number, block in enumerate(content, 1):
            self._number = number
            self._check_block(block, role)
        if role == "assistant" and content and _is_thinking(content[-1]):
            code = "thinking-only" if all(map(_is_thinking, content)) else "thinking-last"
            self.report.add(code, self._line)

    def _flag(self, code: str, **numbers: int) -> None:
        self.report.add(code, self._line, block=self._number, **numbers)

    def _count_marker(self, block: Block) -> None:
        self.markers += block.get("cache_control") is not None

    def _check_block(self, block: Json, role: str) -> None:
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str):
            self._flag("malformed-block")
            return
        self._count_marker(block)
        if OWNER.get(kind, role) != role:
            self._flag("wrong-role")
        elif kind in _CHECKS:
            _CHECKS[kind](self, block)

    def _check_text(self, block: Block, blank: str = "blank-text") -> None:
        text = block.get("text")
        if not isinstance(text, str):
            self._flag("malformed-block")
        elif _is_blank(text):
            self._flag(blank)

    def _check_thinking(self, block: Block) -> None:
        signature = block.get("signature")
        if not isinstance(block.get("thinking"), str):
            self._flag("malformed-block")
        elif not isinstance(signature, str) or not signature:
            self._flag("unsigned-thinking")

    def _check_redacted(self, block: Block) -> None:
        data = block.get("data")
        if not isinstance(data, str) or not data:
            self._flag("empty-redacted-thinking")

    def _check_call(self, block: Block) -> None:
        call_id, name = block.get("id"), block.get("name")
        if not isinstance(call_id, str) or not CALL_ID.fullmatch(call_id):
            self._flag("call-id")
        elif most := exceeded(len(call_id), "anthropic", "id_chars"):
            self._flag("call-id-long", count=len(call_id), limit=most)
        if not isinstance(block.get("input"), dict):
            self._flag("call-input")
        if not isinstance(name, str) or not name or exceeded(len(name), "anthropic", "name_chars"):
            self._flag("call-name")
        elif not NAME.fullmatch(name) or exceeded(len(name), "anthropic", "name_chars_documented"):
            self._flag("call-name-doubtful")

    def _check_result(self, block: Block) -> None:
        content = block.get("content")
        if not isinstance(block.get("tool_use_id"), str) or not (
            content is None or isinstance(content, str | list)
        ):
            self._flag("malformed-block")
        elif block.get("is_error") is True and not content:
            self._flag("empty-error-result")
        for inner in content if isinstance(content, list) else ():
            kind = inner.get("type") if isinstance(inner, dict) else None
            if not isinstance(kind, str):
                self._flag("malformed-block")
            elif kind == "text":
                self._check_text(inner, "blank-result-text")
            elif kind == "image":
                self._check_image(inner)

    def _check_image(self, block: Block) -> None:
        source = block.get("source")
        if not isinstance(source, dict):
            self._flag("malformed-block")
            return
        kind = source.get("type")
        if any(
            kind == name and not isinstance(source.get(key), str) for name, key in SOURCE_FIELDS
        ):
            self._flag("malformed-block")
        elif kind == "base64" and source.get("media_type") not in IMAGE_MEDIA_TYPES:
            self._flag("image-type")
        self.images.append((self._line, image_of(block)))


_CHECKS: Mapping[str, Callable[[Blocks, Block], None]] = {
    "text": Blocks._check_text,
    "thinking": Blocks._check_thinking,
    "redacted_thinking": Blocks._check_redacted,
    "tool_use": Blocks._check_call,
    "tool_result": Blocks._check_result,
    "image": Blocks._check_image,
}
