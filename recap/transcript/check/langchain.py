"""The rules of LangChain message lists: what its loaders and the providers behind it refuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from recap.transcript.model import Json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import UnionType

    from recap.transcript.check.rules import Report

Fields = dict[str, Json]

TYPES = ("human", "ai", "system", "developer", "tool", "function", "chat")
CALL_BLOCKS = ("tool_use", "tool_call", "function_call", "custom_tool_call", "invalid_tool_call")
"""Blocks of the content that are calls, where ``tool_calls`` does not hold them too."""

LEGACY = "function_call"
"""Stands for the id of a call that has none, answered by a function message."""


def check_langchain(document: Mapping[str, Json], messages: Sequence[Json], report: Report) -> None:
    """Report what LangChain cannot load, or the provider would refuse when it is sent."""
    del document
    chat = _Chat(report)
    first = ""
    for line, message in enumerate(messages, 1):
        form = _form(message)
        first = first or form
        if not form:
            report.add("not-a-message", line)
        elif form != first:
            report.add("mixed-forms", line)
        elif (kind := _type(message, form)) not in TYPES:
            report.add("unknown-role", line)
        else:
            chat.add(line, kind, message[form])
    chat.close_calls()


def _form(message: Json) -> str:
    """Return the key of the message's fields, "" where it is no message."""
    if not isinstance(message, dict):
        return ""
    if "lc" in message:
        return "kwargs" if isinstance(message.get("kwargs"), dict) else ""
    return "data" if "type" in message and isinstance(message.get("data"), dict) else ""


def _type(message: Fields, form: str) -> str:
    name = message.get("type")
    if form == "kwargs":
        path = message.get("id")
        name = path[-1] if isinstance(path, list) and path else message["kwargs"].get("type")
    if not isinstance(name, str):
        return ""
    return name.removesuffix("Chunk").removesuffix("Message").lower()


class _Call(NamedTuple):
    """A call of any form: its id and tool as given, whether its arguments are of the right type."""

    id: Json
    name: Json
    is_whole: bool


@dataclass(slots=True)
class _Chat:
    """Follows a list; calls are open only while tool messages follow."""

    report: Report
    _line: int = 0
    _ids: set[str] = field(default_factory=set)  # of all calls of earlier messages
    _calls: dict[str, tuple[int, int]] = field(default_factory=dict)  # still without a result
    _answered: set[str] = field(default_factory=set)  # calls of the last ai message

    def add(self, line: int, kind: str, fields: Fields) -> None:
        """Take the next message."""
        self._line = line
        if kind in ("tool", "function"):
            self._add_result(LEGACY if kind == "function" else fields.get("tool_call_id"))
        else:
            self.close_calls()
        calls = list(_calls(fields)) if kind == "ai" else []
        may_be_blank = bool(calls) or kind in ("tool", "function")
        self._check_content(fields.get("content"), may_be_blank=may_be_blank)
        for number, call in enumerate(calls, 1):
            self._add_call(call, number)
        self._ids.update(self._calls)

    def close_calls(self) -> None:
        """Report the calls nothing answered; no later message can."""
        for line, number in self._calls.values():
            self.report.add("unanswered-call", line, block=number)
        self._calls, self._answered = {}, set()

    def _add_result(self, call_id: Json) -> None:
        if isinstance(call_id, str) and self._calls.pop(call_id, None) is not None:
            self._answered.add(call_id)
        else:
            is_repeat = isinstance(call_id, str) and call_id in self._answered
            self.report.add("duplicate-result" if is_repeat else "orphan-result", self._line)

    def _check_content(self, content: Json, *, may_be_blank: bool) -> None:
        if isinstance(content, str):
            self._check_text(content, 1, may_be_blank=may_be_blank)
        elif not isinstance(content, list):
            self.report.add("no-content", self._line)
        else:
            if not content and not may_be_blank:
                self._flag("blank-text", 1)
            for number, block in enumerate(content, 1):
                self._check_block(block, number, may_be_blank=may_be_blank)

    def _check_block(self, block: Json, number: int, *, may_be_blank: bool) -> None:
        if isinstance(block, str):
            self._check_text(block, number, may_be_blank=may_be_blank)
        elif not isinstance(block, dict):
            self._flag("malformed-block", number)
        elif block.get("type") == "text":
            if isinstance(block.get("text"), str):
                self._check_text(block["text"], number, may_be_blank=may_be_blank)
            else:
                self._flag("malformed-block", number)

    def _check_text(self, words: str, number: int, *, may_be_blank: bool) -> None:
        if not may_be_blank and (not words or words.isspace()):
            self._flag("blank-text", number)

    def _add_call(self, call: _Call, number: int) -> None:
        if not isinstance(call.name, str) or not call.name or not call.is_whole:
            self._flag("malformed-call", number)
        if not isinstance(call.id, str) or not call.id:
            self._flag("call-id", number)
            return
        if call.id in self._calls:
            self._flag("duplicate-call-id", number)
        elif call.id in self._ids and call.id != LEGACY:
            self._flag("repeated-call-id", number)
        self._calls.setdefault(call.id, (self._line, number))

    def _flag(self, code: str, number: int) -> None:
        self.report.add(code, self._line, block=number)


def _calls(fields: Fields) -> Iterator[_Call]:
    """Yield the calls of an ai message.

    Those in ``additional_kwargs`` count where there are no others, as LangChain loads them; those in
    the content where ``tool_calls`` does not hold them too.
    """
    calls = [
        *(_call(call, dict) for call in _list(fields.get("tool_calls"))),
        *(_call(call, str | None) for call in _list(fields.get("invalid_tool_calls"))),
    ]
    extra = fields.get("additional_kwargs")
    if not calls and isinstance(extra, dict):
        for call in _list(extra.get("tool_calls")):
            function = call.get("function") if isinstance(call, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            calls.append(_Call(_get(call, "id"), name, True))
        if not calls and isinstance(extra.get("function_call"), dict):
            calls.append(_Call(LEGACY, extra["function_call"].get("name"), True))
    yield from calls
    ids = {call.id for call in calls if isinstance(call.id, str)}
    for block in _list(fields.get("content")):
        if _get(block, "type") in CALL_BLOCKS:
            call_id = _get(block, "call_id") or _get(block, "id")
            if call_id not in ids:
                yield _Call(call_id, _get(block, "name"), True)


def _call(call: Json, arguments: type | UnionType) -> _Call:
    is_whole = isinstance(_get(call, "args"), arguments)
    return _Call(_get(call, "id"), _get(call, "name"), is_whole)


def _get(value: Json, key: str) -> Json:
    return value.get(key) if isinstance(value, dict) else None


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
