"""Third step: the lines that stay, each edited and proved before it is written."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from recap.cmv.contents import (
    ASSISTANT,
    ATTACHMENT,
    BLOCKS,
    COPY,
    ERROR,
    LONG,
    NULLS,
    RESULT,
    SCAN,
    THINKING,
    USER,
)  # fmt: skip
from recap.cmv.index import CUT_COPY, CUT_RESULT, LANE, NODE
from recap.cmv.plan import ACTIVE, DROPPED, SPARED, WINDOW
from recap.cmv.records import ABSENT, Record, record_of
from recap.cmv.results import images_in, stubbed_result
from recap.cmv.scan import Wanted, scanned
from recap.cmv.stubs import Call, about, harmless, restorable
from recap.errors import InvalidContextError
from recap.transcript.lines import BOM, split_lines
from recap.transcript.links import NO_PARENT, key_of
from recap.transcript.model import decode, encode
from recap.transcript.repair.patch import Edit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.cmv.plan import Plan

_PARENT = re.compile(rb'"parentUuid"\s*:\s*("[^"\\]*"|null)')
_SESSION = re.compile(rb'"sessionId"\s*:\s*("[^"\\]*")')


Cuts: TypeAlias = "list[tuple[int, int, int]]"


class Written(NamedTuple):
    """What was written: its bytes, lines, SHA-256, and the characters of it that are sent."""

    size: int
    lines: int
    sha256: bytes
    active_chars: int


class Writer:
    """Writes a log as planned.

    Args:
        plan: What is done with each line.
        session: Id of the new session, None to leave it.
    """

    def __init__(self, plan: Plan, session: str | None) -> None:
        self.plan = plan
        self.index = plan.index
        self.links = plan.links
        self.options = plan.options
        self.session = encode(session) if session is not None else None
        self.counts: Counter[str] = Counter()
        self.active_chars = 0
        self._cursor = 0

    def write(self, write: Callable[[bytes], object]) -> Written:
        """Write all lines.

        Raises:
            InvalidContextError: An edit of a line cannot be proved.
        """
        whole = hashlib.sha256()
        size = lines = at = 0
        source, fates = self.index.source, self.index.fates
        pieces: list[bytes] = [BOM] if source.read(0, min(3, source.size)) == BOM else []
        held = 0
        for number, _, data, is_ended in split_lines(source):
            if fates[number - 1] == NODE:
                line = self._node(at, data)
                at += 1
            else:
                line = self._other(number, data)
            if line is None:
                continue
            pieces.append(line)
            if is_ended:
                pieces.append(b"\n")
            lines += 1
            held += len(line)
            if held >= _BUFFER:
                size += self._flush(pieces, whole.update, write)
                held = 0
        size += self._flush(pieces, whole.update, write)
        return Written(size, lines, whole.digest(), self.active_chars)

    def _flush(
        self,
        pieces: list[bytes],
        update: Callable[[bytes], object],
        write: Callable[[bytes], object],
    ) -> int:
        data = b"".join(pieces)
        pieces.clear()
        update(data)
        write(data)
        return len(data)

    def _other(self, number: int, data: bytes) -> bytes | None:
        if not self.plan.keeps(number, self.index.fates[number - 1]):
            return None
        return self._with_session(data) if self.session is not None else data

    def _with_session(self, data: bytes) -> bytes:
        found = list(_SESSION.finditer(data))
        if not found:
            return data
        if len(found) > 1:
            try:
                wanted = Wanted(self.options, "", "", session=self.session)
                return splice(data, scanned(record_of(data)[1], wanted)[0])
            except ValueError:
                return data
        assert self.session is not None
        return splice(data, [Edit(*found[0].span(1), self.session)])

    def _node(self, at: int, data: bytes) -> bytes | None:
        """Return a node's line as it is to be written, None for one that goes."""
        state, flags = self.plan.state[at], self.index.flags[at]
        cuts, self._cursor = self.index.cuts_of(at, self._cursor)
        if state & DROPPED:
            if flags & THINKING:
                self.counts["thinking_removed"] += 1
            if flags & RESULT:
                self.counts["orphans_dropped"] += len(self.links.tools_of(at))
            return None
        parent = self.plan.new_parent(at)
        is_scanned = self._needs_scan(at, state, flags)
        if not is_scanned and parent is None and not cuts and self.session is None:
            line = data
            cost = self.index.cost[at]
        else:
            line, cost = self._edited(at, data, parent, None if is_scanned else cuts)
        if state & ACTIVE:
            self.active_chars += cost
            self.counts["errors_kept"] += bool(flags & ERROR)
        return line

    def _needs_scan(self, at: int, state: int, flags: int) -> bool:
        """Return True when first sight does not tell all that changes in a line."""
        if flags & (SCAN | NULLS):
            return True
        if flags & USER and flags & RESULT and self.plan.pairs.has_orphan(at):
            return True
        if not flags & BLOCKS or state & WINDOW:
            return False
        return not (flags & (THINKING | LONG) == THINKING and not self.plan.loses_thinking(at))

    def _edited(
        self, at: int, data: bytes, parent: int | None, cuts: Cuts | None
    ) -> tuple[bytes, int]:
        """Return a line with its edits made and proved, and the characters of it that are sent."""
        new_parent = None if parent is None else self._uuid_json(parent)
        if parent is not None:
            self.counts["reparented"] += 1
        if cuts is not None:
            edits, counts = self._cut(at, data, new_parent, cuts)
            line = splice(data, edits) if edits is not None else None
            proof = self._proof(at, line, parent) if line is not None else "no edit"
            if not isinstance(proof, str):
                assert line is not None
                self._count(counts)
                return line, proof
        wanted = self._wanted(at, new_parent)
        try:
            found, scan_counts = scanned(record_of(data)[1], wanted)
        except ValueError:
            found, scan_counts = [], Counter()
        line = splice(data, found)
        proof = self._proof(at, line, parent)
        if isinstance(proof, str):
            raise InvalidContextError(
                f"line {self.links.line[at]:,} would not be what it has to be: {proof}; nothing was "
                "written, please report this"
            )
        self._count(scan_counts)
        return line, proof

    def _count(self, counts: Mapping[str, int]) -> None:
        for name, number in counts.items():
            self.counts[name] += number

    def _cut(
        self, at: int, data: bytes, parent: bytes | None, cuts: Cuts
    ) -> tuple[list[tuple[int, int, bytes]] | None, dict[str, int]]:
        """Return the edits of a line from the places the first pass found; None when one fails."""
        edits: list[tuple[int, int, bytes]] = []
        counts: dict[str, int] = {}
        for new, pattern in ((parent, _PARENT), (self.session, _SESSION)):
            if new is None:
                continue
            found = pattern.search(data)
            if found is None:
                return None, counts
            edits.append((*found.span(1), new))
        for kind, start, end in cuts:
            if kind != CUT_RESULT:
                edits.append((start, end, b""))
                counts["tool_use_results_removed" if kind == CUT_COPY else "usage_removed"] = 1
                continue
            if self.plan.state[at] & (WINDOW | SPARED):
                continue
            maker = self.plan.pairs.makers_of(at)
            call = self._call(maker[0], self.links.tools_of(at)[0]) if maker else None
            stub = (
                stubbed_result(data[start:end], call, self.options, is_error=False)
                if call
                else None
            )
            if stub is not None:
                edits.append((start, end, stub))
                counts["images_stubbed"] = images = images_in(data[start:end])
                counts["results_stubbed"] = not images or b"[Trimmed: ~" in stub
        return edits, counts

    def _wanted(self, at: int, parent: bytes | None) -> Wanted:
        flags, state = self.index.flags[at], self.plan.state[at]
        calls: list[Call | None] | None = None
        if flags & RESULT and not self.plan.pairs.is_spared(at):
            pairs = zip(self.plan.pairs.makers_of(at), self.links.tools_of(at), strict=True)
            calls = [self._call(maker, tool) if maker >= 0 else None for maker, tool in pairs]
        role = "user" if flags & USER else "assistant" if flags & ASSISTANT else ""
        return Wanted(
            self.options,
            "attachment" if flags & ATTACHMENT else role,
            restorable(self._uuid(at)),
            parent,
            self.session,
            loses_copy=bool(flags & COPY),
            loses_thinking=self.plan.loses_thinking(at),
            is_fixed=bool(state & WINDOW),
            calls=calls,
            stubs=not state & SPARED,
        )

    def _record(self, at: int) -> Record:
        start = self.index.start[at]
        record, _ = record_of(self.index.source.read(start, start + self.index.size[at]))
        assert record is not None
        return record

    def _uuid(self, at: int) -> str:
        return self._record(at).uuid or ""

    def _uuid_json(self, at: int) -> bytes:
        return encode(self._uuid(at)) if at >= 0 else b"null"

    def _call(self, at: int, key: int) -> Call:
        """Return the call with this key that a node makes."""
        message = self._record(at).message
        content = message.content if message is not None else None
        for block in content if isinstance(content, list) else ():
            if block.type == "tool_use" and block.id and key_of(block.id) == key:
                arguments = decode(bytes(block.input)) if block.input is not ABSENT else None
                return Call(harmless(block.name or ""), about(arguments), restorable(block.id))
        return Call("", "", "unknown")

    def _proof(self, at: int, line: bytes, parent: int | None) -> int | str:
        """Return the characters of a changed line that are sent, or what is wrong with it."""
        try:
            record, _ = record_of(line)
        except ValueError:
            record = None
        if record is None:
            return "it cannot be read any more"
        if not self._has_links(at, record, parent):
            return "its links changed"
        flags = self.index.flags[at]
        if not flags & (USER | ASSISTANT):
            return 0
        if (
            record.message is None
            or record.message.usage is not ABSENT
            or record.usage is not ABSENT
        ):
            return "usage is left"
        if flags & COPY and record.toolUseResult is not ABSENT:
            return "the copy of a result is left"
        index = self.index
        if not flags & (RESULT | BLOCKS | NULLS) and index.reader.is_verbatim:
            is_same = index.reader.words(record) == index.said[at]
            return index.cost[at] if is_same else "its texts or calls changed"
        now, cost, said, tools = index.reader.message(record)
        if said != index.said[at]:
            return "its texts or calls changed"
        if array("q", tools) != self.plan.pairs.kept_tools(at) or now & NULLS:
            return "its blocks changed"
        return cost if cost <= index.cost[at] else "it grew"

    def _has_links(self, at: int, record: Record, parent: int | None) -> bool:
        links = self.links
        side = LANE if (record.isSidechain is True) != self.index.of_side_chains else 0
        stated, message = record.parentUuid, record.message
        above = NO_PARENT if stated is None else hash(stated) ^ side if stated else 0
        wanted = links.parent[at] if parent is None else self.plan.key_for(at, parent)
        return (
            above == wanted
            and (hash(record.uuid) ^ side if record.uuid else 0) == links.uuid[at]
            and (message is None or hash(message.id or "") == links.message[at])
            and hash(record.sourceToolAssistantUUID or "") == links.owner[at]
        )


def splice(data: bytes, edits: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Return the bytes with edits made that do not overlap."""
    if len(edits) == 1:
        start, end, new = edits[0]
        return data[:start] + new + data[end:]
    pieces = []
    at = 0
    for start, end, new in sorted(edits):
        pieces.append(data[at:start])
        pieces.append(new)
        at = end
    pieces.append(data[at:])
    return b"".join(pieces)


_BUFFER = 1 << 18
"""Bytes that are written at once."""
