"""Sources of raw bytes: held in memory, or a file read by offset.

The size is taken once, when a file is opened: what is appended later belongs to the next read.
"""

from __future__ import annotations

import os
import stat
import weakref
from typing import TYPE_CHECKING, Protocol

from recap.errors import InputError, shown_path
from recap.files import open_file, read_pipe

if TYPE_CHECKING:
    from pathlib import Path

HELD_BYTES = 16 << 20
"""Files up to this size are read into memory at once; larger ones by offset."""

CHUNK_BYTES = 1 << 18
"""Bytes of a large file that are read at once while its lines are split."""


class Sized(Protocol):
    """A source of known size."""

    @property
    def name(self) -> str:
        """What to call it in a message to the user."""
        ...

    @property
    def size(self) -> int:
        """Bytes it holds."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """Return bytes ``[start, end)``."""
        ...


class ByteSource:
    """Bytes in memory."""

    __slots__ = ("_data", "name", "size")

    def __init__(self, data: bytes, name: str = "<bytes>") -> None:
        self._data = data
        self.name = name
        self.size = len(data)

    def read(self, start: int, end: int) -> bytes:
        """Return bytes ``[start, end)``."""
        return self._data[start:end]


class FileSource:
    """A regular file, read by offset through a descriptor that is closed with the object.

    The bytes stay readable when the file is renamed or deleted. A file that lost bytes since it was
    opened gives InputError.
    """

    __slots__ = ("__weakref__", "_descriptor", "_recent", "name", "size")

    def __init__(self, descriptor: int, size: int, name: str) -> None:
        self._descriptor = descriptor
        self.name = name
        self.size = size
        self._recent = (0, b"")  # the last chunk: what is read next mostly lies in it
        weakref.finalize(self, os.close, descriptor)

    def read(self, start: int, end: int) -> bytes:
        """Return bytes ``[start, end)``; raises InputError when the file lost them."""
        at, data = self._recent
        if at <= start and end <= at + len(data):
            return data[start - at : end - at]
        data = self._from_file(start, end)
        if len(data) == CHUNK_BYTES:
            self._recent = (start, data)
        return data

    def _from_file(self, start: int, end: int) -> bytes:
        pieces = []
        while start < end:
            try:
                piece = os.pread(self._descriptor, end - start, start)
            except OSError as err:
                raise InputError(f"{self.name}: cannot be read: {err.strerror}") from err
            if not piece:
                raise InputError(f"{self.name}: lost bytes while it was read; read it again")
            pieces.append(piece)
            start += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def open_source(path: Path, *, held_bytes: int = HELD_BYTES) -> ByteSource | FileSource:
    """Open a file for reading; raises InputError for what ``open_file`` refuses.

    A file of up to ``held_bytes`` is read into memory; a pipe is read to its end.
    """
    descriptor, status = open_file(path)
    name = shown_path(path)
    if stat.S_ISREG(status.st_mode):
        source = FileSource(descriptor, status.st_size, name)
        if source.size > held_bytes:
            return source
        return ByteSource(source.read(0, source.size), name)
    try:
        return ByteSource(read_pipe(descriptor), name)
    finally:
        os.close(descriptor)
