"""Proof of a changed line: read anew, it is what it was but for what the plan takes out of it."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from recap.cmv.contents import ASSISTANT, BLOCKS, COPY, NULLS, RESULT, USER
from recap.cmv.index import LANE
from recap.cmv.records import ABSENT, FAILURES, Record, decode_record, loose_record
from recap.transcript.links import NO_PARENT, UNKNOWN

if TYPE_CHECKING:
    from recap.cmv.plan import Plan


class Proofs:
    """Proves the lines of one log as planned."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._index = plan.index
        self._links = plan.links

    def of(
        self, at: int, source: Record, line: bytes, parent: int, stub: bytes | None = None
    ) -> int | str:
        """Return the characters of a changed line that are sent, or what is wrong with it.

        Args:
            at: Its node.
            source: What it was.
            line: Its bytes as they are to be written.
            parent: The node it follows now, UNKNOWN for the one it followed.
            stub: What its one result has to be; None for what it was, or where a scan chose it.
        """
        record = _record_or_none(line)
        if record is None:
            return "it cannot be read any more"
        if not self._has_links(at, source, record, parent):
            return "its links changed"
        flags, message = self._index.flags[at], record.message
        if not flags & (USER | ASSISTANT):
            return 0
        if message is None or message.usage is not ABSENT or record.usage is not ABSENT:
            return "usage is left"
        if flags & COPY and record.toolUseResult is not ABSENT:
            return "the copy of a result is left"
        reader = self._index.reader
        if flags & (RESULT | BLOCKS | NULLS) or not reader.is_verbatim:
            return self._of_blocks(at, source, record, stub)
        if reader.words(record) != reader.words(source):
            return "its texts or calls changed"
        return self._index.cost[at]

    def _of_blocks(self, at: int, source: Record, record: Record, stub: bytes | None) -> int | str:
        """Go on with the proof of a line whose blocks may change."""
        reader = self._index.reader
        now, cost, said, tools = reader.message(record)
        if said != reader.words(source):
            return "its texts or calls changed"
        if array("q", tools) != self._plan.pairs.kept_tools(at) or now & NULLS:
            return "its blocks changed"
        if stub is not None and bytes(record.message.content[0].content) != stub:  # type: ignore[union-attr,index]  # one result, by its tools
            return "its result is no stub"
        return cost if cost <= self._index.cost[at] else "it grew"

    def _has_links(self, at: int, source: Record, record: Record, parent: int) -> bool:
        """Return True when a changed line is the same link, and follows what it has to follow."""
        links = self._links
        side = LANE if (record.isSidechain is True) != self._index.of_side_chains else 0
        stated, uuid = record.parentUuid, record.uuid
        message, before = record.message, source.message
        above = NO_PARENT if stated is None else hash(stated) ^ side if stated else 0
        wanted = self._plan.stated_key(at) if parent == UNKNOWN else self._plan.key_for(at, parent)
        return (
            above == wanted
            and (hash(uuid) ^ side if uuid else 0) == links.uuid[at]
            and record.sourceToolAssistantUUID == source.sourceToolAssistantUUID
            and (message.id if message else None) == (before.id if before else None)
        )


def _record_or_none(line: bytes) -> Record | None:
    try:
        return decode_record(line)
    except FAILURES:
        pass
    try:
        return loose_record(line)[0]
    except ValueError:
        return None
