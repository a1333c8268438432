"""The rules of OpenAI Responses over a decoded list of items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recap.transcript.check.images import LinedImage, check_images
from recap.transcript.check.openai import NAME, is_object
from recap.transcript.images import image_of
from recap.transcript.limits import exceeded
from recap.transcript.model import Json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.transcript.check.rules import Report

Item = dict[str, Json]

ROLES = ("user", "assistant", "system", "developer")

CALLS: Mapping[str, str] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
    "program": "code",
}
"""Type of an item that calls a tool -> its arguments; unknown types pass."""

TEXT_ARGUMENTS = ("function_call", "custom_tool_call")
SELF_ANSWERED = ("tool_search_call",)
"""Calls that the vendor may run itself; then they have no call_id."""
SEARCHED = "tool_search_output"

OUTPUTS = frozenset(
    ("function_call_output", "custom_tool_call_output", "local_shell_call_output",
     "shell_call_output", "apply_patch_call_output", "computer_call_output", "program_output")
)  # fmt: skip

APPROVAL, APPROVED = "mcp_approval_request", "mcp_approval_response"
USER_ITEMS = (*OUTPUTS, SEARCHED, APPROVED, "compaction")
"""Items that the model did not make: reasoning cannot belong to them."""

TEXTS = ("input_text", "output_text")
CHAT_PARTS = ("text", "image_url", "tool_use", "tool_result")
ANSWER_PARTS = ("output_text", "refusal")


def check_responses(document: Mapping[str, Json], messages: Sequence[Json], report: Report) -> None:
    """Report what the Responses API would refuse; the rest of the request has no rules here."""
    del document
    items = _Items(report)
    for line, item in enumerate(messages, 1):
        if isinstance(item, dict):
            items.add(line, item)
        else:
            report.add("not-a-message", line)
    items.close()
    check_images(items.images, "responses", report)


@dataclass(slots=True)
class _Items:
    """Follows a list item by item."""

    report: Report
    images: list[LinedImage] = field(default_factory=list)
    _line: int = 0
    _ids: set[str] = field(default_factory=set)  # of items
    _calls: dict[str, int] = field(default_factory=dict)  # call_id -> line
    _shells: dict[str, str] = field(default_factory=dict)  # id of a shell's item -> call_id
    _answered: set[str] = field(default_factory=set)
    _reasoning: list[int] = field(default_factory=list)  # lines that wait for their item

    def add(self, line: int, item: Item) -> None:
        """Take the next item."""
        self._line = line
        kind = item.get("type", "message" if "role" in item else None)
        if not isinstance(kind, str):
            self.report.add("no-type", line)
            return
        self._check_id(item, kind)
        self._follow(item, kind)
        if kind == "message":
            self._check_message(item)
        elif kind == "reasoning":
            if not isinstance(item.get("summary"), list):
                self.report.add("malformed-reasoning", line)
        elif kind in CALLS:
            self._check_call(item, kind)
        elif kind in OUTPUTS:
            self._check_output(item, kind)
        elif kind in (APPROVAL, APPROVED):
            self._check_approval(item, kind)
        elif kind == SEARCHED and item.get("call_id") is not None:
            self._add_result(item["call_id"])

    def close(self) -> None:
        """Report what still waits for something."""
        self._close_reasoning()
        for call_id, line in self._calls.items():
            if call_id not in self._answered:
                self.report.add("unanswered-call", line)

    def _close_reasoning(self) -> None:
        for line in self._reasoning:
            self.report.add("reasoning-alone", line)
        self._reasoning.clear()

    def _check_id(self, item: Item, kind: str) -> None:
        uid = item.get("id")
        # The output of a local shell names its call by it.
        if isinstance(uid, str) and uid and kind != "local_shell_call_output":
            if uid in self._ids:
                self.report.add("duplicate-item-id", self._line)
            self._ids.add(uid)

    def _follow(self, item: Item, kind: str) -> None:
        """Note whether reasoning finds the item it belongs to."""
        if kind == "reasoning":
            self._reasoning.append(self._line)
        elif kind in USER_ITEMS or (kind == "message" and item.get("role") != "assistant"):
            self._close_reasoning()
        else:
            self._reasoning.clear()

    def _check_message(self, item: Item) -> None:
        role, content = item.get("role"), item.get("content")
        if role not in ROLES:
            self.report.add("unknown-role", self._line)
        if isinstance(content, str):
            self._check_text(content, 1)
        elif not isinstance(content, list):
            self.report.add("no-content", self._line)
        elif not content:
            self.report.add("empty-content", self._line)
        else:
            for number, part in enumerate(content, 1):
                self._check_part(part, number, role)

    def _check_part(self, part: Json, number: int, role: Json) -> None:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            self._flag("malformed-part", number)
        elif kind in CHAT_PARTS or (role == "assistant" and kind not in ANSWER_PARTS):
            self._flag("wrong-part", number)
        elif kind in TEXTS:
            words = part.get("text")
            if isinstance(words, str):
                self._check_text(words, number)
            else:
                self._flag("malformed-part", number)
        elif kind == "input_image":
            self._check_image(part, number)

    def _check_text(self, words: str, number: int) -> None:
        if most := exceeded(len(words), "responses", "content_chars"):
            self.report.add("content-chars", self._line, count=len(words), limit=most)
        if not words or words.isspace():
            self._flag("blank-text", number)

    def _check_image(self, part: Item, number: int) -> None:
        if isinstance(part.get("image_url"), str) or isinstance(part.get("file_id"), str):
            self.images.append((self._line, image_of(part)))
        else:
            self._flag("malformed-part", number)

    def _flag(self, code: str, number: int) -> None:
        self.report.add(code, self._line, block=number)

    def _check_call(self, item: Item, kind: str) -> None:
        call_id, arguments = item.get("call_id"), item.get(CALLS[kind])
        if call_id is None and kind in SELF_ANSWERED:
            return
        self._add_call(call_id)
        if kind == "local_shell_call" and isinstance(item.get("id"), str):
            self._shells[item["id"]] = call_id if isinstance(call_id, str) else ""
        if isinstance(arguments, str):
            if kind == "function_call" and not is_object(arguments):
                self.report.add("arguments-not-object", self._line)
        elif kind in TEXT_ARGUMENTS or (arguments is None and item.get("actions") is None):
            self.report.add("malformed-call", self._line)
        if kind in TEXT_ARGUMENTS:
            self._check_name(item.get("name"))

    def _check_name(self, name: Json) -> None:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self.report.add("call-name", self._line)
        elif exceeded(len(name), "responses", "name_chars_documented"):
            self.report.add("call-name-doubtful", self._line)

    def _add_call(self, call_id: Json) -> None:
        if not isinstance(call_id, str) or not call_id:
            self.report.add("call-id", self._line)
            return
        if most := exceeded(len(call_id), "responses", "id_chars"):
            self.report.add("call-id-long", self._line, count=len(call_id), limit=most)
        if call_id in self._calls:
            self.report.add("duplicate-call-id", self._line)
        self._calls.setdefault(call_id, self._line)

    def _check_output(self, item: Item, kind: str) -> None:
        call_id, key = item.get("call_id"), "result" if kind == "program_output" else "output"
        if call_id is None and kind == "local_shell_call_output":
            uid = item.get("id")
            call_id = self._shells.get(uid, uid) if isinstance(uid, str) else None
        self._add_result(call_id)
        output = item.get(key)
        is_optional = kind == "apply_patch_call_output" and output is None
        if not is_optional and not isinstance(output, str | list | dict):
            self.report.add("malformed-result", self._line)
        for number, part in enumerate(output if isinstance(output, list) else (), 1):
            if isinstance(part, dict) and part.get("type") == "input_image":
                self._check_image(part, number)
            elif isinstance(part, dict) and part.get("type") in CHAT_PARTS:
                self._flag("wrong-part", number)

    def _add_result(self, call_id: Json) -> None:
        if not isinstance(call_id, str) or call_id not in self._calls:
            self.report.add("orphan-result", self._line)
        elif call_id in self._answered:
            self.report.add("duplicate-result", self._line)
        else:
            self._answered.add(call_id)

    def _check_approval(self, item: Item, kind: str) -> None:
        if kind == APPROVAL:
            self._add_call(item.get("id"))
        else:
            self._add_result(item.get("approval_request_id"))
