"""Bytes of a log to records: lines and their salvage, and exact slices of JSON values.

A bad line is reported with its number and byte offset, salvaged where possible, and never ends the
read. Nothing here knows a format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from recap.transcript.model import Finding, Held, Json, Raw, Severity, Slice, is_clean
from recap.transcript.sources import CHUNK_BYTES
from recap.transcript.spans import (
    MAX_DEPTH,
    Span,
    element_spans,
    is_deep,
    leading_objects,
    member_spans,
    strict_twin,
    trailing_objects,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recap.transcript.sources import Sized

T = TypeVar("T")

BOM = b"\xef\xbb\xbf"
MAX_FINDINGS = 1000
"""Findings of one kind kept one by one; further ones are only counted."""


class Record(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One record of a log; a struct, because a log has many.

    Attributes:
        line: 1-based line, or 1-based index in an array of records.
        start: Offset of ``data`` in the source.
        data: The bytes ``value`` was decoded from: those of the source, or their strict twin.
        value: The decoded record; None when it is JSON of another kind than expected.
        is_exact: True when ``data`` are the source's own bytes.
    """

    line: int
    start: int
    data: bytes
    value: T | None
    is_exact: bool = True


@dataclass(slots=True)
class Report:
    """What is noticed during one read.

    Attributes:
        findings: In the order they were made; at most ``MAX_FINDINGS`` of one code.
        counts: Numbers of the format, for ``Transcript.counts``.
    """

    findings: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _made: Counter[str] = field(default_factory=Counter)

    def lists(self, code: str) -> bool:
        """Return True while findings of a code are kept, so that a detail is worth making."""
        return self._made[code] < MAX_FINDINGS

    def add(self, code: str, detail: str, line: int = 0, severity: Severity = "error") -> None:
        """Note a finding."""
        self._made[code] += 1
        if self._made[code] <= MAX_FINDINGS:
            self.findings.append(Finding(code, detail, line, severity))

    def sorted(self) -> tuple[Finding, ...]:
        """Return the findings by line; first one for each code of which some are not listed."""
        cut = [
            Finding(code, f"{made - MAX_FINDINGS:,} more of these are not listed", 0, "warning")
            for code, made in self._made.items()
            if made > MAX_FINDINGS
        ]
        return (*cut, *sorted(self.findings, key=attrgetter("line")))


@dataclass(frozen=True, slots=True)
class Rows:
    """Values of a log with one a line, as if they were the elements of an array."""

    items: tuple[Raw, ...]

    @property
    def is_clean(self) -> bool:
        """True when all of them are."""
        return all(item.is_clean for item in self.items)

    def load(self) -> Json:
        """Return the list of the decoded values."""
        return [item.load() for item in self.items]

    def dump(self) -> bytes:
        """Return the array as JSON."""
        return b"[" + b",".join(item.dump() for item in self.items) + b"]"


def members(raw: Raw) -> Mapping[str, Raw]:
    """Return handles on the members of a JSON object, exact bytes or very objects; {} if none."""
    if isinstance(raw, Rows):
        return {}
    if isinstance(raw, Slice):
        data = raw.dump()
        try:
            return _Members(raw, data, member_spans(data))
        except ValueError:
            return {}
    value = raw.load()
    if not isinstance(value, dict):
        return {}
    return {key: _held(item, raw.is_clean) for key, item in value.items()}


