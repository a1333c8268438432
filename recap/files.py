"""Files as a user names them: what may be opened, and what would be waited for or read without end.

Regular files are read, and pipes that somebody writes to, such as ``<(zcat session.gz)``. Folders,
devices, sockets and pipes without a writer are refused.
"""

from __future__ import annotations

import os
import select
import stat
from typing import TYPE_CHECKING

from recap.errors import InputError, shown_path

if TYPE_CHECKING:
    from pathlib import Path

WRITER_WAIT_S = 1.0
"""How long a pipe may be without a writer."""

PIECE_BYTES = 1 << 20


def open_file(path: Path) -> tuple[int, os.stat_result]:
    """Open a file for reading; return the descriptor and its status.

    Raises InputError when it is missing, unreadable, or neither a regular file nor a pipe that
    somebody writes to within ``WRITER_WAIT_S``.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except OSError as err:
        reason = "no such file" if isinstance(err, FileNotFoundError) else err.strerror
        raise InputError(f"{shown_path(path)}: {reason}") from err
    except ValueError as err:  # a NUL in the path
        raise InputError(f"{shown_path(path)!r}: no such file") from err
    status = os.fstat(descriptor)
    if reason := _refusal(descriptor, status.st_mode):
        os.close(descriptor)
        raise InputError(f"{shown_path(path)}: {reason}")
    return descriptor, status


def read_file(path: Path) -> bytes:
    """Return all bytes of a file; see ``open_file``."""
    descriptor, _ = open_file(path)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def read_pipe(descriptor: int) -> bytes:
    """Return what a pipe holds until it is closed at the other end."""
    pieces = []
    while piece := os.read(descriptor, PIECE_BYTES):
        pieces.append(piece)
    return b"".join(pieces)


def _refusal(descriptor: int, mode: int) -> str:
    """Return why something that was opened is not read; "" when it is."""
    if stat.S_ISREG(mode):
        return ""
    if stat.S_ISDIR(mode):
        return "is a folder, not a file; name a file in it"
    if not stat.S_ISFIFO(mode):
        return "is a device; name a file, or give - for standard input"
    if not _has_writer(descriptor):
        return "is a pipe that nobody writes to; name a file, or give - for standard input"
    os.set_blocking(descriptor, True)
    return ""


def _has_writer(descriptor: int) -> bool:
    """Return True when a pipe holds bytes, or has or had a writer."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    if waiting.poll(1000 * WRITER_WAIT_S):
        return True
    try:
        os.read(descriptor, 1)  # there is nothing to read: it says why
    except BlockingIOError:  # open at the other end, with nothing written yet
        return True
    return False
