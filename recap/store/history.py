"""The store's history: chains of bytes, snapshots of transcripts, and the branches made of them."""

from __future__ import annotations

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from recap.errors import StoreError
from recap.store import objects, snapshots, unfinished
from recap.store.cutting import cut
from recap.store.failures import REPAIR
from recap.store.rows import check_bytes

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator

    from recap.store.database import Database
    from recap.store.snapshots import BranchRow, SideFile, SnapshotRow
    from recap.store.unfinished import Unfinished

GRACE_SECONDS = 7 * 86400.0
_BATCH = 2 << 20  # bytes that are stored in one transaction
_THREADS = 2
"""That compress, which lets other threads run; more would only wait for the one that reads."""


class Chain(NamedTuple):
    """Bytes that are stored: root of their chain, SHA-256 of the whole, count, line ends."""

    root: bytes
    sha256: bytes
    size: int
    lines: int


class Collected(NamedTuple):
    """What a collection removed, or would remove: pieces, and their bytes as stored."""

    objects: int
    size: int


class _Batch(NamedTuple):
    """Pieces that are about to be stored: their names, and those that are being compressed."""

    names: list[bytes]
    pieces: list[bytes]
    packed: dict[bytes, Future[objects.Packed]]


class History:
    """Snapshots, branches and the bytes behind them; ``Store.history``. Of no tenant.

    A call can raise StoreError as those of ``Store``. Text of conversations is stored here alone.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def put_chain(self, data: bytes | Iterable[bytes]) -> Chain:
        """Store bytes, or chunks of bytes, and return what names them.

        Pieces that are stored already are not stored again. Memory stays within a few batches of 2
        MiB. Until a snapshot names the root, the bytes are safe from ``collect`` for its grace.
        """
        root: bytes | None = None
        whole = hashlib.sha256()
        lines = size = 0
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="recap-pack") as pool:
            before: _Batch | None = None
            for pieces in _batches(cut([data] if isinstance(data, bytes) else data)):
                batch = self._begun(pool, pieces)
                for piece in pieces:
                    whole.update(piece)
                    lines += piece.count(b"\n")
                    size += len(piece)
                if before is not None:
                    root = self._put_batch(root, before)
                before = batch
            assert before is not None  # even no bytes are one piece
            root = self._put_batch(root, before)
        return Chain(root, whole.digest(), size, lines)

    def _begun(self, pool: ThreadPoolExecutor, pieces: list[bytes]) -> _Batch:
        """Name pieces, and begin to compress in other threads those that are not stored."""
        names = [objects.name_of(piece) for piece in pieces]
        known = self._database.read(lambda c: objects.known(c, names))
        packed = {
            name: pool.submit(objects.pack, name, piece)
            for name, piece in zip(names, pieces, strict=True)
            if name not in known
        }
        return _Batch(names, pieces, packed)

    def _put_batch(self, parent: bytes | None, batch: _Batch) -> bytes:
        links = []
        for name in batch.names:
            links.append(objects.link(parent, name))
            parent = links[-1].hash
        packed = {name: each.result() for name, each in batch.packed.items()}
        now = self._clock()

        def put(connection: sqlite3.Connection) -> None:
            for name, piece in zip(batch.names, batch.pieces, strict=True):
                if not objects.touch(connection, name, now):
                    objects.put(connection, packed.get(name) or objects.pack(name, piece), now)
            objects.put_links(connection, links)

        # The transaction that names the chain is flushed, and these with it.
        self._database.write(put, durable=False)
        return links[-1].hash

    def pieces(self, root: bytes) -> Iterator[bytes]:
        """Yield the bytes of a chain in order, each piece proved; memory holds one at a time.

        Raises:
            StoreError: A link or piece is missing or damaged.
        """
        check_bytes("root", root, objects.HASH_BYTES, objects.HASH_BYTES)
        for link in self._database.read(lambda c: objects.walk(c, root)):
            yield self._database.read(lambda c, name=link.object: objects.get(c, name))  # type: ignore[misc]

    def read_chain(self, root: bytes) -> bytes:
        """Return the bytes of a chain, proved.

        Raises:
            StoreError: A link or piece is missing or damaged.
        """
        return b"".join(self.pieces(root))

    def read(self, row: SnapshotRow | SideFile) -> Iterator[bytes]:
        """Yield the bytes of a snapshot or side file; the end proves the whole.

        Raises:
            StoreError: A piece, or after the last one the whole, is not what was stored.
        """
        whole = hashlib.sha256()
        for piece in self.pieces(row.root):
            whole.update(piece)
            yield piece
        if whole.digest() != row.sha256:
            raise StoreError(f"a snapshot is not what was stored; {REPAIR}")

    def add_snapshot(self, row: SnapshotRow, *, branch: BranchRow | None = None) -> SnapshotRow:
        """Store a snapshot, and a branch of it if given, both or neither; return the snapshot.

        Raises:
            UsageError: An id or the name is taken, a value cannot be stored, the branch is of
                another snapshot, or the snapshot would be its own ancestor.
            StoreError: A chain that it names is not whole.
        """
        snapshots.check_snapshot(row)
        if branch is not None:
            snapshots.check_branch(branch)
        now = self._clock()

        def add(connection: sqlite3.Connection) -> SnapshotRow:
            added = snapshots.add_snapshot(connection, row, now)
            if branch is not None:
                snapshots.add_branch(connection, branch, now)
            return added

        return self._database.write(add)

    def add_branch(self, row: BranchRow) -> BranchRow:
        """Store a branch and return it.

        Raises:
            UsageError: Its id is taken, a value cannot be stored, or there is no such snapshot.
        """
        snapshots.check_branch(row)
        now = self._clock()
        return self._database.write(lambda c: snapshots.add_branch(c, row, now))

    def snapshot(self, id: str) -> SnapshotRow | None:
        """Return a snapshot, None when there is none."""
        return self._database.read(lambda c: snapshots.get_snapshot(c, id))

    def snapshots(
        self, *, session: str | None = None, name: str | None = None
    ) -> list[SnapshotRow]:
        """Return all snapshots, those of one session, or that of a name; newest first."""
        where = "WHERE (?1 IS NULL OR session = ?1) AND (?2 IS NULL OR name = ?2)"
        return self._database.read(
            lambda c: list(snapshots.iter_snapshots(c, where, session, name))
        )

    def branches(
        self, *, snapshot: str | None = None, session: str | None = None
    ) -> list[BranchRow]:
        """Return all branches, those of one snapshot, or those that made a session; newest first."""
        where = "WHERE (?1 IS NULL OR snapshot = ?1) AND (?2 IS NULL OR session = ?2)"
        return self._database.read(
            lambda c: list(snapshots.iter_branches(c, where, snapshot, session))
        )

    def lineage(self, id: str) -> list[SnapshotRow]:
        """Return a snapshot and its ancestors, nearest first, up to one that was deleted."""
        return self._database.read(lambda c: snapshots.lineage(c, id))

    def relabel(
        self, id: str, *, name: str = "", description: str = "", tags: tuple[str, ...] = ()
    ) -> SnapshotRow | None:
        """Give a snapshot other labels and return it, None when there is none.

        Raises:
            UsageError: Another snapshot has the name, or a label cannot be stored.
        """
        return self._database.write(lambda c: snapshots.relabel(c, id, name, description, tags))

    def delete_snapshot(self, id: str) -> bool:
        """Remove a snapshot; its bytes go with ``collect``. False when there was none."""
        return self._database.write(lambda c: snapshots.delete(c, "snapshots", id))

    def delete_branch(self, id: str) -> bool:
        """Remove the record of a branch; False when there was none."""
        return self._database.write(lambda c: snapshots.delete(c, "branches", id))

    def begin(self, row: Unfinished) -> Unfinished:
        """Note files before they are written outside the store, and return the note."""
        unfinished.check_unfinished(row)
        noted = replace(row, created=self._clock())
        # A later transaction that is flushed flushes this one with it.
        self._database.write(lambda c: unfinished.put(c, noted), durable=False)
        return noted

    def commit(self, row: Unfinished, branch: BranchRow | None = None) -> BranchRow | None:
        """Record that files are written whole, and the branch that they are; return the branch.

        Raises:
            UsageError: See ``add_branch``.
        """
        if branch is not None:
            snapshots.check_branch(branch)
        now = self._clock()
        ready = replace(row, is_ready=True, branch=branch.id if branch else "")

        def commit(connection: sqlite3.Connection) -> BranchRow | None:
            unfinished.put(connection, ready)
            return snapshots.add_branch(connection, branch, now) if branch else None

        return self._database.write(commit)

    def abandon(self, row: Unfinished) -> None:
        """Record that files do not get their names, and remove the branch that they were to be."""

        def abandon(connection: sqlite3.Connection) -> None:
            unfinished.put(connection, replace(row, is_ready=False, branch=""))
            snapshots.delete(connection, "branches", row.branch)

        self._database.write(abandon)

    def end(self, row: Unfinished) -> None:
        """Remove a note: its files have their names, or are gone."""
        self._database.write(lambda c: unfinished.drop(c, row.id), durable=False)

    def unfinished(self) -> list[Unfinished]:
        """Return the notes of files that are on their way, by whatever process; oldest first."""
        return self._database.read(lambda c: list(unfinished.iter_unfinished(c)))

    def collect(self, *, grace_seconds: float = GRACE_SECONDS, dry_run: bool = False) -> Collected:
        """Remove bytes that no snapshot needs and that nobody stored within the grace.

        What is removed is overwritten with zeros. Backups keep it until they are replaced.
        """
        before = self._clock() - grace_seconds

        def collect(connection: sqlite3.Connection) -> Collected:
            needed = snapshots.roots(connection)
            connection.execute("PRAGMA secure_delete = ON")
            try:
                return Collected(*objects.collect(connection, needed, before, dry_run=dry_run))
            finally:
                connection.execute("PRAGMA secure_delete = FAST")

        collected = self._database.write(collect)
        if not dry_run:
            self._database.empty_log()
        return collected


def _batches(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
