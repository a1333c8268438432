"""Migrations run once, whole or not at all, and a newer database is left alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from recap.errors import StoreError
from recap.store import Store
from recap.store.database import BUSY_SECONDS, connect, transaction
from recap.store.migrations import MIGRATIONS, Migration, migrate, pending
from recap.store.verify import verify
from tests.store.factories import TENANT, execute, key, row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NEXT = (
    *MIGRATIONS,
    Migration(("ALTER TABLE sessions ADD COLUMN note TEXT", "CREATE TABLE extra (a)")),
    Migration(("INSERT INTO extra VALUES (1)",)),
)
BROKEN = (*MIGRATIONS, Migration(("CREATE TABLE extra (a)", "INSERT INTO nowhere VALUES (1)")))


def run(path: Path, migrations: Sequence[Migration]) -> int:
    with (
        closing(connect(path)) as connection,
        transaction(connection, "BEGIN IMMEDIATE", BUSY_SECONDS),
    ):
        return migrate(connection, migrations)


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


@pytest.fixture
def first(store: Store) -> Path:
    """A database with a session in it."""
    store.save_session(row())
    store.close()
    return store.folder / "recap.db"


def test_what_is_pending_runs_in_order_and_once(first: Path) -> None:
    assert run(first, NEXT) == 2
    assert run(first, NEXT) == 0
    with closing(sqlite3.connect(first)) as connection:
        assert connection.execute("SELECT a FROM extra").fetchall() == [(1,)]
        assert connection.execute("SELECT id, note FROM sessions").fetchall() == [(key(1), None)]
        numbers = connection.execute("SELECT number FROM migrations").fetchall()
    assert numbers == [(number,) for number in range(1, len(NEXT) + 1)]


def test_a_migration_that_fails_leaves_nothing_behind(first: Path) -> None:
    before = tables(first)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        run(first, BROKEN)
    assert tables(first) == before
    with Store.open(first.parent) as store:
        assert store.load_session(TENANT, key(1)) is not None


def test_a_newer_database_is_refused_and_not_touched(first: Path) -> None:
    run(first, NEXT)
    before = first.read_bytes()
    found, known = len(NEXT), len(MIGRATIONS)
    with pytest.raises(StoreError, match=rf"\(schema {found}, this release knows {known}\)"):
        Store.open(first.parent)
    assert first.read_bytes() == before


def test_a_migration_that_was_edited_is_found(store: Store) -> None:
    execute(store, "UPDATE migrations SET checksum = ?", "0" * 64)
    store.close()
    with pytest.raises(StoreError, match="recap verify --repair"):
        Store.open(store.folder)


def test_a_new_database_lacks_all(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert pending(connection) == MIGRATIONS


def test_a_shipped_migration_is_never_edited() -> None:
    """Add a migration instead, and its checksum here."""
    checksums = [migration.checksum[:16] for migration in MIGRATIONS]
    assert checksums == ["0fb58f06692945da", "7ff1ffd664fae1ef"]


def test_a_store_of_the_first_release_is_brought_up_to_date(store: Store) -> None:
    """It lacks what later migrations made; nothing of it is lost, and a backup of it still helps."""
    store.save_session(row())
    store.close()
    execute(store, "DROP TABLE unfinished")
    execute(store, "DELETE FROM migrations WHERE number > 1")
    assert [fault.code for fault in verify(store.folder)] == ["schema"]
    with Store.open(store.folder) as opened:
        assert opened.load_session(TENANT, key(1)) is not None
        assert opened.history.unfinished() == []
        assert opened.verify() == ()
