"""The store: one folder with a database of bytes, a secret and rolling copies."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from recap.errors import UsageError
from recap.store import sessions
from recap.store.backup import copy, roll
from recap.store.database import Database
from recap.store.files import Place, is_free, locked, make_folder, store_folder
from recap.store.history import History
from recap.store.migrations import migrate, pending
from recap.store.opening import hold, judged_secret
from recap.store.rows import KEY_BYTES, check_bytes, check_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from sqlite3 import Connection
    from types import TracebackType

    from recap.store.files import Lock
    from recap.store.rows import SelectionRow, SessionRow
    from recap.store.verify import Fault


class Store:
    """An open store; a context manager, for all threads. A process opens a folder once.

    Any call can raise StoreError, in one line with the next step: the store is closed, damaged,
    full, or locked by another process for too long. It then has changed nothing.
    """

    def __init__(self, place: Place, lock: Lock, secret: bytes, clock: Callable[[], float]) -> None:
        self._place = place
        self._lock = lock
        self._secret = secret
        self._clock = clock
        self._database = Database(place.database)

    @classmethod
    def open(cls, folder: Path | None = None, *, clock: Callable[[], float] = time.time) -> Store:
        """Return the store of a folder, made with the folder if it is new.

        Args:
            folder: None for RECAP_HOME, else the user's data folder.
            clock: Unix time that rows are stamped with, seconds.

        Raises:
            StoreError: The folder cannot be used, or its database is damaged, of another program or
                of a newer release, or lacks its secret. Nothing is overwritten.
        """
        place = Place(store_folder(folder, os.environ))
        make_folder(place.folder)
        lock = hold(place)
        try:
            store = cls(place, lock, judged_secret(place), clock)
            if store._database.read(pending):
                store._database.write(migrate)
            store._back_up()
        except BaseException:
            lock.release()
            raise
        return store

    def close(self) -> None:
        """Close the store; harmless when that has happened."""
        self._database.close()
        self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _back_up(self) -> None:
        if self._database.read(_holds_something):
            roll(self._place, self._clock())

    @property
    def folder(self) -> Path:
        """The folder of the store."""
        return self._place.folder

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the store for this process alone for the length of a block.

        Raises:
            StoreError: Another process has it open for too long.
        """
        try:
            self._lock.change(is_exclusive=True)
            yield
        finally:  # a change that fails may have lost the shared lock
            self._lock.change(is_exclusive=False)

    @contextmanager
    def making(self) -> Iterator[None]:
        """Keep ``settling`` away for the length of a block: files that it would settle are made."""
        with locked(self._place.making, is_exclusive=False):
            yield

    @contextmanager
    def settling(self) -> Iterator[bool]:
        """Keep ``making`` away for the length of a block; True unless somebody is making files."""
        with is_free(self._place.making) as is_alone:
            yield is_alone

    def verify(self) -> tuple[Fault, ...]:
        """Return what is wrong with the store, see ``recap.store.verify.verify``."""
        from recap.store.verify import verify

        return verify(self.folder)

    def backup(self, path: Path) -> None:
        """Copy the database to a new file, whole and checked, while it is in use.

        The secret is not part of it. The store makes such copies itself, one a day when it is
        opened, and keeps two.

        Raises:
            StoreError: The file exists or cannot be written, or the database is damaged.
        """
        copy(self._place.database, path)

    @property
    def history(self) -> History:
        """Snapshots, branches and the bytes behind them."""
        return History(self._database, self._clock)

    def key(self, *pieces: str | bytes) -> bytes:
        """Return 16 bytes that stand for the pieces in this store and in no other.

        A BLAKE2b hash keyed with the store's secret, so that neither credentials nor client ids can
        be guessed from a stolen database. The borders between pieces count.
        """
        digest = hashlib.blake2b(key=self._secret, digest_size=KEY_BYTES)
        for piece in pieces:
            data = piece.encode("utf-8", "surrogatepass") if isinstance(piece, str) else piece
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
        return digest.digest()

    def load_session(self, tenant: bytes, id: bytes) -> SessionRow | None:
        """Return a session, None when there is none."""
        _check_keys(tenant, id)
        return self._database.read(lambda c: sessions.load_session(c, tenant, id))

    def save_session(
        self,
        row: SessionRow,
        *,
        selection: SelectionRow | None = None,
        index: bytes | None = None,
        durable: bool = True,
    ) -> SessionRow:
        """Store a session, all of it or nothing, and return it with its next revision.

        Args:
            row: The session; ``rev`` as it was loaded, 0 for a new one.
            selection: Kept as by ``put_selection``.
            index: New index cache, not kept above 8 MiB; None leaves the one that is stored.
            durable: False leaves a power cut the chance to undo the last saves, for speed.

        Raises:
            ConflictError: Another process saved or removed the session since: load it again.
            UsageError: A key has another length, a value cannot be stored, or the selection is of
                another session.
            StoreError: The graph is larger than 4 MiB, or see the class.
        """
        sessions.check_session(row)
        if selection is not None:
            sessions.check_selection(selection)
            if (selection.tenant, selection.session) != (row.tenant, row.id):
                raise UsageError("the selection is of another session than the one saved")
        now = self._clock()

        def save(connection: Connection) -> SessionRow:
            saved = sessions.save_session(connection, row, now)
            if selection is not None:
                sessions.put_selection(connection, selection, now)
            if index is not None:
                sessions.save_index(connection, row.tenant, row.id, index)
            return saved

        return self._database.write(save, durable=durable)

    def sessions(self, tenant: bytes) -> list[SessionRow]:
        """Return the tenant's sessions without their graphs (``graph`` is empty), newest first."""
        _check_keys(tenant)
        return self._database.read(lambda c: sessions.list_sessions(c, tenant))

    def delete_session(self, tenant: bytes, id: bytes) -> bool:
        """Remove a session with its selections and index; False when there was none."""
        _check_keys(tenant, id)
        return self._database.write(lambda c: sessions.delete_session(c, tenant, id))

    def load_index(self, tenant: bytes, id: bytes) -> bytes | None:
        """Return the index cache of a session, None when it has to be built again."""
        _check_keys(tenant, id)
        return self._database.read(lambda c: sessions.load_index(c, tenant, id))

    def load_selection(self, tenant: bytes, session: bytes, turn_key: bytes) -> SelectionRow | None:
        """Return what a turn was given, None when that is not known."""
        _check_keys(tenant, session)
        check_bytes("turn_key", turn_key, 1, 64)
        return self._database.read(lambda c: sessions.load_selection(c, tenant, session, turn_key))

    def put_selection(self, row: SelectionRow, *, durable: bool = True) -> SelectionRow:
        """Keep a selection and return the one kept.

        If the turn has one of the same settings (``key``) already, that one stays and is returned;
        one of other settings is replaced. A session keeps its 64 newest.

        Raises:
            ConflictError: The session is not stored, or not any more.
            UsageError: A key has another length, or a value cannot be stored.
            StoreError: The selection is larger than 4 MiB, or see the class.
        """
        sessions.check_selection(row)
        now = self._clock()
        return self._database.write(lambda c: sessions.put_selection(c, row, now), durable=durable)

    def selections(self, tenant: bytes, session: bytes) -> list[SelectionRow]:
        """Return the selections of a session, newest first, at most 64."""
        _check_keys(tenant, session)
        return self._database.read(lambda c: sessions.list_selections(c, tenant, session))


def _holds_something(connection: Connection) -> bool:
    query = "SELECT EXISTS (SELECT 1 FROM sessions) OR EXISTS (SELECT 1 FROM snapshots)"
    return bool(connection.execute(query).fetchone()[0])


def _check_keys(tenant: bytes, session: bytes | None = None) -> None:
    check_key("tenant", tenant)
    if session is not None:
        check_key("session", session)
