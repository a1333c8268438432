"""SQLite's errors as one line with the next step."""

from __future__ import annotations

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


def is_busy(err: sqlite3.Error) -> bool:
    """Return True when another connection holds the lock: the same call can succeed later."""
    return _code(err) in _BUSY


def translated(err: sqlite3.Error, path: Path) -> StoreError:
    """Return the error for the user."""
    code = _code(err)
    if code in _BUSY:
        return StoreError(f"the store {path} is in use by another process; try again later")
    if code in _DAMAGED:
        return StoreError(f"the store {path} is damaged ({err}); {REPAIR}")
    if not code and "decode" in str(err):  # the text of that error quotes the row
        return StoreError(f"the store {path} is damaged (a text is no UTF-8); {REPAIR}")
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"no space left for the store {path}; nothing was changed, free some")
    if code in _REFUSED:
        return StoreError(f"cannot write the store {path} ({err}); check its permissions")
    return StoreError(f"the store {path} failed ({err}); run: recap verify")


def _code(err: sqlite3.Error) -> int:
    """Return the primary result code; 0 for an error that Python's module raised itself."""
    return getattr(err, "sqlite_errorcode", 0) & 0xFF
