"""Snapshots and branches, the nodes and edges of a session's history: SQL on an open transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from recap.errors import UsageError
from recap.store import objects
from recap.store.rows import (
    TEXT_LIMIT,
    check_bytes,
    check_seal,
    check_values,
    seal,
    to_column,
    to_text,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from recap.store.rows import Value

LINEAGE_LIMIT = 10_000
ITEM_LIMIT = 100_000
"""Ancestors that are followed; side files, tags and versions of a snapshot."""

_SNAPSHOT = (
    "id, name, description, tags, created, agent, session, project, versions, root, sha256, size, "
    "lines, messages, parent, is_active, graph_rev, sides, seal"
)
_BRANCH = "id, snapshot, session, name, created, options, sha256, seal"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFile:
    """A file beside a transcript: its name there, its chain, the proof of the whole."""

    name: str
    root: bytes
    sha256: bytes
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRow:
    """One immutable snapshot of a transcript.

    Attributes:
        id: Decides; never used twice.
        name: For people; unique unless empty.
        description: For people.
        tags: For people and rotation.
        created: Unix time, set when the row is added unless given.
        agent: Kind of agent that wrote the transcript.
        session: Id of the session it was taken of.
        project: Path of that session's project.
        versions: Versions of the client seen in it.
        root: Root of its chain, see ``History.put_chain``.
        sha256: Proof of the whole transcript, 32 bytes.
        size: Its bytes.
        lines: Its lines.
        messages: Count of messages by kind.
        parent: Id of the snapshot whose branch it was taken of; that one may have been deleted.
        is_active: Whether the session was written to shortly before: a client may have held it.
        graph_rev: Revision of the session's graph at that time; 0 for none.
        sides: The files beside the transcript.
    """

    id: str
    root: bytes
    sha256: bytes
    size: int
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    created: float = 0.0
    agent: str = ""
    session: str = ""
    project: str = ""
    versions: tuple[str, ...] = ()
    lines: int = 0
    messages: tuple[tuple[str, int], ...] = ()
    parent: str | None = None
    is_active: bool = False
    graph_rev: int = 0
    sides: tuple[SideFile, ...] = ()

    @property
    def chains(self) -> tuple[SnapshotRow | SideFile, ...]:
        """What names a chain: the transcript, then its side files."""
        return (self, *self.sides)


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRow:
    """One session made from a snapshot.

    Attributes:
        id: Decides; never used twice.
        snapshot: Id of the snapshot.
        session: Id of the new session.
        name: For people.
        created: Unix time, set when the row is added unless given.
        options: How it was trimmed, as its maker wrote it.
        sha256: Proof of the file that was written, 32 bytes; b"" when that is not known.
    """

    id: str
    snapshot: str
    session: str
    name: str = ""
    created: float = 0.0
    options: str = ""
    sha256: bytes = b""


def check_snapshot(row: SnapshotRow) -> None:
    """Raise UsageError for a row that cannot be stored."""
    _check_name("id", row.id)
    for side in row.chains:
        check_bytes("root", side.root, objects.HASH_BYTES, objects.HASH_BYTES)
        check_bytes("sha256", side.sha256, objects.HASH_BYTES, objects.HASH_BYTES)
    check_values(row, but=("tags", "versions", "messages", "sides"))
    for side in row.sides:
        check_values(side)
    texts = [*row.tags, *row.versions, *(name for name, _ in row.messages)]
    count = len(texts) + len(row.sides)
    if count > ITEM_LIMIT or any(len(text) > TEXT_LIMIT for text in texts):
        raise UsageError(
            f"tags, versions, messages and sides hold {count:,} items, at most {ITEM_LIMIT:,} of "
            f"{TEXT_LIMIT:,} characters can be stored"
        )


def check_branch(row: BranchRow) -> None:
    """Raise UsageError for a row that cannot be stored."""
    _check_name("id", row.id)
    _check_name("snapshot", row.snapshot)
    if row.sha256:
        check_bytes("sha256", row.sha256, objects.HASH_BYTES, objects.HASH_BYTES)
    check_values(row)


def _check_name(field: str, value: str) -> None:
    if not value:
        raise UsageError(f"{field} must not be empty")


def add_snapshot(connection: sqlite3.Connection, row: SnapshotRow, now: float) -> SnapshotRow:
    """Store a snapshot whose chains are stored, and return it.

    Raises:
        UsageError: Its id or name is taken, or it would be its own ancestor.
        StoreError: A chain is not whole.
    """
    for side in row.chains:
        objects.demand_whole(connection, side.root)
    if row.parent is not None:
        above = lineage(connection, row.parent)
        if row.id in {row.parent, *(ancestor.parent for ancestor in above)}:
            raise UsageError(f"snapshot {row.id!r} would be its own ancestor")
    _check_free(connection, "snapshots", "id", row.id)
    if row.name:
        _check_free(connection, "snapshots", "name", row.name)
    added = replace(row, created=float(row.created or now))
    _write(connection, "snapshots", _SNAPSHOT, _snapshot_values(added))
    return added


def add_branch(connection: sqlite3.Connection, row: BranchRow, now: float) -> BranchRow:
    """Store a branch of a snapshot that is stored, and return it.

    Raises:
        UsageError: Its id is taken, or the snapshot is not stored.
    """
    if get_snapshot(connection, row.snapshot) is None:
        raise UsageError(f"no snapshot {row.snapshot!r} to branch from")
    _check_free(connection, "branches", "id", row.id)
    added = replace(row, created=float(row.created or now))
    _write(connection, "branches", _BRANCH, _branch_values(added))
    return added


def relabel(
    connection: sqlite3.Connection, id: str, name: str, description: str, tags: tuple[str, ...]
) -> SnapshotRow | None:
    """Give a snapshot other labels and return it, None when there is none.

    Raises:
        UsageError: Another snapshot has the name.
    """
    row = get_snapshot(connection, id)
    if row is None:
        return None
    if name and name != row.name:
        _check_free(connection, "snapshots", "name", name)
    changed = replace(row, name=name, description=description, tags=tags)
    check_snapshot(changed)
    delete(connection, "snapshots", id)
    _write(connection, "snapshots", _SNAPSHOT, _snapshot_values(changed))
    return changed


def delete(connection: sqlite3.Connection, table: str, id: str) -> bool:
    """Remove a row of ``snapshots`` or ``branches``; False when there was none."""
    query = f"DELETE FROM {table} WHERE id = ?"
    return connection.execute(query, (to_column(id),)).rowcount == 1


def get_snapshot(connection: sqlite3.Connection, id: str) -> SnapshotRow | None:
    """Return a snapshot, None when there is none."""
    return next(iter_snapshots(connection, "WHERE id = ?", id), None)


def iter_snapshots(
    connection: sqlite3.Connection, where: str = "", *values: Value
) -> Iterator[SnapshotRow]:
    """Yield snapshots, newest first, each proved.

    Raises:
        StoreError: A row is damaged.
    """
    query = f"SELECT {_SNAPSHOT} FROM snapshots {where} ORDER BY created DESC, rowid DESC"
    for found in connection.execute(query, [to_column(value) for value in values]):
        yield _snapshot(found)


def iter_branches(
    connection: sqlite3.Connection, where: str = "", *values: Value
) -> Iterator[BranchRow]:
    """Yield branches, newest first, each proved.

    Raises:
        StoreError: A row is damaged.
    """
    query = f"SELECT {_BRANCH} FROM branches {where} ORDER BY created DESC, rowid DESC"
    for found in connection.execute(query, [to_column(value) for value in values]):
        yield _branch(found)


def lineage(connection: sqlite3.Connection, id: str) -> list[SnapshotRow]:
    """Return a snapshot and its ancestors, nearest first.

    Ends at a deleted ancestor, at a circle, and after LINEAGE_LIMIT rows.
    """
    rows: dict[str, SnapshotRow] = {}
    next_id: str | None = id
    while next_id is not None and next_id not in rows and len(rows) < LINEAGE_LIMIT:
        row = get_snapshot(connection, next_id)
        if row is None:
            break
        rows[row.id], next_id = row, row.parent
    return list(rows.values())


def roots(connection: sqlite3.Connection) -> set[bytes]:
    """Return the roots of all chains that a snapshot needs."""
    rows = iter_snapshots(connection)
    return {side.root for row in rows for side in row.chains}


def _check_free(connection: sqlite3.Connection, table: str, column: str, value: str) -> None:
    query = f"SELECT 1 FROM {table} WHERE {column} = ?"
    if connection.execute(query, (to_column(value),)).fetchone():
        raise UsageError(f"the {column} {value!r} is taken, choose another")


def _write(connection: sqlite3.Connection, table: str, names: str, values: Sequence[Value]) -> None:
    columns = [*map(to_column, values), seal(*values)]
    marks = ", ".join("?" * len(columns))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", columns)


def _snapshot_values(row: SnapshotRow) -> list[Value]:
    sides = [[side.name, side.root.hex(), side.sha256.hex(), side.size] for side in row.sides]
    lists = {"tags": row.tags, "versions": row.versions, "messages": row.messages, "sides": sides}
    texts = {name: json.dumps(value) for name, value in lists.items()}
    return [texts.get(name) or getattr(row, name) for name in _SNAPSHOT.split(", ")[:-1]]


def _snapshot(found: Sequence[Any]) -> SnapshotRow:
    *columns, stored_seal = found
    values = dict(zip(_SNAPSHOT.split(", "), columns, strict=False))
    for name in ("id", "name", "description", "agent", "session", "project"):
        values[name] = to_text(values[name])
    if values["parent"] is not None:
        values["parent"] = to_text(values["parent"])
    check_seal(stored_seal, *values.values())
    lists = {name: _parsed(values[name]) for name in ("tags", "versions", "messages", "sides")}
    values |= lists
    values["messages"] = tuple((name, count) for name, count in lists["messages"])
    values["is_active"] = bool(values["is_active"])
    values["sides"] = tuple(
        SideFile(name=name, root=bytes.fromhex(root), sha256=bytes.fromhex(sha256), size=size)
        for name, root, sha256, size in lists["sides"]
    )
    return SnapshotRow(**values)


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[Any, ...]:
    """Return a list that was stored as JSON; snapshots of a session have most of them in common."""
    return tuple(json.loads(text))


def _branch_values(row: BranchRow) -> list[Value]:
    return [getattr(row, name) for name in _BRANCH.split(", ")[:-1]]


def _branch(found: Sequence[Any]) -> BranchRow:
    *columns, stored_seal = found
    values = dict(zip(_BRANCH.split(", "), columns, strict=False))
    for name in ("id", "snapshot", "session", "name", "options"):
        values[name] = to_text(values[name])
    check_seal(stored_seal, *values.values())
    return BranchRow(**values)
