"""Threads, locks, a full disk: every call ends in a result or in one line, never in half a write."""

from __future__ import annotations

import random
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from recap.errors import ConflictError, StoreError
from recap.store.database import Database, patiently
from recap.store.failures import translated
from tests.store.factories import TENANT, key, row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.store import Store


@pytest.fixture
def database(store: Store) -> Iterator[Database]:
    """A database that gives up at once."""
    opened = Database(store.folder / "recap.db", busy_seconds=0.05)
    yield opened
    opened.close()


def insert(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO meta VALUES ('a', 1)")


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM meta").fetchone()[0])


def test_one_thread_writes_whoever_asks(store: Store) -> None:
    def writer(_: int) -> int:
        return store._database.write(lambda _: threading.get_ident())

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(writer, range(40)))) == 1


def test_each_reading_thread_has_a_connection_that_ends_with_it(store: Store) -> None:
    def connection() -> int:
        return store._database.read(id)

    assert connection() == connection()
    for _ in range(5):
        thread = threading.Thread(target=connection)
        thread.start()
        thread.join()
    connection()
    assert len(store._database._readers) <= 2


def test_many_threads_read_and_write_at_once(store: Store) -> None:
    def work(number: int) -> int:
        saved = store.save_session(row(number % 7 + 10 * number), durable=False)
        assert store.load_session(TENANT, saved.id) == saved
        return len(store.sessions(TENANT))

    with ThreadPoolExecutor(6) as threads:
        assert max(threads.map(work, range(60))) <= 60
    assert len(store.sessions(TENANT)) == 60


def test_an_error_comes_back_to_its_caller_and_undoes_the_write(database: Database) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        insert(connection)
        raise ConflictError("from the work")

    before = database.read(count)
    with pytest.raises(ConflictError, match="from the work"):
        database.write(fail)
    assert database.read(count) == before
    database.write(insert)
    assert database.read(count) == before + 1


def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(StoreError, match="cannot write"):
        database.read(insert)


def test_a_reader_sees_one_state(database: Database) -> None:
    def twice(connection: sqlite3.Connection) -> tuple[int, int]:
        first = count(connection)
        database.write(insert)
        return first, count(connection)

    first, second = database.read(twice)
    assert first == second
    assert database.read(count) == first + 1


def test_a_lock_held_for_too_long_is_one_line(database: Database) -> None:
    with closing(sqlite3.connect(database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="in use by another process; try again later"):
            database.write(insert)
    database.write(insert)


def test_a_lock_that_is_given_back_in_time_is_waited_for() -> None:
    attempts = []

    def action() -> int:
        attempts.append(1)
        if len(attempts) < 3:
            err = sqlite3.OperationalError("database is locked")
            err.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY  # SQLite does not wait for that
            raise err
        return len(attempts)

    assert patiently(action, seconds=10) == 3


def test_a_full_disk_loses_nothing(store: Store) -> None:
    saved = store.save_session(row())
    store._database._written.connection.execute("PRAGMA max_page_count = 60")  # type: ignore[union-attr]
    with pytest.raises(StoreError, match="no space left"):
        store.save_session(row(2, graph=bytes(1_000_000)))
    with pytest.raises(StoreError, match="no space left"):
        store.history.put_chain(random.Random(1).randbytes(1_000_000))
    assert store.load_session(TENANT, key(1)) == saved
    assert store.load_session(TENANT, key(2)) is None
    assert store.save_session(saved).rev == 2
    assert store.verify() == ()


@pytest.mark.parametrize("durable", [True, False])
def test_a_durable_write_waits_for_the_disk(store: Store, durable: bool) -> None:
    levels = store._database.write(
        lambda c: c.execute("PRAGMA synchronous").fetchone(), durable=durable
    )
    assert levels == (2 if durable else 1,)


def test_a_closed_store_says_so(store: Store) -> None:
    store.save_session(row())
    store.close()
    store.close()
    for call in (lambda: store.sessions(TENANT), lambda: store.save_session(row(2))):
        with pytest.raises(StoreError, match="is closed"):
            call()
    with pytest.raises(StoreError, match="is closed"):
        store.history.collect()


def test_closing_leaves_no_log_behind(store: Store) -> None:
    store.save_session(row())
    store.close()
    assert {path.name for path in store.folder.iterdir()} == {"recap.db", "secret", "lock"}


def test_a_text_that_is_no_utf8_is_damage_and_is_not_quoted(store: Store) -> None:
    store.save_session(row())
    store._database.write(
        lambda c: c.execute("UPDATE sessions SET label = CAST(x'63616e617279ff' AS TEXT)")
    )
    with pytest.raises(StoreError, match=r"damaged.*recap verify --repair") as caught:
        store.load_session(TENANT, key(1))
    assert "canary" not in str(caught.value)


def test_an_error_of_sqlite_without_a_code_names_verify(tmp_path: Path) -> None:
    assert str(translated(sqlite3.Error("odd"), tmp_path)).endswith("(odd); run: recap verify")
