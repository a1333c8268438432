"""Bytes of sources as branches need them: in chunks, from open files, edited, with lines behind."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recap.transcript.sources import CHUNK_BYTES, FileSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import IO

    from recap.transcript.sources import Sized


def chunks(source: Sized) -> Iterator[bytes]:
    """Yield what a source holds in chunks."""
    for start in range(0, source.size, CHUNK_BYTES):
        yield source.read(start, min(start + CHUNK_BYTES, source.size))


@contextmanager
def source_of(stream: IO[bytes]) -> Iterator[FileSource]:
    """Yield what a file holds; the file stays open as long."""
    stream.flush()
    size = os.fstat(stream.fileno()).st_size
    yield FileSource(os.dup(stream.fileno()), size, "the snapshot")


def appended(source: Sized, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines that follow a log, on lines of their own."""
    if has_open_line(source):
        yield b"\n"
    yield from lines


def has_open_line(source: Sized) -> bool:
    """Return True for bytes whose last line has no end."""
    return source.size > 0 and source.read(source.size - 1, source.size) != b"\n"


def spliced(data: bytes, edits: Sequence[tuple[int, int, bytes]]) -> bytes:
    """Return the bytes with edits made that do not overlap: start, end, and what stands there then."""
    if len(edits) == 1:
        start, end, new = edits[0]
        return data[:start] + new + data[end:]
    pieces, at = [], 0
    for start, end, new in sorted(edits):
        pieces += [data[at:start], new]
        at = end
    return b"".join((*pieces, data[at:])) if pieces else data
