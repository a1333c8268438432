"""Judging a store without changing it: files, pages, and whatever a hash or a seal can prove."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from contextlib import closing
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from recap.errors import StoreError, counted, shown_path
from recap.store import objects, snapshots, unfinished
from recap.store.backup import backups
from recap.store.database import connect
from recap.store.failures import REPAIR, is_passing, translated
from recap.store.files import (
    FILE_MODE,
    FOLDER_MODE,
    Place,
    is_free,
    read_secret,
    secret_id,
    store_folder,
)
from recap.store.migrations import (
    APPLICATION_ID,
    applied,
    damaged_definitions,
    is_newer,
    pending,
)
from recap.store.opening import is_cut
from recap.store.tables import TABLES, columns_of, is_proved, read_any_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from recap.store.tables import Table

Code: TypeAlias = Literal[
    "missing", "permissions", "secret", "foreign", "schema", "pages", "row", "dangling", "snapshot",
    "unfinished", "backup",
]  # fmt: skip


class Fault(NamedTuple):
    """Something wrong with a store.

    Attributes:
        code: Kind of fault.
        detail: What is wrong and where; never text of a conversation.
        advice: What to do.
    """

    code: Code
    detail: str
    advice: str


_DANGLING = {
    "selections": "SELECT count(*) FROM selections AS a WHERE NOT EXISTS "
    "(SELECT 1 FROM sessions AS b WHERE b.tenant = a.tenant AND b.id = a.session)",
    "indexes": "SELECT count(*) FROM indexes AS a WHERE NOT EXISTS "
    "(SELECT 1 FROM sessions AS b WHERE b.tenant = a.tenant AND b.id = a.session)",
    "links": "SELECT count(*) FROM links AS a WHERE object NOT IN (SELECT hash FROM objects) "
    "OR parent IS NOT NULL AND parent NOT IN (SELECT hash FROM links)",
}
"""Rows that name a row that is not there. A deleted ancestor of a snapshot is none of them."""


def verify(folder: Path | None = None) -> tuple[Fault, ...]:
    """Return what is wrong with the store of a folder; nothing for a store that is whole.

    Reads every row, those of the backups as well, and proves what can be proved. Writes nothing, and
    works on a store that cannot be opened.

    Args:
        folder: None for RECAP_HOME, else the user's data folder.

    Raises:
        StoreError: It cannot be judged now: the disk is full, or permissions refuse it.
    """
    place = Place(store_folder(folder, os.environ))
    return (*_faults(place), *_backup_faults(place))


def _faults(place: Place) -> Iterator[Fault]:
    if not place.database.is_file() or place.database.is_symlink():
        yield Fault("missing", f"{place.database} is no file", REPAIR)
        return
    yield from _file_faults(place)  # first: SQLite makes files of the mode that the database has
    yield from database_faults(place) or _unfinished_faults(place)


def _backup_faults(place: Place) -> Iterator[Fault]:
    for path, what in damaged_backups(place):
        yield Fault("backup", f"the backup {path} is damaged ({what})", REPAIR)


def _file_faults(place: Place) -> Iterator[Fault]:
    for path in (place.folder.resolve(), *place.own_paths()):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # SQLite's own come and go
            continue
        wanted = FOLDER_MODE if stat.S_ISDIR(mode) else FILE_MODE
        is_open, is_shut = stat.S_IMODE(mode) & ~wanted, not mode & stat.S_IRUSR
        if (is_open or is_shut) and not stat.S_ISLNK(mode):
            what = "others may read it" if is_open else "its owner cannot read it"
            detail = f"{path} has mode {stat.S_IMODE(mode):03o}, {what}"
            yield Fault("permissions", detail, f"run: chmod {wanted:03o} {path}")


def _unfinished_faults(place: Place) -> Iterator[Fault]:
    """Yield files that a process that is gone did not finish; of a database that is whole."""
    with closing(connect(place.database, is_reader=True)) as connection:
        if not list(unfinished.iter_unfinished(connection)):
            return
        with is_free(place.making) as is_alone:  # whoever is at it now may end meanwhile
            rows = list(unfinished.iter_unfinished(connection)) if is_alone else []
    for row in rows:
        detail = f"{shown_path(row.targets[0])} was being written by a process that is gone"
        yield Fault("unfinished", detail, REPAIR)


def database_faults(place: Place) -> list[Fault]:
    """Return what is wrong with the database and its secret.

    Raises:
        StoreError: It cannot be judged now: the disk is full, or permissions refuse it.
    """
    faults: list[Fault] = []
    try:
        if place.database.stat().st_size == 0:
            return [Fault("pages", f"{place.database} is empty", REPAIR)]
        with closing(connect(place.database, is_reader=True)) as connection:
            read_any_text(connection)
            connection.execute("BEGIN")
            faults.extend(_all_faults(connection, place))
    except sqlite3.Error as err:  # the faults found so far are kept
        if is_passing(err, place.database):
            raise translated(err, place.database) from err
        faults.append(Fault("pages", str(translated(err, place.database)), REPAIR))
    return faults


def damaged_backups(place: Place) -> Iterator[tuple[Path, str]]:
    """Yield the backups that cannot be proved whole, each with the first thing wrong with it."""
    for path in backups(place):
        try:
            with closing(connect(path, is_reader=True)) as connection:
                read_any_text(connection)
                what = next(_wrong_with_copy(connection, path), "")
        except sqlite3.Error as err:
            if is_passing(err, path):  # or a process that made a newer one took it away
                continue
            what = str(err)
        if what:
            yield path, what


def _wrong_with_copy(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    """Yield what is wrong with a copy, which may be of an older release and know fewer tables."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        yield "it is a database of another program"
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    if is_cut(path, page_bytes):
        yield "its last page is cut"
    for (text,) in connection.execute("PRAGMA integrity_check(1)").fetchall():
        if text != "ok":
            yield text.replace("\n", "; ")
    if names := damaged_definitions(connection):
        yield f"the definition of {', '.join(names)} is damaged"
    known = [table for table in TABLES if columns_of(connection, table).names]
    if not known:
        yield "it holds no table of a store"
    yield from _damaged_rows(connection, known)


