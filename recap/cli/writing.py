"""Files the command line writes: whole or not at all, for the user alone, never over the source."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from recap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


def refuse_source(out: Path, source: Path | None) -> None:
    """Raise UsageError when ``out`` is the file the session is read from (None: standard input)."""
    with suppress(OSError):
        read = os.fstat(0) if source is None else source.stat()
        if os.path.samestat(read, out.stat()) and out.is_file():
            raise UsageError(
                f"{out} is the session itself, and Recap never changes a session; "
                "name another file with -o"
            )


def write_whole(out: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file with mode 0600: to a temporary name, flushed to the disk, then renamed.

    ``data`` is all of it, or its pieces in order. A symbolic link is followed; what is no regular
    file (a pipe, a device) is written to directly.
    """
    pieces = (data,) if isinstance(data, bytes) else data
    target = out.resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("wb") as stream:
            stream.writelines(pieces)
        return
    if target.is_dir():
        raise UsageError(f"{out} is a folder; name a file with -o")
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}; make it first")
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename durable, where the platform lets a folder be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
