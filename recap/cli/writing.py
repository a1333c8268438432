"""Files the command line writes: whole or not at all, for the user alone, never over an input."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from recap.errors import UsageError, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable


def refuse_inputs(out: Path, inputs: dict[str, Path | None]) -> None:
    """Raise UsageError when ``out`` is a file that is read, under whatever name.

    ``inputs`` are the files an invocation reads, by what they are to the user; None is standard
    input. The settings file in use is always among them.
    """
    from recap.config import find_toml

    settings = find_toml(os.environ, Path.cwd())
    for what, path in (inputs | ({"the settings file": settings} if settings else {})).items():
        if _is_same(out, path):
            raise UsageError(
                f"{shown_path(out)} is {what} itself, and Recap never changes a file it reads; "
                "name another file"
            )


def _is_same(out: Path, path: Path | None) -> bool:
    with suppress(OSError):
        read = os.fstat(0) if path is None else path.stat()
        return os.path.samestat(read, out.stat()) and out.is_file()
    return False


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
        raise UsageError(f"{shown_path(out)} is a folder; name a file with -o")
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {shown_path(target.parent)}; make it first")
    temporary = target.with_name(f".recap-{secrets.token_hex(8)}")
    try:  # named before it is made: a signal finds nothing that is not taken away again
        with open(temporary, "xb", opener=_private) as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException as err:
        if isinstance(err, OSError) and err.filename == str(temporary):
            err.filename = str(out)
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync_folder(folder: Path) -> None:
    """Make the rename durable, where the platform lets a folder be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
