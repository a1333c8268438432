"""Connections to one SQLite file: one writer thread, a reader for each reading thread, forks."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from recap.errors import StoreError
from recap.store.failures import is_busy, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_T = TypeVar("_T")

BUSY_SECONDS = 30.0
"""How long a call waits for other processes before it gives up."""

_PAUSE = 0.01
_WAL_LIMIT = 16 << 20  # bytes that a log file keeps on disk once its content is in the database


def connect(
    path: Path, *, is_reader: bool = False, seconds: float = BUSY_SECONDS
) -> sqlite3.Connection:
    """Return a connection to a database that exists, without implicit transactions.

    That of a reader never changes the file, not even by emptying the log when it is closed.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'ro' if is_reader else 'rw'}",
        uri=True, timeout=seconds, isolation_level=None, check_same_thread=False,
    )  # fmt: skip
    connection.execute("PRAGMA temp_store = MEMORY")  # no copies in a folder of others
    connection.execute("PRAGMA secure_delete = FAST")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
    return connection


def patiently(action: Callable[[], _T], seconds: float) -> _T:
    """Return what the action returns, repeating it while another process holds the lock.

    SQLite's own timeout does not cover every case: recovery after a crash answers at once.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return action()
        except sqlite3.OperationalError as err:
            if not is_busy(err) or time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection, begin: str, seconds: float) -> Iterator[None]:
    """Run a block in a transaction: committed at its end, undone by an error."""
    patiently(lambda: connection.execute(begin), seconds)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has undone it itself after some errors
            connection.execute("ROLLBACK")
        raise


class _Held:
    """A connection, and the lock of whoever is using it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None

    def close(self) -> None:
        with self.lock:
            if self.connection is not None:
                self.connection.close()
                self.connection = None


class Database:
    """One SQLite file, for all threads of this process and the processes forked from it."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._seconds = busy_seconds
        self._is_closed = False
        self._reset()
        _OPEN.add(self)

    def _reset(self) -> None:
        self._registry = threading.Lock()
        self._readers: dict[threading.Thread, _Held] = {}
        self._written = _Held()
        self._durable: bool | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="recap-store")

    def read(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return ``work(connection)``, which sees one state of the database.

        Raises:
            StoreError: The store is closed, damaged or cannot be read.
        """
        held = self._reader()
        with held.lock, self._translating():
            connection = self._connected(held, is_reader=True)

            def once() -> _T:
                with transaction(connection, "BEGIN", self._seconds):
                    return work(connection)

            return patiently(once, self._seconds)

    def write(self, work: Callable[[sqlite3.Connection], _T], *, durable: bool = True) -> _T:
        """Return ``work(connection)``, run by the writer thread in a transaction of its own.

        Args:
            work: What to write. An error it raises undoes the transaction and is raised here.
            durable: Whether the transaction survives a power cut; if not, it still survives the
                end of the process.

        Raises:
            StoreError: The store is closed, damaged, full, or locked by another process.
        """
        self._demand_open()
        try:
            return self._writer.submit(self._transact, work, durable).result()
        except RuntimeError as err:  # closed by another thread since the check
            self._demand_open(err)
            raise

    def _transact(self, work: Callable[[sqlite3.Connection], _T], durable: bool) -> _T:
        with self._written.lock, self._translating():
            connection = self._connected(self._written, is_reader=False)
            if durable is not self._durable:
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                self._durable = durable
            with transaction(connection, "BEGIN IMMEDIATE", self._seconds):
                return work(connection)

    def empty_log(self) -> None:
        """Move the write-ahead log into the database, as far as readers allow, and cut it."""
        self._demand_open()
        self._writer.submit(self._checkpoint).result()

    def _checkpoint(self) -> None:
        with self._written.lock, self._translating():
            connection = self._connected(self._written, is_reader=False)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close all connections; harmless when that has happened."""
        self._is_closed = True
        self._writer.shutdown()
        with self._registry:
            held = [*self._readers.values(), self._written]
            self._readers.clear()
        with self._translating():
            for one in held:
                one.close()

    def _demand_open(self, cause: BaseException | None = None) -> None:
        if self._is_closed:
            raise StoreError(f"the store {self.path} is closed") from cause

    def _connected(self, held: _Held, *, is_reader: bool) -> sqlite3.Connection:
        self._demand_open()
        if held.connection is None:
            held.connection = connect(self.path, is_reader=is_reader, seconds=self._seconds)
        return held.connection

    def _reader(self) -> _Held:
        """Return this thread's reader; those of threads that ended are closed."""
        thread = threading.current_thread()
        with self._registry:
            if thread not in self._readers:
                ended = [one for one in self._readers if not one.is_alive()]
                for one in ended:
                    self._readers.pop(one).close()
                self._readers[thread] = _Held()
            return self._readers[thread]

    @contextlib.contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as err:
            raise translated(err, self.path) from err

    def _hold(self) -> None:
        """Before a fork: wait until no thread is inside SQLite, whose locks a child would keep."""
        self._registry.acquire()
        for held in (*self._readers.values(), self._written):
            held.lock.acquire()

    def _let_go(self) -> None:
        for held in (*self._readers.values(), self._written):
            held.lock.release()
        self._registry.release()

    def _leave_to_parent(self) -> None:
        """After a fork, in the child: start anew. Closing what is the parent's would harm it."""
        _INHERITED.append((self._readers, self._written))
        self._reset()


_OPEN: weakref.WeakSet[Database] = weakref.WeakSet()
_INHERITED: list[object] = []
"""Connections of the parent process: SQLite forbids to use them here, closing them included."""


_FORKING = threading.Lock()
_HELD: list[Database] = []


def _before_fork() -> None:
    _FORKING.acquire()
    _HELD[:] = _OPEN
    for database in _HELD:
        database._hold()


def _after_fork_in_parent() -> None:
    for database in _HELD:
        database._let_go()
    _FORKING.release()


def _after_fork_in_child() -> None:
    for database in _HELD:
        database._leave_to_parent()
    _FORKING.release()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
