"""The rules of Gemini's contents over a decoded list."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recap.transcript.check.images import LinedImage, check_images
from recap.transcript.images import image_of
from recap.transcript.limits import exceeded
from recap.transcript.model import Json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from recap.transcript.check.rules import Report

Part = dict[str, Json]

ROLES = ("user", "model", "function")
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*")

SPELLINGS: Mapping[str, str] = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "thought_signature": "thoughtSignature",
}
"""Names of the Python package -> names of the wire; the vendor takes both."""


def check_gemini(document: Mapping[str, Json], messages: Sequence[Json], report: Report) -> None:
    """Report what generateContent would refuse; the rest of the request has no rules here."""
    del document
    contents = _Contents(report)
    for line, content in enumerate(messages, 1):
        if not isinstance(content, dict):
            report.add("not-a-message", line)
        elif content.get("role", "user") not in ROLES:
            report.add("unknown-role", line)
        else:
            contents.add(line, content)
    contents.close()
    check_images(contents.images, "gemini", report)


@dataclass(slots=True)
class _Contents:
    """Follows a list content by content; only the next one answers calls."""

    report: Report
    images: list[LinedImage] = field(default_factory=list)
    _line: int = 0
    _role: str = ""  # of the content before
    _calls: int = 0  # that the content before made
    _calls_line: int = 0

    def add(self, line: int, content: Mapping[str, Json]) -> None:
        """Take the next content, an object of a known role."""
        self._line = line
        role, parts = content.get("role", "user"), content.get("parts")
        if line == 1 and role == "model":
            self.report.add("first-not-user", line)
        if not isinstance(parts, list):
            self.report.add("no-content", line)
        elif not parts:
            self.report.add("empty-content", line)
        numbered = list(_parts(parts, line, self.report))
        for number, part in numbered:
            self._check_part(part, number, role)
        calls = sum("functionCall" in part for _, part in numbered if role == "model")
        results = [n for n, part in numbered if "functionResponse" in part and role != "model"]
        self._pair(calls, results)
        self._role = role

    def close(self) -> None:
        """Report the calls of the last content."""
        if self._calls:
            self.report.add("unanswered-call", self._calls_line)

    def _pair(self, calls: int, results: Sequence[int]) -> None:
        if calls and self._role == "model":
            self.report.add("misplaced-call", self._line)
        if self._calls and not results:
            self.report.add("unanswered-call", self._calls_line)
        elif not self._calls:
            for number in results:
                self._flag("orphan-result", number)
        elif len(results) != self._calls:
            self.report.add("response-count", self._line, count=len(results), calls=self._calls)
        self._calls, self._calls_line = calls, self._line

    def _flag(self, code: str, number: int) -> None:
        self.report.add(code, self._line, block=number)

    def _check_part(self, part: Part, number: int, role: str) -> None:
        owner = "model" if "functionCall" in part else "user"
        if ("functionCall" in part or "functionResponse" in part) and (
            owner != ("model" if role == "model" else "user")
        ):
            self._flag("wrong-role", number)
        elif "functionCall" in part:
            self._check_call(part["functionCall"], number)
        elif "functionResponse" in part:
            self._check_response(part["functionResponse"], number)
        elif "text" in part:
            if not isinstance(part["text"], str):
                self._flag("malformed-part", number)
            elif not part["text"] and not part.get("thoughtSignature"):
                self._flag("blank-text", number)
        elif "inlineData" in part:
            self._check_image(part, number)
        elif not any(isinstance(value, dict) for value in part.values()):
            self._flag("malformed-part", number)

    def _check_call(self, call: Json, number: int) -> None:
        if not isinstance(call, dict):
            self._flag("malformed-part", number)
            return
        name, arguments = call.get("name"), call.get("args")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self._flag("call-name", number)
        elif exceeded(len(name), "gemini", "name_chars_documented"):
            self._flag("call-name-doubtful", number)
        if arguments is not None and not isinstance(arguments, dict):
            self._flag("call-input", number)

    def _check_response(self, response: Json, number: int) -> None:
        is_whole = (
            isinstance(response, dict)
            and isinstance(response.get("name"), str)
            and bool(response["name"])
            and isinstance(response.get("response"), dict)
        )
        if not is_whole:
            self._flag("malformed-result", number)

    def _check_image(self, part: Part, number: int) -> None:
        data = part["inlineData"]
        media_type = data.get("mimeType", data.get("mime_type")) if isinstance(data, dict) else None
        if not isinstance(media_type, str) or not isinstance(data.get("data"), str):
            self._flag("malformed-part", number)
        elif media_type.startswith("image/"):
            self.images.append((self._line, image_of(part)))


def _parts(parts: Json, line: int, report: Report) -> Iterator[tuple[int, Part]]:
    """Yield the numbered parts that are objects, their fields spelled as on the wire."""
    for number, part in enumerate(parts if isinstance(parts, list) else (), 1):
        if isinstance(part, dict):
            yield number, {SPELLINGS.get(key, key): part[key] for key in part}
        else:
            report.add("malformed-part", line, block=number)
