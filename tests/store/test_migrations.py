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
    """A database of version 1 with a session in it."""
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
    assert numbers == [(1,), (2,), (3,)]


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
    with pytest.raises(StoreError, match=r"newer release \(schema 3, this release knows 1\)"):
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
    assert [migration.checksum[:16] for migration in MIGRATIONS] == ["0fb58f06692945da"]
