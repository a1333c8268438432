"""Third step: the lines that stay, each edited and proved before it is written."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from recap.cmv.calls import Calls
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
    STUBBED,
    THINKING,
    USAGE,
    USER,
)  # fmt: skip
from recap.cmv.index import NODE
from recap.cmv.native_writer import native_writer
from recap.cmv.places import Finder
from recap.cmv.plan import ACTIVE, DROPPED, SPARED, WINDOW
from recap.cmv.proofs import Proofs
from recap.cmv.records import FAILURES, Record, decode_record, record_of
from recap.cmv.results import images_in, stubbed_result
from recap.cmv.scan import Wanted, scanned
from recap.cmv.streams import spliced
from recap.cmv.stubs import Call, restorable
from recap.errors import InvalidContextError
from recap.transcript.lines import BOM, line_runs
from recap.transcript.links import UNKNOWN
from recap.transcript.model import encode
from recap.transcript.repair.patch import Edit

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from recap.cmv.options import TrimOptions
    from recap.cmv.plan import Plan

_PARENT = re.compile(rb'"parentUuid"\s*:\s*("[^"\\]*"|null)')
UNSURE = SCAN | NULLS | RESULT | BLOCKS
CUT = USAGE | COPY
_SESSION = re.compile(rb'"sessionId"\s*:\s*("[^"\\]*")')


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
        self._state, self._parents = plan.state, plan.new_parents
        self._flags, self._cost = plan.index.flags, plan.index.cost
        self._finder = Finder()
        self._names: dict[int, bytes] = {}
        self._calls = Calls(plan)
        self._proofs = Proofs(plan)
        self._number = self._node_at = self._lines = 0
        self._native = native_writer(plan, self.session, self._calls)

    def write(self, write: Callable[[bytes], object]) -> Written:
        """Write all lines.

        Raises:
            InvalidContextError: An edit of a line cannot be proved.
        """
        whole = hashlib.sha256()
        size = 0
        source = self.index.source
        opening = BOM if source.read(0, min(3, source.size)) == BOM else b""
        run = self._run_natively if self._native else self._run
        for _, chunk, end, is_ended in line_runs(source):
            kept = run(chunk, end)
            if kept and not is_ended:
                kept[-1] = kept[-1].removesuffix(b"\n")
            piece = opening + b"".join(kept)
            opening = b""
            whole.update(piece)
            write(piece)
            size += len(piece)
        self._count_native()
        return Written(size, self._lines, whole.digest(), self.active_chars)

    def _run(self, chunk: bytes, end: int) -> list[bytes]:
        """Return the lines of a run that stay, each with a line feed."""
        kept: list[bytes] = []
        for data in chunk[:end].split(b"\n"):
            kept += self._line(data)
        return kept

    def _run_natively(self, chunk: bytes, end: int) -> list[bytes]:
        """Do as ``_run`` does; what the native module does not take is written line by line."""
        kept: list[bytes] = []
        at = 0
        while at <= end:
            place = self._number, self._node_at
            piece, at, self._number, self._node_at = self._native.write(chunk, at, end, *place)
            kept.append(piece)
            if at <= end:
                stop = chunk.find(b"\n", at, end)
                stop = end if stop < 0 else stop
                kept += self._line(chunk[at:stop])
                at = stop + 1
        return kept

    def _line(self, data: bytes) -> tuple[bytes, ...]:
        """Return the next line as it is to be written and a line feed, nothing for one that goes."""
        if self.index.fates[self._number] == NODE:
            line = self._node(self._node_at, data)
            self._node_at += 1
        else:
            line = self._other(self._number, data)
        self._number += 1
        if line is None:
            return ()
        self._lines += 1
        return line, b"\n"

    def _count_native(self) -> None:
        """Add what the native writer counted."""
        if self._native:
            counts = self._native.counts()
            self._lines += counts.pop("lines")
            self.active_chars += counts.pop("active_chars")
            self.counts.update(counts)

    def _other(self, place: int, data: bytes) -> bytes | None:
        """Return a line that is no node as it is to be written, None for one that goes."""
        if not self.plan.keeps(place + 1, self.index.fates[place]):
            return None
        return data if self.session is None else self._with_session(data)

    def _with_session(self, data: bytes) -> bytes:
        found = list(_SESSION.finditer(data))
        if not found:
            return data
        if len(found) > 1:
            try:
                wanted = Wanted(self.options, "", "", session=self.session)
                return spliced(data, scanned(record_of(data)[1], wanted)[0])
            except ValueError:
                return data
        assert self.session is not None
        return spliced(data, [Edit(*found[0].span(1), self.session)])

    def _node(self, at: int, data: bytes) -> bytes | None:
        """Return a node's line as it is to be written, None for one that goes."""
        state, flags = self._state[at], self._flags[at]
        if state & DROPPED:
            self._leave_out(at, flags, data)
            return None
        parent = self._parents[at]
        is_long = flags & (LONG | BLOCKS) == LONG and not state & (WINDOW | SPARED)
        if flags & UNSURE and self._needs_scan(at, state, flags):
            line, cost = self._scanned(at, data, parent)
        elif flags & CUT or is_long or parent != UNKNOWN or self.session is not None:
            line, cost = self._cut(at, data, parent, is_long=is_long)
        else:
            line, cost = data, self._cost[at]
        if state & ACTIVE:
            self.active_chars += cost
            if flags & ERROR:
                self.counts["errors_kept"] += 1
        return line

    def _leave_out(self, at: int, flags: int, data: bytes) -> None:
        if flags & THINKING:
            self.counts["thinking_removed"] += 1
        if flags & RESULT:
            self.counts["orphans_dropped"] += len(self.links.tools_of(at))
        found = _PARENT.search(data, 0, _HEAD)
        if found is not None:
            if len(self._names) > _HELD:
                self._names.clear()
            self._names[self.plan.parents.stated[at]] = found[1]

    def _needs_scan(self, at: int, state: int, flags: int) -> bool:
        """Return True when first sight does not tell all that changes in a line."""
        if flags & (SCAN | NULLS):
            return True
        if flags & USER and flags & RESULT and self.plan.pairs.has_orphan(at):
            return True
        if not flags & BLOCKS or state & WINDOW:
            return False
        return not (flags & (THINKING | LONG) == THINKING and not self.plan.loses_thinking(at))

    def _cut(self, at: int, data: bytes, parent: int, *, is_long: bool) -> tuple[bytes, int]:
        """Return a line edited at first sight and proved, and the characters of it that are sent.

        Args:
            at: Its node.
            data: The line.
            parent: The node it follows now, UNKNOWN for the one it followed.
            is_long: Its result may become a stub.
        """
        if self.session is not None and data.count(b'"sessionId"') > 1:
            return self._scanned(at, data, parent)
        try:
            source = decode_record(data)
        except FAILURES:
            return self._scanned(at, data, parent)
        flags, line, stub, images = self._flags[at], data, None, 0
        if is_long:
            line, stub, images = self._with_stub(at, data, source)
        if flags & COPY:
            line = self._without(line, b"toolUseResult", source.toolUseResult)
        if flags & USAGE:
            line = self._without(line, b"usage", source.message.usage)  # type: ignore[union-attr]  # USAGE says so
        if self.session is not None:
            line = _replaced(line, _SESSION, self.session)
        if parent != UNKNOWN:
            line = _replaced(line, _PARENT, self._name(parent))
        cost = self._proofs.of(at, source, line, parent, stub)
        if isinstance(cost, str):
            return self._scanned(at, data, parent)
        self._count_cuts(flags, parent, stub, images)
        if flags & ASSISTANT:
            self._calls.hold(at, source, len(data))
        return line, cost

    def _without(self, line: bytes, key: bytes, value: msgspec.Raw) -> bytes:
        """Return a line without a member of it."""
        start, end = self._finder.member(line, key, memoryview(value).nbytes)
        return line[:start] + line[end:]

    def _count_cuts(self, flags: int, parent: int, stub: bytes | None, images: int) -> None:
        counts = self.counts
        if flags & USAGE:
            counts["usage_removed"] += 1
        if flags & COPY:
            counts["tool_use_results_removed"] += 1
        if parent != UNKNOWN:
            counts["reparented"] += 1
        if stub is not None:
            counts["images_stubbed"] += images
            counts["results_stubbed"] += not images or b"[Trimmed: ~" in stub

    def _with_stub(self, at: int, line: bytes, source: Record) -> tuple[bytes, bytes | None, int]:
        """Return a line with a stub for its one result, the stub, and the images in the result.

        The stub is None where the result stays, and one that no proof passes where no result is.
        """
        size = memoryview(source.message.content[0].content).nbytes  # type: ignore[union-attr,index]  # LONG says so
        start, end = self._finder.content(line, size)
        if start < 0:
            return line, b"", 0
        images = 0
        if line.startswith(b'"', start) and not line.startswith(STUBBED, start):
            stub = self._calls.stub_of(at, size)
            if stub is None:
                return line, None, 0
        else:
            stub, images = _list_stub(line[start:end], self._calls.answered_by(at), self.options)
        return line[:start] + stub + line[end:], stub, images

    def _scanned(self, at: int, data: bytes, parent: int) -> tuple[bytes, int]:
        """Return a line edited by an exact scan and proved, and its characters that are sent."""
        new_parent = None if parent == UNKNOWN else self._calls.uuid_json(parent)
        source = None
        try:
            source, read = record_of(data)
            edits, counts = scanned(read, self._wanted(at, new_parent))
        except ValueError:
            edits, counts = [], Counter()
        line = spliced(data, edits)
        cost = self._proofs.of(at, source, line, parent) if source else "it cannot be read any more"
        if isinstance(cost, str):
            raise InvalidContextError(
                f"line {self.links.line[at]:,} would not be what it has to be: {cost}; nothing was "
                "written, please report this"
            )
        if parent != UNKNOWN:
            self.counts["reparented"] += 1
        for name, number in counts.items():
            self.counts[name] += number
        return line, cost

    def _wanted(self, at: int, parent: bytes | None) -> Wanted:
        flags, state = self.index.flags[at], self.plan.state[at]
        calls: list[Call | None] | None = None
        if flags & RESULT and not self.plan.pairs.is_spared(at):
            pairs = zip(self.plan.pairs.makers_of(at), self.links.tools_of(at), strict=True)
            calls = [self._calls.call(maker, tool) if maker >= 0 else None for maker, tool in pairs]
        role = "user" if flags & USER else "assistant" if flags & ASSISTANT else ""
        return Wanted(
            self.options,
            "attachment" if flags & ATTACHMENT else role,
            restorable(self._calls.uuid(at)),
            parent,
            self.session,
            loses_copy=bool(flags & COPY),
            loses_thinking=self.plan.loses_thinking(at),
            is_fixed=bool(state & WINDOW),
            calls=calls,
            stubs=not state & SPARED,
        )

    def _name(self, at: int) -> bytes:
        """Return the id of a node as JSON, as a line that followed it spelled it if one just went."""
        return self._names.get(at) or self._calls.uuid_json(at)


def _list_stub(raw: bytes, call: Call, options: TrimOptions) -> tuple[bytes, int]:
    """Return the stub of a result that is a list, and its images; b"" where it is none or stays."""
    try:
        stub = stubbed_result(raw, call, options, is_error=False)
        return (b"", 0) if stub is None else (stub, images_in(raw))
    except (ValueError, *FAILURES):
        return b"", 0


def _replaced(line: bytes, pattern: re.Pattern[bytes], value: bytes) -> bytes:
    """Return a line with a value in place of the first one found; nothing where there is none."""
    found = pattern.search(line)
    if found is None:
        return b""
    start, end = found.span(1)
    return line[:start] + value + line[end:]


_HEAD = 200
"""Bytes of a line among which clients write its parent."""

_HELD = 64
"""Parents of lines left out whose names are held."""
