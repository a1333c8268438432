"""Lines that are no JSON: the records they still hold get lines of their own, the rest goes.

It works for every log with one JSON value a line. Lines that are JSON are not touched.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from recap.transcript.lines import beginning, is_junk, parse, split_lines
from recap.transcript.repair.patch import Edit, Patch
from recap.transcript.spans import MAX_DEPTH, is_deep, leading_objects, trailing_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recap.transcript.lines import Line, RecordTest
    from recap.transcript.sources import Sized
    from recap.transcript.spans import Span

BLANK = b" \t\r\n"
JUNK = BLANK + b"\0"
SAMPLED_LINES = 2000
"""Lines at the beginning of a log that show how its records begin."""

OPENINGS = (b'{"type":', b'{"parentUuid":')
"""How records begin that readers know wherever they stand."""

_OPENING = re.compile(rb'\{\s*"[^"\\]*"\s*:')
_SYNTAX = msgspec.json.Decoder(msgspec.Raw)


@dataclass(slots=True)
class Numbers:
    """Line numbers of the mended log -> line numbers of the log."""

    _mended: list[int] = field(default_factory=lambda: [1])
    _given: list[int] = field(default_factory=lambda: [1])
    _next: int = 1

    def add(self, given: int, mended: int) -> None:
        """Say that a line of the log became ``mended`` lines."""
        for number in range(self._next, self._next + mended):
            self._put(number, given)
        self._next += mended
        if mended != 1:
            self._put(self._next, given + 1)

    def _put(self, mended: int, given: int) -> None:
        if self.of(mended) == given:
            return
        if self._mended[-1] == mended:
            self._given[-1] = given
        else:
            self._mended.append(mended)
            self._given.append(given)

    def of(self, mended: int) -> int:
        """Return the number that a line had before."""
        at = bisect_right(self._mended, mended) - 1
        return self._given[at] + mended - self._mended[at]


def opening_as(source: Sized) -> RecordTest:
    """Return the test of objects that begin like the first lines of a log, and as readers know."""
    openings = set(OPENINGS)
    for line in islice(split_lines(source), SAMPLED_LINES):
        opening = _OPENING.match(line.data)
        if opening and is_json(line.data):
            openings.add(opening.group())
    return beginning(*sorted(openings))


def mend_lines(source: Sized, is_record: RecordTest) -> tuple[Patch, Numbers]:
    """Return what makes every line of a log a line of JSON, and the line numbers before.

    ``is_record`` judges objects on a line that they do not fill. A last line that was never finished
    is taken out like any other: what is mended is a copy.
    """
    patch, numbers = Patch(), Numbers()
    for line in split_lines(source):
        mended = 1
        if line.data.strip(BLANK) == b"null":
            mended = _take_line(patch, line)
            patch.note("null-line", line.number, "A null line is taken out.")
        elif line.data.strip(BLANK) and (is_junk(line) or not is_json(line.data)):
            mended = _mend(patch, line, is_record)
        numbers.add(line.number, mended)
    return patch, numbers


def is_json(data: bytes) -> bool:
    """Return True for one JSON value, also where it holds what strict JSON forbids."""
    try:
        parse(data, _SYNTAX)
    except ValueError:
        return False
    return True


def _mend(patch: Patch, line: Line, is_record: RecordTest) -> int:
    """Mend a line that is no JSON; return how many lines it becomes."""
    spans = [] if is_junk(line) else list(_records(line.data, is_record))
    if not spans and is_deep(line.data):
        detail = f"It nests deeper than {MAX_DEPTH} levels, and is left as it is."
        patch.leave("too-deep", line.number, detail)
        return 1
    _report(patch, line, spans)
    if not spans:
        return _take_line(patch, line)
    ending = b"\r\n" if line.data.endswith(b"\r") else b"\n"
    at = 0
    for number, (start, end) in enumerate(spans):
        _close_gap(patch, line, (at, start), ending if number else b"")
        at = end
    size = len(line.data) - (ending == b"\r\n")
    _close_gap(patch, line, (at, size), b"" if line.is_ended else ending)
    return len(spans)


def _take_line(patch: Patch, line: Line) -> int:
    end = line.start + len(line.data)
    patch.take((line.start, end), (line.start, end + line.is_ended))
    return 0


def _close_gap(patch: Patch, line: Line, gap: Span, new: bytes) -> None:
    """Put what stands between two records into quarantine, and a line end in its place."""
    start, end = gap
    if line.data[start:end].strip(BLANK):
        patch.take((line.start + start, line.start + end), new=new)
    elif new:
        patch.edits.append(Edit(line.start + start, line.start + end, new))


def _records(data: bytes, is_record: RecordTest) -> Iterator[Span]:
    """Yield the spans of the records a line still holds.

    Where they do not fill the line, an object counts only when it looks like the log's records: it
    may as well be a part of one that is cut.
    """
    begin = len(data) - len(data.lstrip(JUNK))
    core = data.strip(JUNK)
    tail = trailing_objects(core)
    cut = tail[0][0] if tail else len(core)
    is_filled = bool(tail) and not cut
    for start, end in (*leading_objects(core[:cut]), *tail):
        record = core[start:end]
        if not is_filled and not is_record(record):
            continue
        if is_json(record):
            yield begin + start, begin + end
        else:
            is_filled = False


def _report(patch: Patch, line: Line, spans: list[Span]) -> None:
    size, found = len(line.data), len(spans)
    taken = size - sum(end - start for start, end in spans)
    nuls = line.data.count(0)
    is_filled = not b"".join(_between(line.data, spans)).strip(JUNK)
    if is_filled and found < 2:
        patch.note("nul-bytes", line.number, f"{nuls:,} NUL bytes are taken out.")
    elif is_filled:
        detail = f"{found} records stand on one line; each gets a line of its own."
        patch.note("glued-lines", line.number, detail)
    elif found:
        detail = (
            f"Records are cut into one another; {found} whole ones get lines of their own, "
            f"{taken:,} bytes are taken out."
        )
        patch.note("cut-line", line.number, detail)
    elif line.is_ended:
        patch.note("bad-line", line.number, f"{size:,} bytes that are no JSON are taken out.")
    else:
        detail = f"{size:,} bytes of a last line that was not finished are taken out."
        patch.note("unfinished-line", line.number, detail)


def _between(data: bytes, spans: list[Span]) -> Iterator[bytes]:
    at = 0
    for start, end in (*spans, (len(data), len(data))):
        yield data[at:start]
        at = end
