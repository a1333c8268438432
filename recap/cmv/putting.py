"""Files that appear whole or not at all, for their owner alone, and never in the place of others."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from recap.errors import InputError, UsageError, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def write_new(path: Path, pieces: Iterable[bytes], target: Path | None = None) -> bytes:
    """Write a file that nothing has the name of, flush it to the disk, and return its SHA-256.

    Folders that are missing are made.

    Args:
        path: The name it has until it is whole.
        pieces: Its bytes, in order.
        target: The name it gets, by which a failure is told; None for that.

    Raises:
        InputError: It cannot be written; what there is of it stays.
    """
    whole = hashlib.sha256()
    with _writing(target or path):
        make_folders(path.parent)
        with open(path, "xb", opener=_private) as stream:
            for piece in pieces:
                whole.update(piece)
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
    return whole.digest()


def publish(temporary: Path, path: Path, *, replace: bool = False) -> None:
    """Give a file that is written its name.

    Where the file system knows links the old name stays, for the caller to take away.

    Raises:
        UsageError: Something else has the name already, and it is not to be replaced.
        InputError: The folder refuses it.
    """
    with _writing(path):
        try:
            if replace:
                temporary.replace(path)
            else:
                _link(temporary, path)
        except FileExistsError as err:
            if not is_same(temporary, path):
                raise UsageError(f"{shown_path(path)} is there already; name another") from err
        sync_folder(path.parent)


def is_same(one: Path, other: Path) -> bool:
    """Return True for two names of one file."""
    with suppress(OSError):
        return os.path.samestat(one.lstat(), other.lstat())
    return False


def put(path: Path, pieces: Iterable[bytes], *, replace: bool = False) -> None:
    """Write a file whole or not at all; see ``write_new`` and ``publish``."""
    temporary = path.with_name(f".recap-{secrets.token_hex(8)}")
    try:
        write_new(temporary, pieces, path)
        publish(temporary, path, replace=replace)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def make_folders(folder: Path) -> None:
    """Make a folder, and those above it, for their owner only; what is there stays as it is."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(FOLDER_MODE, exist_ok=True)
        each.chmod(FOLDER_MODE)
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Make names survive a power cut, where the platform lets a folder be opened."""
    with suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn what the system says of a file into one line."""
    try:
        yield
    except OSError as err:
        raise InputError(f"{shown_path(path)}: cannot be written: {err.strerror}") from err


def _link(temporary: Path, path: Path) -> None:
    """Give a file a name that nothing has, in one step where the file system can."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # no hard links here
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        temporary.rename(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)
