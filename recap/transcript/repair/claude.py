"""Repair of a Claude Code log whose lines are all JSON: uuids, parents, calls and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.transcript.lines import is_strict
from recap.transcript.model import Json, decode, encode
from recap.transcript.repair.chain import Names, Parents, moved
from recap.transcript.repair.elements import take_elements
from recap.transcript.repair.pairs import unpaired
from recap.transcript.repair.patch import Patch
from recap.transcript.repair.rows import rows_of
from recap.transcript.spans import element_spans, member_spans, strict_twin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from recap.transcript.repair.rows import Row
    from recap.transcript.sources import Sized
    from recap.transcript.spans import Span

SAID = ("type", "parentUuid", "isSidechain", "agentId", "isMeta", "isCompactSummary", "message")
"""Fields of a line of the conversation that are equal when it is written again."""

SENT = ("id", "role", "model", "content")
"""Fields of its message that are; usage, for example, may be counted anew."""

STAMPS = ("timestamp", "sessionId", "cwd", "version", "gitBranch", "slug", "forkedFrom")
"""Fields that may differ when a line of another kind is written again."""

FAULTS = {
    "null-block": "Block {0} is null",
    "orphan-result": "Result {0} answers no call in the file",
    "unanswered-call": "Call {0} has no result in the file",
}
"""Code -> what is wrong with a block, given its number."""


def mend_log(source: Sized, number: Callable[[int], int]) -> Patch:
    """Return what mends a log of which every line is JSON or blank.

    Args:
        source: The log.
        number: Line of the source -> line to report.
    """
    return _Log(source, number).mend()


class _Log:
    """State of one repair."""

    def __init__(self, source: Sized, number: Callable[[int], int]) -> None:
        self.source = source
        self.patch = Patch()
        self.rows = rows_of(source)
        for row in self.rows:
            row.line = number(row.line)
        self.names = Names(self.rows, self._is_same)
        self.blocks = unpaired(self.rows, self.names.twin.keys(), self.patch)
        self.dropped = set(self._dropped())
        self.parents = Parents(self.rows, self.names, self.dropped)

    def mend(self) -> Patch:
        """Return every change."""
        parents = moved(self.rows, self.names, self.parents, self.dropped)
        for at, row in enumerate(self.rows):
            if at in self.dropped:
                self._drop(at, row)
                continue
            if at in parents:
                self._report_parent(at, row)
            values = dict(self._references(at, row))
            if at in parents:
                values["parentUuid"] = parents[at]
            if values or at in self.blocks or row.named:
                self._edit(at, row, values)
        return self.patch

    def _is_same(self, one: Row, other: Row) -> bool:
        """Return True when a row repeats another."""
        first, second = (_essence(decode(self.source.read(*row.span))) for row in (one, other))
        return first == second

    def _dropped(self) -> Iterator[int]:
        """Yield the rows that are taken out as a whole."""
        named = {uuid for row in self.rows for uuid in row.named}
        for at, row in enumerate(self.rows):
            is_empty = bool(row.size) and len(self.blocks.get(at, ())) == row.size
            if at in self.names.twin:
                yield at
            elif not is_empty and (row.has_message or not row.is_spoken):
                continue
            elif row.uuid in named:
                detail = "Nothing of it is sent, but a compaction names this line; it is left."
                self.patch.leave("named-line", row.line, detail)
                self.blocks = {key: held for key, held in self.blocks.items() if key != at}
            else:
                yield at

    def _drop(self, at: int, row: Row) -> None:
        self.patch.take(row.span, (row.span[0], row.end))
        if at in self.names.twin:
            other = self.rows[self.names.twin[at]].line
            detail = f"It repeats line {other}; this copy is taken out."
            self.patch.note("duplicate-uuid", row.line, detail)
        elif row.size:
            self._report_blocks(at, row, "it is taken out with its line")
        else:
            detail = "The message is null or missing; the line is taken out."
            self.patch.note("no-message", row.line, detail)

    def _report_blocks(self, at: int, row: Row, outcome: str) -> None:
        for block, code in sorted(self.blocks[at].items()):
            self.patch.note(code, row.line, f"{FAULTS[code].format(block + 1)}; {outcome}.")

    def _report_parent(self, at: int, row: Row) -> None:
        above = self.parents.of(at)
        now = f"line {self.rows[above].line} is its parent" if above >= 0 else "it has none now"
        if at in self.parents.gaps:
            detail = f"Its parent is not in the file; {now}."
            self.patch.note("dangling-parent", row.line, detail)
        else:
            detail = f"Its parent was taken out or renamed; {now}."
            self.patch.note("re-parented", row.line, detail)

    def _references(self, at: int, row: Row) -> Iterator[tuple[str, Json]]:
        """Yield (key, new uuid) of the uuids that change, the parent's apart."""
        if at in self.names.renamed:
            detail = "A later line has the same uuid and another content; this one is renamed."
            self.patch.note("duplicate-uuid", row.line, detail)
            yield "uuid", self.names.of(at)
        stated = ("logicalParentUuid", row.logical_parent), ("sourceToolAssistantUUID", row.owner)
        for key, uuid in stated:
            meant = self.names.find(uuid, at) if uuid else None
            above = self.parents.kept(meant) if meant is not None else -1
            if above >= 0 and self.names.of(above) != uuid:
                yield key, self.names.of(above)

    def _edit(self, at: int, row: Row, values: Mapping[str, Json]) -> None:
        start, end = row.span
        data = self.source.read(start, end)
        data = data if is_strict(data) else strict_twin(data)  # of equal length
        members = member_spans(data)
        for key, value in values.items():
            self.patch.take(_moved(members[key], start), new=encode(value))
        if at in self.blocks:
            begin, end = members["message"]
            inner, stop = member_spans(data[begin:end])["content"]
            spans = element_spans(data[begin + inner : begin + stop])
            places = [_moved(span, start + begin + inner) for span in spans]
            take_elements(self.patch, places, self.blocks[at].keys())
            self._report_blocks(at, row, "it is taken out")
        if row.named:
            self._rename_in(at, data, _moved(members["compactMetadata"], 0), start)

    def _rename_in(self, at: int, data: bytes, span: Span, base: int) -> None:
        """Edit the uuids by which a compaction boundary names rows that are renamed."""
        for renamed, fresh in self.names.renamed.items():
            uuid = self.rows[renamed].uuid
            old = encode(uuid)
            if self.names.find(uuid, at) != renamed:
                continue
            begin = data.find(old, *span)
            while begin >= 0:
                self.patch.take(_moved((begin, begin + len(old)), base), new=encode(fresh))
                begin = data.find(old, begin + len(old), span[1])


def _moved(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by


def _essence(record: dict[str, Json]) -> dict[str, Json]:
    """Return what of a record is equal when the client writes it again."""
    message = record.get("message")
    if not isinstance(message, dict):
        return {key: value for key, value in record.items() if key not in STAMPS}
    said = {key: record.get(key) for key in SAID}
    return said | {"message": {key: message.get(key) for key in SENT}}
