"""Files that appear whole or not at all, for their owner alone, and never in the place of others."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.errors import InputError, UsageError, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file that is written and has no name yet.

    Attributes:
        path: The name it gets.
        temporary: Where it is.
        sha256: Proof of its bytes.
        size: Their number.
    """

    path: Path
    temporary: Path
    sha256: bytes
    size: int

    def publish(self, *, replace: bool = False) -> None:
        """Give the file its name.

        Raises:
            UsageError: Something has the name already, and it is not to be replaced.
            InputError: The folder refuses it.
        """
        try:
            if replace:
                self.temporary.replace(self.path)
            else:
                _link(self.temporary, self.path)
            sync_folder(self.path.parent)
        except FileExistsError as err:
            raise UsageError(f"{shown_path(self.path)} is there already; name another") from err
        except OSError as err:
            raise InputError(f"{shown_path(self.path)}: cannot be written: {err.strerror}") from err


@contextmanager
def prepared(path: Path, pieces: Iterable[bytes]) -> Iterator[Prepared]:
    """Write a file under a name of its own beside ``path`` and flush it to the disk.

    What was not published when the block ends is taken away. Folders that are missing are made.

    Raises:
        InputError: It cannot be written.
    """
    temporary = path.with_name(f".recap-{secrets.token_hex(8)}")
    try:
        try:
            make_folders(path.parent)
            whole, size = hashlib.sha256(), 0
            with open(temporary, "xb", opener=_private) as stream:
                for piece in pieces:
                    whole.update(piece)
                    size += len(piece)
                    stream.write(piece)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as err:
            raise InputError(f"{shown_path(path)}: cannot be written: {err.strerror}") from err
        yield Prepared(path, temporary, whole.digest(), size)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def put(path: Path, pieces: Iterable[bytes], *, replace: bool = False) -> None:
    """Write a file; see ``prepared`` and ``Prepared.publish``."""
    if not replace and os.path.lexists(path):
        raise UsageError(f"{shown_path(path)} is there already; name another")
    with prepared(path, pieces) as file:
        file.publish(replace=replace)


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
