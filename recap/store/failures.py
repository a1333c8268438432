"""SQLite's errors as one line with the next step."""

from __future__ import annotations

import shutil
import sqlite3
from typing import TYPE_CHECKING

from recap.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

REPAIR = "run: recap verify --repair"
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_REFUSED = (
    sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH,
)  # fmt: skip

_LEAST_FREE = 1 << 16
"""Bytes without which SQLite cannot open a database: its file of shared memory takes half of them."""


def is_busy(err: sqlite3.Error) -> bool:
    """Return True when another connection holds the lock: the same call can succeed later."""
    return _code(err) in _BUSY


def is_passing(err: sqlite3.Error, path: Path) -> bool:
    """Return True for an error that says nothing of the database: busy, no space, no permission."""
    return is_busy(err) or _code(err) in _REFUSED or _is_full(err, path)


def _is_full(err: sqlite3.Error, path: Path) -> bool:
    """Return True when no space is left: SQLite may say no more than that it could not write."""
    if _code(err) == sqlite3.SQLITE_IOERR:
        try:
            return shutil.disk_usage(path.parent).free < _LEAST_FREE
        except OSError:
            return False
    return _code(err) == sqlite3.SQLITE_FULL


def translated(err: sqlite3.Error, path: Path) -> StoreError:
    """Return the error for the user."""
    code = _code(err)
    if code in _BUSY:
        return StoreError(f"the store {path} is in use by another process; try again later")
    if code in _DAMAGED:
        return StoreError(f"the store {path} is damaged ({err}); {REPAIR}")
    if not code and "decode" in str(err):  # the text of that error quotes the row
        return StoreError(f"the store {path} is damaged (a text is no UTF-8); {REPAIR}")
    if _is_full(err, path):
        return StoreError(f"no space left for the store {path}; nothing was changed, free some")
    if code in _REFUSED:
        return StoreError(f"cannot write the store {path} ({err}); check its permissions")
    return StoreError(f"the store {path} failed ({err}); run: recap verify")


def _code(err: sqlite3.Error) -> int:
    """Return the primary result code; 0 for an error that Python's module raised itself."""
    return getattr(err, "sqlite_errorcode", 0) & 0xFF
