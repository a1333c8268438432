"""A log or a list mended: its format is told, those who know it mend it, and the outcome is judged."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from recap.errors import InputError, counted
from recap.transcript.formats import EMPTY, Input, format_named, read_source
from recap.transcript.lines import split_lines
from recap.transcript.model import HUMAN_AUTHORS, decode
from recap.transcript.repair.claude import mend_log
from recap.transcript.repair.documents import LISTS, close_list, mend_list
from recap.transcript.repair.lines import mend_lines, opening_as
from recap.transcript.repair.patch import Patch, Patched, Repair, chunks_of
from recap.transcript.repair.rows import is_record
from recap.transcript.sources import ByteSource, open_source

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from recap.transcript.lines import RecordTest
    from recap.transcript.model import Author, Json, Part, Transcript
    from recap.transcript.sources import Sized
    from recap.transcript.spans import Span

LOG = "claude-code"
TOLD: frozenset[Author] = HUMAN_AUTHORS | {"agent"}
"""Authors of the texts that no repair may lose."""


@dataclass(frozen=True, slots=True, eq=False)
class Repaired:
    """A repaired copy and what was done for it.

    Attributes:
        format: Name of the format that was repaired.
        source: The copy, to be read piece by piece.
        repairs: Every change, by line.
        left: Faults that were seen and left, by line.
        taken: (source, span) of each piece that was taken out.
    """

    format: str
    source: Sized
    repairs: tuple[Repair, ...] = ()
    left: tuple[Repair, ...] = ()
    taken: tuple[tuple[Sized, Span], ...] = ()

    @property
    def data(self) -> bytes:
        """The copy as a whole."""
        return self.source.read(0, self.source.size)

    def chunks(self) -> Iterator[bytes]:
        """Yield the copy piece by piece."""
        return chunks_of(self.source)

    def quarantine(self) -> Iterator[bytes]:
        """Yield what was taken out, raw: each piece ends with a line feed."""
        for source, span in self.taken:
            piece = source.read(*span)
            yield piece if piece.endswith(b"\n") else piece + b"\n"


def repair(data: bytes | str | os.PathLike[str], format: str | None = None) -> Repaired:
    """Return a repaired copy of a session.

    Of Claude Code logs: lines that are no JSON, null lines and blocks, uuids that stand twice, parents
    that are not in the file, results without a call, calls without a result. Of other logs with one
    JSON value a line: the lines. Of Anthropic and OpenAI message lists: null messages, calls and
    results without each other or twice, a list that was cut off. A repaired copy is not changed by
    another repair.

    Args:
        data: The bytes, or a path; a large file is read by offset and must not shrink meanwhile.
        format: Name of its format; None recognises it from the content.

    Raises:
        InputError: It cannot be read, is a document of another kind, or a text would be lost.
        UsageError: ``format`` names no format.
    """
    source = ByteSource(data) if isinstance(data, bytes) else open_source(Path(data))
    return repair_source(source, format)


def repair_source(source: Sized, format: str | None = None) -> Repaired:
    """Return a repaired copy of the session a source holds; see ``repair``."""
    work = _Work(source)
    work.apply(close_list(work.source))
    found, told = _told(read_source(work.source, format))
    closed = work.source
    _mend(work, found)
    if work.source is not closed:
        _demand(told, read_source(work.source, found), work.source.name)
    return Repaired(
        found,
        work.source,
        _by_line(each for _, patch in work.done for each in patch.repairs),
        _by_line(each for _, patch in work.done for each in patch.left),
        tuple((source, span) for source, patch in work.done for span in sorted(patch.taken)),
    )


class _Work:
    """The source as the passes so far leave it, and what they did."""

    def __init__(self, source: Sized) -> None:
        self.source = source
        self.done: list[tuple[Sized, Patch]] = []

    def apply(self, patch: Patch) -> None:
        """Make the edits of a pass over the source."""
        self.done.append((self.source, patch))
        if patch.edits:
            self.source = Patched(self.source, patch.edits)


def _mend(work: _Work, format: str) -> None:
    given = Input(work.source)
    if format == EMPTY:
        return
    if given.value and format in LISTS:
        work.apply(mend_list(work.source, format))
        return
    name = work.source.name
    if given.value and b"\n" in given.value[0].dump().strip():
        raise InputError(
            f"{name}: is one JSON document of {format}; repaired are logs with one value a line, "
            f"and documents of {' and '.join(LISTS)}"
        )
    patch, numbers = mend_lines(work.source, _record_test(work.source, format))
    work.apply(patch)
    if not any(line.data.strip() for line in split_lines(work.source)):
        raise InputError(f"{name}: holds no line of JSON ({format}); there is nothing to repair")
    if format == LOG:
        work.apply(mend_log(work.source, numbers.of))


def _record_test(source: Sized, format: str) -> RecordTest:
    if format != LOG:
        return format_named(format).is_record
    begins = opening_as(source)
    return lambda data: begins(data) and is_record(_decoded(data))


def _decoded(data: bytes) -> Json:
    try:
        return decode(data)
    except ValueError:
        return None


def _by_line(repairs: Iterable[Repair]) -> tuple[Repair, ...]:
    return tuple(sorted(repairs, key=attrgetter("line")))


def _told(transcript: Transcript) -> tuple[str, set[bytes]]:
    """Return a transcript's format, and what identifies each text of a person or the agent in it."""
    return transcript.format, {part.digest for part in _texts(transcript) if part.author in TOLD}


def _demand(told: set[bytes], after: Transcript, name: str) -> None:
    """Raise InputError when a text is not there any more. One that stood twice may stand once."""
    missing = told - {part.digest for part in _texts(after)}
    if missing:
        raise InputError(
            f"{name}: a repair would lose {counted(len(missing), 'text')} that can be read now; nothing "
            "was changed. Please report it with the output of `recap check`"
        )


def _texts(transcript: Transcript) -> Iterator[Part]:
    return (
        part for message in transcript.messages for part in message.parts if part.kind == "text"
    )
