"""A new database from what a damaged one and its backups still prove; the damaged bytes stay."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, NamedTuple

from recap.errors import StoreError
from recap.store.backup import backups
from recap.store.database import BUSY_SECONDS, connect, transaction
from recap.store.failures import translated
from recap.store.files import (
    FOLDER_MODE,
    Place,
    check_regular,
    locked,
    make_folder,
    make_private,
    make_secret,
    new_file,
    read_secret,
    secret_id,
    store_folder,
    sync_folder,
)
from recap.store.opening import build
from recap.store.salvage import open_damaged, salvaging
from recap.store.tables import OF_TENANTS, TABLES, columns_of
from recap.store.verify import damaged_backups, database_faults, is_snapshot_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from recap.store.tables import Columns, Table

_LOCK_SECONDS = 1.0


class Repair(NamedTuple):
    """What a repair did.

    Attributes:
        copy: Folder with the damaged files as they were; None when nothing was damaged.
        kept: Rows by table that the damaged database still proved.
        restored: Rows by table that a backup gave back, as old as the backup.
        lost: Rows by table that are known to be gone.
        unknown: Tables of which rows may be gone that nothing names.
        is_new_secret: Whether the secret had to be made anew: sessions are then gone.
        backups: How many damaged backups were moved to ``copy``.
    """

    copy: Path | None
    kept: Mapping[str, int]
    restored: Mapping[str, int]
    lost: Mapping[str, int]
    unknown: tuple[str, ...]
    is_new_secret: bool
    backups: int = 0


NOTHING_DONE = Repair(None, {}, {}, {}, (), False)


def repair(folder: Path | None = None, *, clock: Callable[[], float] = time.time) -> Repair:
    """Rebuild the store of a folder from what can be proved, if it is damaged, and return how.

    The damaged files are copied to a folder ``damaged-<time>`` first, and that copy is never
    touched again; damaged backups are moved there, once what they still prove is taken. Permissions
    are set right in any case.

    Args:
        folder: None for RECAP_HOME, else the user's data folder.
        clock: Unix time that names the copy, seconds.

    Raises:
        StoreError: The store is in use, of a newer release, or the folder cannot be written. The
            store is as it was.
    """
    place = Place(store_folder(folder, os.environ))
    make_folder(place.folder)
    check_regular(place.database)
    check_regular(place.secret)
    with locked(place.lock, is_exclusive=True, seconds=_LOCK_SECONDS):
        try:
            _set_permissions(place)
            if place.database.exists():
                faults = database_faults(place)
                for fault in faults:
                    if fault.code == "schema":
                        raise StoreError(f"{fault.detail}; {fault.advice}")
                if not faults:
                    return _without_damaged_backups(place, NOTHING_DONE, clock())
            done = _rebuilt(place, _set_aside(place, clock()))
            return _without_damaged_backups(place, done, clock())
        except sqlite3.Error as err:
            raise translated(err, place.database) from err
        except OSError as err:
            raise StoreError(f"cannot repair {place.folder} ({err.strerror})") from err


def _set_permissions(place: Place) -> None:
    for path in place.own_paths():
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            make_private(path)
        elif stat.S_ISDIR(mode):
            path.chmod(FOLDER_MODE)


def _without_damaged_backups(place: Place, done: Repair, now: float) -> Repair:
    """Move damaged backups to the copy of what was damaged, and return the repair with their number."""
    damaged = [path for path, _ in damaged_backups(place)]
    if not damaged:
        return done
    target = done.copy or _new_aside(place, now)
    for path in damaged:
        path.rename(target / path.name)
    sync_folder(target)
    sync_folder(place.backups)
    return done._replace(copy=target, backups=len(damaged))


def _set_aside(place: Place, now: float) -> Path:
    """Copy the files of the store to a new folder, byte for byte."""
    target = _new_aside(place, now)
    try:
        for source in (*_database_files(place.database), place.secret):
            if source.exists():
                _copy(source, target / source.name)
        sync_folder(target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    return target


def _new_aside(place: Place, now: float) -> Path:
    """Return a new folder for what is damaged."""
    stamp = time.strftime("damaged-%Y%m%dT%H%M%SZ", time.gmtime(now))
    names = [stamp, *(f"{stamp}-{number}" for number in range(2, 1000))]
    target = next(place.folder / name for name in names if not (place.folder / name).exists())
    target.mkdir(FOLDER_MODE)
    target.chmod(FOLDER_MODE)
    sync_folder(place.folder)
    return target


def _database_files(database: Path) -> tuple[Path, ...]:
    return (database, database.with_name(f"{database.name}-wal"))


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as read, open(new_file(target), "wb") as written:  # noqa: PTH123
        shutil.copyfileobj(read, written, 1 << 20)
        written.flush()
        os.fsync(written.fileno())


def _rebuilt(place: Place, aside: Path) -> Repair:
    """Put a new database in place of the damaged one."""
    work = place.folder / "repairing"
    shutil.rmtree(work, ignore_errors=True)  # of a repair that was killed
    work.mkdir(FOLDER_MODE)
    try:
        for source in _database_files(place.database):
            if (aside / source.name).exists():
                _copy(aside / source.name, work / source.name)
        fresh = build(work, "")
        with ExitStack() as stack:
            damaged = open_damaged(work / place.database.name, fresh)
            if damaged is not None:
                stack.enter_context(closing(damaged))
            copies = [stack.enter_context(closing(connect(path))) for path in _copies(place, work)]
            new = stack.enter_context(closing(connect(fresh)))
            with transaction(new, "BEGIN IMMEDIATE", BUSY_SECONDS):
                done = _Rebuilding(new, damaged, copies).run(place, aside)
        for old in _database_files(place.database)[1:]:
            old.unlink(missing_ok=True)  # before the new file: it must not be read into that one
        fresh.replace(place.database)
        sync_folder(place.folder)
        return done
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _copies(place: Place, work: Path) -> list[Path]:
    """Return working copies of the backups, newest first: opening one must not change it."""
    copies = []
    for number, backup in enumerate(backups(place)):
        copies.append(work / f"backup-{number}.db")
        _copy(backup, copies[-1])
    return copies


class _Rebuilding:
    """Fills a new database, in one transaction of the caller's."""

    def __init__(
        self,
        new: sqlite3.Connection,
        damaged: sqlite3.Connection | None,
        copies: list[sqlite3.Connection],
    ) -> None:
        self._new = new
        self._damaged = damaged
        self._copies = copies
        self._kept = {table.name: 0 for table in TABLES}
        self._restored = {table.name: 0 for table in TABLES}
        self._named: dict[str, set[tuple[Any, ...]]] = {}
        self._unknown: list[str] = []

    def run(self, place: Place, aside: Path) -> Repair:
        for table in TABLES:
            self._fill(table)
        is_new_secret = self._settle_secret(place)
        self._drop_what_dangles()
        lost = {table.name: self._lost(table) for table in TABLES}
        return Repair(
            aside,
            _counted(self._kept),
            _counted(self._restored),
            _counted(lost),
            tuple(self._unknown),
            is_new_secret,
        )

    def _fill(self, table: Table) -> None:
        named: set[tuple[Any, ...]] = set()
        self._named[table.name] = named
        ours = columns_of(self._new, table)
        salvage = None if self._damaged is None else salvaging(self._damaged, table, ours)
        if salvage is not None:
            for row in salvage.rows():
                self._kept[table.name] += self._insert(table, salvage.columns, row)
            named |= salvage.named
        knows_all = salvage is not None and salvage.knows_all
        if not knows_all:
            self._unknown.append(table.name)
        for saved in filter(None, (salvaging(copy, table, ours) for copy in self._copies)):
            for row in saved.rows():
                # what the damaged database does not name, though it names all, was deleted since
                if not knows_all or saved.columns.key_of(table, row) in named:
                    self._restored[table.name] += self._insert(table, saved.columns, row)
            if not knows_all:
                named |= saved.named

    def _insert(self, table: Table, columns: Columns, row: tuple[Any, ...]) -> int:
        """Insert a row unless it is there; return how many were inserted."""
        marks = ", ".join("?" * len(row))
        names = ", ".join(columns.names)
        query = f"INSERT OR IGNORE INTO {table.name} ({names}) VALUES ({marks})"
        return self._new.execute(query, row).rowcount

    def _settle_secret(self, place: Place) -> bool:
        """Keep the secret that made the keys, else make one and give up the rows of tenants."""
        try:
            secret = read_secret(place.secret)
        except StoreError:
            secret = None
        named = self._secret_named()
        is_new = secret is None or named not in (None, secret_id(secret))
        if is_new or secret is None:
            secret = make_secret(place.secret)
            for name in OF_TENANTS:
                self._new.execute(f"DELETE FROM {name}")
                self._kept[name] = self._restored[name] = 0
        query = "UPDATE meta SET value = ? WHERE name = 'secret'"
        self._new.execute(query, (secret_id(secret),))
        return is_new

    def _secret_named(self) -> str | None:
        for source in (self._damaged, *self._copies):
            try:
                query = "SELECT value FROM meta WHERE name = 'secret'"
                found = None if source is None else source.execute(query).fetchone()
            except sqlite3.Error:
                continue
            if found is not None:
                return str(found[0])
        return None

    def _drop_what_dangles(self) -> None:
        for name in ("selections", "indexes"):
            self._new.execute(
                f"DELETE FROM {name} WHERE NOT EXISTS (SELECT 1 FROM sessions AS s "
                f"WHERE s.tenant = {name}.tenant AND s.id = {name}.session)"
            )
        for (id,) in self._new.execute("SELECT id FROM snapshots").fetchall():
            if not is_snapshot_whole(self._new, id):
                self._new.execute("DELETE FROM snapshots WHERE id = ?", (id,))
        broken = (
            "DELETE FROM links WHERE object NOT IN (SELECT hash FROM objects) "
            "OR parent IS NOT NULL AND parent NOT IN (SELECT hash FROM links)"
        )
        while self._new.execute(broken).rowcount:
            continue  # what stood behind a link that went, goes next

    def _lost(self, table: Table) -> int:
        columns = columns_of(self._new, table)
        query = f"SELECT {', '.join(columns.names)} FROM {table.name}"
        there = {columns.key_of(table, row) for row in self._new.execute(query)}
        return len(self._named[table.name] - there)


def _counted(rows: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in rows.items() if count}