class _Members(Mapping[str, Raw]):
    """Members of a slice; a handle is made when it is asked for."""

    __slots__ = ("_data", "_raw", "_spans")

    def __init__(self, raw: Slice, data: bytes, spans: Mapping[str, Span]) -> None:
        self._raw = raw
        self._data = data
        self._spans = spans

    def __getitem__(self, key: str) -> Slice:
        return _sub_slice(self._raw, self._data, self._spans[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)


def elements(raw: Raw) -> list[Raw]:
    """Return handles on the elements of a JSON array, exact bytes or very objects; [] if none."""
    if isinstance(raw, Rows):
        return list(raw.items)
    if isinstance(raw, Slice):
        data = raw.dump()
        try:
            spans = element_spans(data)
        except ValueError:
            return []
        return [_sub_slice(raw, data, span) for span in spans]
    value = raw.load()
    if not isinstance(value, list | tuple):
        return []
    return [_held(item, raw.is_clean) for item in value]


def _sub_slice(raw: Slice, data: bytes, span: Span) -> Slice:
    start, end = span
    clean = raw.is_clean or is_strict(data[start:end])
    return Slice(raw.source, raw.start + start, raw.start + end, clean)


def _held(value: object, parent_is_clean: bool) -> Held:
    return Held(value, parent_is_clean or is_clean(value))


def is_strict(data: bytes) -> bool:
    """Return True when the bytes are one value of strict JSON in UTF-8."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)  # checks the syntax, not the encoding
        if not data.isascii():
            data.decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


class Line(NamedTuple):
    """One line: its 1-based number, its offset, its bytes, and whether it had a line feed."""

    number: int
    start: int
    data: bytes
    is_ended: bool


def split_lines(source: Sized) -> Iterator[Line]:
    r"""Yield the lines of a source, split on ``\n`` only, a byte order mark left out."""
    number = 0
    for at, chunk, is_ended in line_chunks(source):
        for data in chunk.split(b"\n"):
            number += 1
            yield Line(number, at, data, is_ended)
            at += len(data) + 1


def line_chunks(source: Sized) -> Iterator[tuple[int, bytes, bool]]:
    r"""Yield runs of whole lines: offset, bytes without the last line feed, whether it had one.

    A run without a line feed at its end is one line, the last of the source.
    """
    for at, chunk, end, is_ended in line_runs(source):
        yield at, chunk[:end], is_ended


def line_runs(source: Sized) -> Iterator[tuple[int, bytes, int, bool]]:
    """Yield what ``line_chunks`` does without a copy: the bytes of a run end where is stated."""
    at = len(BOM) if source.read(0, min(len(BOM), source.size)) == BOM else 0
    while at < source.size:
        chunk = source.read(at, min(at + CHUNK_BYTES, source.size))
        cut = chunk.rfind(b"\n")
        if cut < 0:
            end = _line_end(source, at + len(chunk))
            yield at, source.read(at, end), end - at, end < source.size
            at = end + 1
        else:
            yield at, chunk, cut, True
            at += cut + 1


def _line_end(source: Sized, start: int) -> int:
    for at in range(start, source.size, CHUNK_BYTES):
        found = source.read(at, min(at + CHUNK_BYTES, source.size)).find(b"\n")
        if found >= 0:
            return at + found
    return source.size


RecordTest: TypeAlias = Callable[[bytes], bool]
"""Tells whether an object on a line that it does not fill is a record, or a part of one."""


def beginning(*openings: bytes) -> RecordTest:
    """Return the test of a format whose records begin in one of these ways."""
    return lambda data: data.startswith(openings)


def holding(*keys: Iterable[str]) -> RecordTest:
    """Return the test of a format whose records have all keys of one of these sets, as no part has."""
    known = tuple(frozenset(each) for each in keys)

    def is_record(data: bytes) -> bool:
        try:
            found = member_spans(data).keys()
        except ValueError:
            return False
        return any(each <= found for each in known)

    return is_record


ANY_CLAUDE = beginning(b'{"type":', b'{"parentUuid":')
"""How lines of Claude Code begin; the test where no format is known."""

_VALUE = re.compile(rb'["\[]|(?:-?[0-9][0-9.eE+-]*|true|false|null|NaN|-?Infinity)\Z')
"""Begins what may be JSON and is no object."""

_PADDING = b"\0 \t\r"


def read_records(
    source: Sized,
    decoder: msgspec.json.Decoder[T],
    report: Report,
    is_record: RecordTest = ANY_CLAUDE,
    *,
    lines: int | None = None,
) -> Iterator[Record[T]]:
    """Yield the records of a log that holds one JSON value a line, whatever the lines hold.

    A last line without a line feed is taken only if it parses: it may still be growing. Of a log
    only the first ``lines`` are read; None reads all of them. ``is_record`` judges what a line
    holds besides what was cut.
    """
    for line in islice(split_lines(source), lines):
        report.counts["lines"] = line.number
        is_object = line.data.startswith(b"{")
        if not is_object and is_junk(line):
            _report_junk(line, report)
            continue
        try:
            value = decoder.decode(line.data)
        except (msgspec.DecodeError, RecursionError):
            if is_object and is_junk(line):
                _report_junk(line, report)
            elif line.data.strip():
                yield from _other_records(line, decoder, report, is_record)
        else:
            yield Record(line.number, line.start, line.data, value)


class Parsed(NamedTuple, Generic[T]):
    """A decoded value, None where the JSON is of another kind, and the bytes it came from."""

    value: T | None
    data: bytes


def parse(data: bytes, decoder: msgspec.json.Decoder[T]) -> Parsed[T]:
    """Return the value decoded from ``data`` itself or, where strict JSON forbids it, its twin.

    Raises ValueError when it is no JSON.
    """
    read = data
    while True:
        try:
            return Parsed(decoder.decode(read), read)
        except (msgspec.DecodeError, RecursionError):
            if is_strict(read):
                return Parsed(None, read)
        if read is not data or (twin := strict_twin(data)) == data:
            raise ValueError("no JSON")
        read = twin


def _other_records(
    line: Line, decoder: msgspec.json.Decoder[T], report: Report, is_record: RecordTest
) -> Iterator[Record[T]]:
    """Yield what a line holds that the decoder refused at first sight."""
    if is_strict(line.data):
        yield Record(line.number, line.start, line.data, None)
        return
    try:
        parsed: Parsed[T] = parse(line.data, decoder)
    except ValueError:
        if line.is_ended:
            yield from _salvaged(line, decoder, report, is_record)
        else:
            detail = f"{len(line.data):,} bytes of a last line without end are left unread"
            report.add("unfinished-line", detail, line.number, "note")
    else:
        value, read = parsed
        yield Record(line.number, line.start, read, value, read is line.data)


def is_junk(line: Line) -> bool:
    """Return True for a line that no decoder need be asked about: it holds no whole object.

    Logs may hold millions of them, so it has to be cheap.
    """
    core = line.data.strip(_PADDING)
    if not line.is_ended:
        return False
    if core.startswith(b"{"):
        return b"}" not in core
    return not core.endswith(b"}") and not _VALUE.match(core)


def _report_junk(line: Line, report: Report) -> None:
    """Report a line that holds nothing to salvage; a blank one is none."""
    if line.data.strip():
        _report_line(line, line.data.strip(_PADDING), 0, False, report)


def _salvaged(
    line: Line, decoder: msgspec.json.Decoder[T], report: Report, is_record: RecordTest
) -> list[Record[T]]:
    """Return the records a bad line still holds, and report the line."""
    core = line.data.strip(_PADDING)
    begin = line.start + line.data.find(core)
    tail = trailing_objects(core)
    cut = tail[0][0] if tail else len(core)
    spans = [*leading_objects(core[:cut]), *tail]
    is_filled = bool(tail) and not cut
    records = []
    for start, end in spans:
        data = core[start:end]
        if not is_filled and not is_record(data):
            continue
        try:
            parsed: Parsed[T] = parse(data, decoder)
        except ValueError:
            is_filled = False
        else:
            value, read = parsed
            records.append(Record(line.number, begin + start, read, value, read is data))
    _report_line(line, core, len(records), is_filled, report)
    return records


def _report_line(line: Line, core: bytes, found: int, is_filled: bool, report: Report) -> None:
    report.counts["bad_lines"] += 1
    is_flat = len(core) <= MAX_DEPTH or not is_deep(core)
    if not found and core and is_flat and not report.lists("bad-line"):
        report.add("bad-line", "", line.number)
        return
    place, size = f"at byte {line.start:,}", len(core)
    if not core or (is_filled and found == 1):
        detail = f"{line.data.count(0):,} NUL bytes {place}"
        report.add("nul-bytes", detail, line.number, "warning" if found else "error")
    elif is_filled:
        report.add("glued-lines", f"{found} records on one line {place}", line.number, "warning")
    elif found:
        detail = (
            f"records cut into one another {place}, {size:,} bytes; {found} whole ones are read"
        )
        report.add("cut-line", detail, line.number)
    elif not is_flat:
        detail = f"{size:,} bytes {place} nest deeper than {MAX_DEPTH} levels"
        report.add("too-deep", detail, line.number)
    else:
        report.add("bad-line", f"{size:,} bytes {place} are no JSON", line.number)
