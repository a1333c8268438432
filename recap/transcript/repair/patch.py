"""What a repair changes: edits of a source's bytes, and the source as it reads with them made.

Everything that no edit covers keeps its bytes, so a line that is not repaired cannot change.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from recap.transcript.sources import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap.transcript.sources import Sized
    from recap.transcript.spans import Span


@dataclass(frozen=True, slots=True)
class Repair:
    """One change, or one fault that was left.

    Attributes:
        code: Stable short name; that of the finding of ``recap.check`` where there is one.
        line: 1-based line of the log, or 1-based message of a list, before the repair.
        detail: One sentence for a person; never conversation text.
    """

    code: str
    line: int
    detail: str


class Edit(NamedTuple):
    """Bytes ``[start, end)`` give way to ``new``."""

    start: int
    end: int
    new: bytes = b""


@dataclass(slots=True)
class Patch:
    """What one pass over a source found.

    Attributes:
        edits: In any order; they do not overlap.
        taken: Spans of the source that go into quarantine.
        repairs: What the edits do.
        left: Faults that no edit mends, on purpose.
    """

    edits: list[Edit] = field(default_factory=list)
    taken: list[Span] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    left: list[Repair] = field(default_factory=list)

    def take(self, span: Span, whole: Span | None = None, new: bytes = b"") -> None:
        """Put a span into quarantine; ``new`` stands in its place, or in that of ``whole``."""
        if span[0] < span[1]:
            self.taken.append(span)
        self.edits.append(Edit(*(whole or span), new))

    def note(self, code: str, line: int, detail: str) -> None:
        """Add a repair."""
        self.repairs.append(Repair(code, line, detail))

    def leave(self, code: str, line: int, detail: str) -> None:
        """Add a fault that is left."""
        self.left.append(Repair(code, line, detail))


class Patched:
    """A source read with edits made. It is a source itself, and holds no more than the new bytes."""

    __slots__ = ("_pieces", "_source", "_starts", "name", "size")

    def __init__(self, source: Sized, edits: Sequence[Edit]) -> None:
        self.name = source.name
        self._source = source
        self._starts: list[int] = []
        self._pieces: list[tuple[int, bytes | None]] = []  # (start in the source, or new bytes)
        self.size = 0
        at = 0
        for edit in sorted(edits):
            assert edit.start >= at, "edits overlap"
            self._add(edit.start - at, at, None)
            self._add(len(edit.new), 0, edit.new)
            at = edit.end
        self._add(source.size - at, at, None)

    def _add(self, size: int, start: int, new: bytes | None) -> None:
        if size:
            self._starts.append(self.size)
            self._pieces.append((start, new))
            self.size += size

    def read(self, start: int, end: int) -> bytes:
        """Return bytes ``[start, end)`` of the result."""
        pieces = []
        end = min(end, self.size)
        at = bisect_right(self._starts, start) - 1
        while start < end:
            origin, new = self._pieces[at]
            begin, at = self._starts[at], at + 1
            stop = min(end, self._starts[at] if at < len(self._starts) else self.size)
            if new is None:
                pieces.append(self._source.read(origin + start - begin, origin + stop - begin))
            else:
                pieces.append(new[start - begin : stop - begin])
            start = stop
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def chunks_of(source: Sized) -> Iterator[bytes]:
    """Yield the bytes of a source piece by piece."""
    for start in range(0, source.size, CHUNK_BYTES):
        yield source.read(start, min(start + CHUNK_BYTES, source.size))
