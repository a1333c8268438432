"""Rules about the order of messages of the Anthropic Messages API: roles, calls and results.

The vendor joins adjacent messages of one role into a turn, so calls and results pair by turn, not
by message. System messages stand between turns and belong to none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recap.transcript.check.anthropic_blocks import is_directive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from recap.transcript.check.rules import Report
    from recap.transcript.model import Json

Place = tuple[int, int]
"""(message number, block number)."""


@dataclass(slots=True)
class Turns:
    """Follows a message list turn by turn. Messages must be objects of a known role."""

    report: Report
    _role: str = ""  # of the turn that runs
    _system: int = 0  # message that opened a run of system messages nothing has followed yet
    _ends_with_server_result: bool = False
    _ids: set[str] = field(default_factory=set)  # of all calls so far
    _calls: dict[str, Place] = field(default_factory=dict)  # of the last assistant turn
    _answered: set[str] = field(default_factory=set)
    _server_calls: dict[str, Place] = field(default_factory=dict)  # without a result so far
    _has_other: bool = False  # the user turn holds something that is no result
    _result_line: int = 0  # message that holds the user turn's first results

    def add(self, line: int, message: Mapping[str, Json]) -> None:
        """Take the next message."""
        role = message["role"]
        if role == "system":
            if not is_directive(message):
                self._add_system(line)
            return
        if line == 1 and role == "assistant":
            self.report.add("first-not-user", line)
        if self._system and role == "user":
            self.report.add("misplaced-system", self._system)
        self._system = 0
        if role == "assistant":
            self._add_assistant(line, message.get("content"))
        else:
            self._add_user(line, message.get("content"))
        self._role = role

    def close_calls(self) -> None:
        """Report the calls of the last assistant turn that nothing answered."""
        for call_id, (line, number) in self._calls.items():
            if call_id not in self._answered:
                self.report.add("unanswered-call", line, block=number)

    def _add_system(self, line: int) -> None:
        if self._system:
            return
        if self._role == "user" or self._ends_with_server_result:
            self._system = line
        else:
            self.report.add("misplaced-system", line)

    def _add_assistant(self, line: int, content: Json) -> None:
        if self._role == "user":
            self.close_calls()
            self._calls, self._answered = {}, set()
        self._ends_with_server_result = False
        for number, kind, block in _typed(content):
            is_server_result = kind.endswith("_tool_result")
            if kind == "tool_use":
                self._add_call(self._calls, (line, number), block)
            elif kind.endswith("_tool_use"):
                self._add_call(self._server_calls, (line, number), block)
            elif is_server_result and "tool_use_id" in block:
                self._add_server_result((line, number), block["tool_use_id"])
            self._ends_with_server_result = is_server_result

    def _add_call(self, calls: dict[str, Place], place: Place, block: Mapping[str, Json]) -> None:
        call_id = block.get("id")
        if not isinstance(call_id, str):
            return
        if call_id in self._ids:
            self.report.add("duplicate-call-id", place[0], block=place[1])
        self._ids.add(call_id)
        calls.setdefault(call_id, place)

    def _add_server_result(self, place: Place, call_id: Json) -> None:
        if not isinstance(call_id, str) or self._server_calls.pop(call_id, None) is None:
            self.report.add("orphan-server-result", place[0], block=place[1])

    def _add_user(self, line: int, content: Json) -> None:
        if self._role != "user":
            self._has_other, self._result_line = False, 0
        if isinstance(content, str):
            self._add_other()
        for number, kind, block in _typed(content):
            if kind == "tool_result":
                self._add_result((line, number), block.get("tool_use_id"))
            else:
                self._add_other()

    def _add_other(self) -> None:
        """Take content of the user that is no result: from here on open server calls are lost."""
        self._has_other = True
        for line, number in self._server_calls.values():
            self.report.add("open-server-call", line, block=number)
        self._server_calls.clear()

    def _add_result(self, place: Place, call_id: Json) -> None:
        line, number = place
        if not isinstance(call_id, str) or call_id not in self._calls:
            self.report.add("orphan-result", line, block=number)
        elif call_id in self._answered:
            self.report.add("duplicate-result", line, block=number)
        else:
            self._answered.add(call_id)
            self._check_place(line, number)

    def _check_place(self, line: int, number: int) -> None:
        if self._has_other:
            self.report.add("result-not-first", line, block=number)
        elif not self._result_line:
            self._result_line = line
        elif self._result_line != line:
            self.report.add("split-results", line)
            self._result_line = line


def _typed(content: Json) -> Iterator[tuple[int, str, Mapping[str, Json]]]:
    """Yield (number, type, block) of the well-formed blocks of a content list."""
    for number, block in enumerate(content if isinstance(content, list) else (), 1):
        if isinstance(block, dict) and isinstance(block.get("type"), str):
            yield number, block["type"], block
