"""The rules of Claude Code's loader over a log: lines, required fields, parent chain, pairs.

The client repairs much of what it loads, so this asks what it would lose, invent or refuse, not
what the API would.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from recap.transcript.check.chain import Node, check_chain
from recap.transcript.check.rules import RULES, Report
from recap.transcript.lines import Report as LineReport
from recap.transcript.lines import read_records
from recap.transcript.model import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from recap.transcript.model import Json
    from recap.transcript.sources import Sized

MESSAGE_TYPES = ("user", "assistant")
NODE_TYPES = ("user", "assistant", "system", "progress", "attachment")

HEAD_BYTES = 1 << 10
_EXPORT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"loglines"\s*:')
_ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def check_claude_code(source: Sized, report: Report) -> None:
    """Report what the client would lose, invent or refuse when it resumes the log."""
    lines = LineReport()
    log = _Log(report)
    for line, value in _records(source, lines):
        log.add(line, value)
    log.end()
    for finding in lines.findings:
        rule = RULES["claude-code"].get(finding.code)
        report.findings.append(replace(finding, severity=rule.severity) if rule else finding)


def _records(source: Sized, lines: LineReport) -> Iterator[tuple[int, Json]]:
    """Yield (line, value) of what the client sees; of an exported document its elements.

    What a reader can salvage from a bad line is not among it: the client skips such lines.
    """
    exported = _exported(source)
    if exported is not None:
        yield from enumerate(exported, 1)
        return
    for record in read_records(source, _ANY, lines):
        if not lines.findings or lines.findings[-1].line != record.line:
            yield record.line, record.value


def _exported(source: Sized) -> Sequence[Json] | None:
    """Return the lines of a claude.ai/code export; None for any other file."""
    if not _EXPORT.match(source.read(0, min(source.size, HEAD_BYTES))):
        return None
    try:
        document = decode(source.read(0, source.size))
    except ValueError:
        return None
    lines = document.get("loglines") if isinstance(document, dict) else None
    return lines if isinstance(lines, list) else None


@dataclass(slots=True)
class _Log:
    """Takes the records of a log; keeps only what the rules over the whole file need."""

    report: Report
    _nodes: list[Node] = field(default_factory=list)
    _uuids: set[str] = field(default_factory=set)
    _calls: dict[str, tuple[int, int]] = field(default_factory=dict)  # id: (line, block)
    _results: dict[str, tuple[int, int]] = field(default_factory=dict)
    _sessions: set[str] = field(default_factory=set)
    _records: int = 0

    def add(self, line: int, value: Json) -> None:
        """Take one record."""
        self._records += 1
        if value is None:
            self.report.add("null-line", line)
        elif not isinstance(value, dict) or not isinstance(value.get("type"), str):
            self.report.add("not-a-record", line)
        elif value["type"] in NODE_TYPES:
            self._add_node(line, value)

    def end(self) -> None:
        """Check what shows only over the whole file."""
        for call_id, (line, number) in self._calls.items():
            if call_id not in self._results:
                self.report.add("unanswered-call", line, block=number)
        for call_id, (line, number) in self._results.items():
            if call_id not in self._calls:
                self.report.add("orphan-result", line, block=number)
        if any(node.is_message for node in self._nodes):
            check_chain(self._nodes, self._uuids, self.report)
        elif self._records:
            self.report.add("no-conversation")

    def _add_node(self, line: int, record: Mapping[str, Json]) -> None:
        is_message = record["type"] in MESSAGE_TYPES
        uuid, parent = record.get("uuid"), record.get("parentUuid")
        is_side = record.get("isSidechain") is True
        if isinstance(uuid, str):
            if uuid in self._uuids:
                self.report.add("duplicate-uuid", line)
            self._uuids.add(uuid)
        self._nodes.append(
            Node(
                line,
                uuid if isinstance(uuid, str) else "",
                parent if isinstance(parent, str) else "",
                is_message,
                is_side,
                record.get("subtype") == "compact_boundary",
            )
        )
        self._check_session(line, record.get("sessionId"))
        if is_message:
            self._check_record(line, record)

    def _check_session(self, line: int, session: Json) -> None:
        if isinstance(session, str) and session not in self._sessions:
            if self._sessions:
                self.report.add("several-sessions", line)
            self._sessions.add(session)

    def _check_record(self, line: int, record: Mapping[str, Json]) -> None:
        for key in ("timestamp", "uuid"):
            if not isinstance(record.get(key), str):
                self.report.add(f"no-{key}", line)
        message = record.get("message")
        if not isinstance(message, dict):
            self.report.add("no-message", line)
            return
        if record["type"] == "assistant" and not isinstance(message.get("model"), str):
            self.report.add("no-model", line)
        content = message.get("content")
        if not isinstance(content, str | list):
            self.report.add("no-content", line)
        elif not content or (isinstance(content, str) and content.isspace()):
            self.report.add("empty-content", line)
        elif isinstance(content, list):
            self._check_blocks(line, content)

    def _check_blocks(self, line: int, content: Sequence[Json]) -> None:
        for number, block in enumerate(content, 1):
            if block is None:
                self.report.add("null-block", line, block=number)
            elif not isinstance(block, dict):
                self.report.add("bare-block", line, block=number)
            elif isinstance(kind := block.get("type"), str):
                self._pair(kind, block, (line, number))

    def _pair(self, kind: str, block: Mapping[str, Json], place: tuple[int, int]) -> None:
        """Note a call or a result; the kinds of server tools count too."""
        call_id, answers = block.get("id"), block.get("tool_use_id")
        if kind.endswith("tool_use") and isinstance(call_id, str):
            self._calls.setdefault(call_id, place)
        elif kind.endswith("tool_result") and isinstance(answers, str):
            self._results.setdefault(answers, place)