def _all_faults(connection: sqlite3.Connection, place: Place) -> Iterator[Fault]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        yield Fault("foreign", f"{place.database} is a database of another program", REPAIR)
        return
    if fault := _schema_fault(connection):
        yield fault
        return
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    if is_cut(place.database, page_bytes):
        yield Fault("pages", f"the last page of {place.database} is cut", REPAIR)
    for (text,) in connection.execute("PRAGMA integrity_check(20)").fetchall():
        if text != "ok":
            yield Fault("pages", text.replace("\n", "; "), REPAIR)
    yield from _secret_faults(connection, place)
    yield from _row_faults(connection)
    yield from _snapshot_faults(connection)


def _schema_fault(connection: sqlite3.Connection) -> Fault | None:
    rows = applied(connection)
    try:
        todo = pending(connection)
    except StoreError as err:
        if is_newer(rows):
            return Fault("schema", str(err), "use the release that made the store")
        return Fault("pages", str(err), REPAIR)
    if not rows:
        return Fault("pages", "the list of migrations is gone", REPAIR)
    if names := damaged_definitions(connection):
        return Fault("pages", f"the definition of {', '.join(names)} is damaged", REPAIR)
    if todo:
        return Fault(
            "schema", f"{counted(len(todo), 'migration')} to be applied", "open the store once"
        )
    return None


def _secret_faults(connection: sqlite3.Connection, place: Place) -> Iterator[Fault]:
    advice = f"put the original of {place.secret} back; or {REPAIR}, which loses the sessions"
    named = connection.execute("SELECT value FROM meta WHERE name = 'secret'").fetchone()
    try:
        secret = read_secret(place.secret)
    except StoreError as err:
        yield Fault("secret", str(err), advice)
        return
    if secret is None:
        yield Fault("secret", "the secret is missing", advice)
    elif named is None or secret_id(secret) != named[0]:
        yield Fault("secret", "the secret is not the one of this database", advice)


def _damaged_rows(connection: sqlite3.Connection, tables: Iterable[Table]) -> Iterator[str]:
    """Yield which rows are not what was written."""
    for table in tables:
        columns = columns_of(connection, table)
        query = f"SELECT rowid, {', '.join(columns.names)} FROM {table.name} ORDER BY rowid"
        for rowid, *row in connection.execute(query):
            if not is_proved(table, columns, row):
                yield f"row {rowid} of {table.name} is damaged"


def _row_faults(connection: sqlite3.Connection) -> Iterator[Fault]:
    for what in _damaged_rows(connection, TABLES):
        yield Fault("row", what, REPAIR)
    for name, query in _DANGLING.items():
        (count,) = connection.execute(query).fetchone()
        if count:
            yield Fault(
                "dangling", f"{counted(count, 'row')} of {name} without what they belong to", REPAIR
            )


def _snapshot_faults(connection: sqlite3.Connection) -> Iterator[Fault]:
    for (id,) in connection.execute("SELECT id FROM snapshots ORDER BY rowid").fetchall():
        if not is_snapshot_whole(connection, id):
            yield Fault("snapshot", f"snapshot {id!r} cannot be read whole", REPAIR)


def is_snapshot_whole(connection: sqlite3.Connection, id: str | bytes) -> bool:
    """Return True when all bytes of a snapshot and its side files are there and proved."""
    try:
        row = next(snapshots.iter_snapshots(connection, "WHERE id = ?", id), None)
        return row is not None and all(_is_whole(connection, side) for side in row.chains)
    except StoreError:
        return False


def _is_whole(
    connection: sqlite3.Connection, side: snapshots.SnapshotRow | snapshots.SideFile
) -> bool:
    whole = hashlib.sha256()
    for link in objects.walk(connection, side.root):
        whole.update(objects.get(connection, link.object))
    return whole.digest() == side.sha256
