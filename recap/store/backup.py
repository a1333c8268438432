"""Copies of the database while it is in use: one a day, the last two kept, or one where asked."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import stat
import time
from contextlib import closing
from typing import TYPE_CHECKING

from recap.errors import StoreError
from recap.store.database import connect
from recap.store.failures import REPAIR, translated
from recap.store.files import FOLDER_MODE, locked, new_file, sync_folder
from recap.store.opening import complaints

if TYPE_CHECKING:
    from pathlib import Path

    from recap.store.files import Place

DAY_SECONDS = 86_400.0
KEPT = 2

_log = logging.getLogger(__name__)


def backups(place: Place) -> list[Path]:
    """Return the rolling copies, newest first."""
    found = (path for path in place.backups.glob("*.db") if _is_regular(path))
    return sorted(found, reverse=True)  # their names are their times


def _is_regular(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def copy(database: Path, target: Path) -> None:
    """Copy a database that may be in use to a new file of one piece, mode 0600, checked.

    Raises:
        StoreError: The target exists or cannot be written, or the database is damaged.
    """
    temporary = target.with_name(f"{target.name}.new-{os.urandom(8).hex()}")
    try:
        os.close(new_file(temporary))
        try:
            found = _copied(database, temporary)
            if found:
                raise StoreError(f"the store {database} is damaged ({found[0]}); {REPAIR}")
            os.link(temporary, target)  # fails where a file is, as a rename would not
        finally:
            temporary.unlink()
        sync_folder(target.parent)
    except FileExistsError as err:
        raise StoreError(f"{target} exists; name a new file for the backup") from err
    except OSError as err:
        raise StoreError(f"cannot write the backup {target} ({err.strerror})") from err


def _copied(database: Path, target: Path) -> list[str]:
    try:
        with closing(connect(database, is_reader=True)) as source, closing(connect(target)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, no log beside it
            found = complaints(copy, most=1)
    except sqlite3.Error as err:
        raise translated(err, database) from err
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return found


def roll(place: Place, now: float) -> None:
    """Make the copy of the day if it is due, and remove old ones.

    A copy that cannot be made stops nobody: it is logged, and tried again when the store is next
    opened. The caller has found the store to hold something.

    Raises:
        StoreError: The database is damaged; the copies that are there stay.
    """
    known = backups(place)
    if known and now - known[0].stat().st_mtime < DAY_SECONDS:
        return
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    target = place.backups / f"{stamp}.db"
    try:
        place.backups.mkdir(FOLDER_MODE, exist_ok=True)
        place.backups.chmod(FOLDER_MODE)
        with locked(place.backups / "lock", is_exclusive=True, seconds=0):
            for left in place.backups.glob("*.new-*"):  # of a process that was killed
                left.unlink()
            copy(place.database, target)
            os.utime(target, (now, now))
    except (OSError, StoreError) as err:
        if REPAIR in str(err):
            raise
        _log.warning("no backup of the store was made: %s", err)
        return
    for old in backups(place)[KEPT:]:
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            old.unlink()
