"""A session's file as it stands at one instant, while its client may go on writing to it."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from recap.cmv.streams import chunks
from recap.errors import InputError, shown_path
from recap.files import open_file
from recap.transcript.sources import CHUNK_BYTES, FileSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.transcript.sources import Sized

ACTIVE_SECONDS = 120.0
"""A session that was written to this lately may be in use."""

_RAW = msgspec.json.Decoder(msgspec.Raw)


class Window:
    """The first bytes of a source."""

    __slots__ = ("_source", "name", "size")

    def __init__(self, source: Sized, size: int) -> None:
        self._source = source
        self.name = source.name
        self.size = size

    def read(self, start: int, end: int) -> bytes:
        """Return bytes ``[start, end)``."""
        return self._source.read(start, min(end, self.size))


@dataclass(frozen=True, slots=True)
class Live:
    """A session's file up to the last complete line it had when it was opened.

    Attributes:
        path: The file.
        source: Its bytes.
        status: Of the file when it was opened.
        is_active: It was written to within the last two minutes.
    """

    path: Path
    source: Window
    status: os.stat_result
    is_active: bool

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes in chunks."""
        return chunks(self.source)

    def demand_same(self, sha256: bytes) -> None:
        """Raise InputError unless the file still begins with the bytes that were read.

        Args:
            sha256: Of the bytes that were read.
        """
        name = shown_path(self.path)
        try:
            now = self.path.stat()
        except OSError as err:
            raise InputError(f"{name}: is gone since it was read ({err.strerror})") from err
        if not os.path.samestat(now, self.status):
            raise InputError(f"{name}: was replaced while it was read; take the snapshot again")
        if (now.st_mtime_ns, now.st_size) == (self.status.st_mtime_ns, self.status.st_size):
            return
        whole = hashlib.sha256()
        for piece in self.pieces():
            whole.update(piece)
        if whole.digest() != sha256:
            raise InputError(f"{name}: was rewritten while it was read; take the snapshot again")


def open_live(path: Path, now: float) -> Live:
    """Open a session's file for reading.

    Args:
        path: The file; a regular one.
        now: Unix time, seconds.

    Raises:
        InputError: It is missing, unreadable or no regular file.
    """
    descriptor, status = open_file(path)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise InputError(f"{shown_path(path)}: is no regular file; a snapshot takes a session file")
    source = FileSource(descriptor, status.st_size, shown_path(path))
    is_active = now - status.st_mtime < ACTIVE_SECONDS
    end = _end(source) if is_active else source.size
    return Live(path, Window(source, end), status, is_active)


def _end(source: FileSource) -> int:
    """Return where the last complete line ends; a last one that is whole JSON is complete.

    A file without any line end is taken as it is: a document, not a log.
    """
    end = source.size
    while end > 0:
        start = max(end - CHUNK_BYTES, 0)
        cut = source.read(start, end).rfind(b"\n")
        if cut >= 0:
            end = start + cut + 1
            return source.size if _is_whole(source.read(end, source.size)) else end
        end = start
    return source.size


def _is_whole(tail: bytes) -> bool:
    """Return True for a last line that can stay: none, a value of JSON, or the end of a document."""
    if not tail.strip():
        return True
    try:
        _RAW.decode(tail)
    except msgspec.DecodeError:
        return tail.strip() in (b"}", b"]")
    return tail.lstrip()[:1] in (b"{", b"[")
