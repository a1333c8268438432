"""Making a database and judging one before it is used; what is damaged is never taken as empty."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from recap.errors import StoreError
from recap.store.database import BUSY_SECONDS, connect, transaction
from recap.store.failures import REPAIR, translated
from recap.store.files import (
    Lock,
    check_regular,
    locked,
    make_private,
    make_secret,
    new_file,
    read_secret,
    secret_id,
    sync_folder,
)
from recap.store.migrations import APPLICATION_ID, MIGRATIONS, migrate, pending

CHECKED_BYTES = 16 << 20
"""Size up to which a database is checked whenever it is opened: about 10 ms."""

if TYPE_CHECKING:
    from pathlib import Path

    from recap.store.files import Place


def hold(place: Place) -> Lock:
    """Return the shared lock on a folder that has a database, made if it had none.

    Raises:
        StoreError: The folder cannot be written, or its database is gone but its backups are not.
    """
    check_regular(place.database)
    lock = Lock(place.lock, is_exclusive=False)
    if place.database.exists():
        return lock
    lock.release()
    with locked(place.lock, is_exclusive=True):
        if not place.database.exists():
            _make(place)
    return Lock(place.lock, is_exclusive=False)


def has_remains(place: Place) -> bool:
    """Return True when something is there that a repair may make a database of."""
    remains = [*place.folder.glob("damaged-*"), *place.folder.glob("backups/*.db")]
    return bool(remains) or place.database.with_name("recap.db-wal").exists()


def _make(place: Place) -> None:
    if has_remains(place):
        raise StoreError(
            f"the database of the store {place.folder} is gone but copies of it are there; {REPAIR}"
        )
    try:
        for left in place.folder.glob("*.new-*"):  # of a process that was killed
            left.unlink()
        secret = read_secret(place.secret) or make_secret(place.secret)
        build(place.folder, secret_id(secret)).replace(place.database)
        sync_folder(place.folder)
    except OSError as err:
        raise StoreError(f"cannot write {place.folder} ({err.strerror})") from err


def build(folder: Path, secret: str) -> Path:
    """Return a new database under a name of its own, for the caller to put in place.

    Raises:
        StoreError: It cannot be written.
    """
    path = folder / f"recap.db.new-{os.urandom(8).hex()}"
    os.close(new_file(path))
    try:
        with closing(connect(path)) as connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("PRAGMA journal_mode = WAL")
            with transaction(connection, "BEGIN IMMEDIATE", BUSY_SECONDS):
                migrate(connection)
                connection.execute("INSERT INTO meta VALUES ('secret', ?)", (secret,))
    except sqlite3.Error as err:
        raise translated(err, path) from err
    return path


def judged_secret(place: Place) -> bytes:
    """Return the secret of a database that this release can use. Writes nothing.

    Raises:
        StoreError: The database is damaged, foreign or of a newer release, or the secret is missing
            or another one's.
    """
    if place.database.stat().st_size == 0:
        raise StoreError(f"the store {place.database} is damaged (it is empty); {REPAIR}")
    make_private(place.database)
    try:
        with closing(connect(place.database, is_reader=True)) as connection:
            return _judged(connection, place)
    except sqlite3.Error as err:
        raise translated(err, place.database) from err


def _judged(connection: sqlite3.Connection, place: Place) -> bytes:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise StoreError(
            f"{place.database} is a database of another program, or damaged; {REPAIR}, or name "
            f"another folder with RECAP_HOME"
        )
    if len(pending(connection)) == len(MIGRATIONS):  # what was made here went through the first
        raise StoreError(f"the store {place.database} is damaged (no migrations); {REPAIR}")
    _judge_pages(connection, place.database)
    named = connection.execute("SELECT value FROM meta WHERE name = 'secret'").fetchone()
    if named is None:
        raise StoreError(f"the store {place.database} is damaged (no secret named); {REPAIR}")
    secret = read_secret(place.secret)
    if secret is None:
        raise StoreError(
            f"the secret of the store is missing: put {place.secret} back, or {REPAIR}, which makes "
            f"a new one and loses the sessions"
        )
    if secret_id(secret) != named[0]:
        raise StoreError(
            f"{place.secret} is the secret of another store: put the right one back, or {REPAIR}, "
            f"which loses the sessions"
        )
    make_private(place.secret)
    return secret


def _judge_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Look at every page where that takes no time; larger stores are judged with each backup."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    if is_cut(path, size):
        raise StoreError(f"the store {path} is damaged (its last page is cut); {REPAIR}")
    if pages * size <= CHECKED_BYTES and (found := complaints(connection, most=1)):
        raise StoreError(f"the store {path} is damaged ({found[0]}); {REPAIR}")


def is_cut(database: Path, page_bytes: int) -> bool:
    """Return True when the file ends inside a page, which SQLite fills up with zeros in silence."""
    log = database.with_name(f"{database.name}-wal")
    is_settled = not (log.exists() and log.stat().st_size)
    return is_settled and database.stat().st_size % page_bytes != 0


def complaints(connection: sqlite3.Connection, *, most: int = 100) -> list[str]:
    """Return what SQLite finds wrong with the pages of a database, at most so many lines."""
    found = connection.execute(f"PRAGMA quick_check({most})").fetchall()
    return [line for (text,) in found for line in text.splitlines() if line != "ok"]
