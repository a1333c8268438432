"""Sessions, their selections and index caches, by tenant: SQL on an open transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from recap.errors import ConflictError, StoreError
from recap.store.rows import (
    SelectionRow,
    SessionRow,
    check_bytes,
    check_key,
    check_seal,
    check_values,
    seal,
    to_column,
    to_text,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from recap.store.rows import Value

SESSION_LIMIT = 2_000
SELECTION_LIMIT = 64
GRAPH_LIMIT = 4 << 20
INDEX_LIMIT = 8 << 20
"""Bounds: sessions of a tenant, selections of a session, bytes of a graph or selection, an index."""

_SESSION = (
    "tenant, id, rev, parent, label, format, mode, observer, observed_key, turns, blocks, "
    "last_response, cached_tokens, chars_per_token, created, updated, seal"
)
_NAMES = tuple(_SESSION.split(", ")[:-1])
_SELECTION = "tenant, session, turn_key, key, graph_rev, created, seal, kept"
_TEXTS = slice(4, 9)  # label to observed_key


def check_session(row: SessionRow) -> None:
    """Raise UsageError for a row that cannot be stored, StoreError for a graph too large."""
    check_key("tenant", row.tenant)
    check_key("id", row.id)
    if row.parent is not None:
        check_key("parent", row.parent)
    check_values(row)
    check_blob("graph", row.graph)


def check_selection(row: SelectionRow) -> None:
    """Raise UsageError for a row that cannot be stored, StoreError for one too large."""
    check_key("tenant", row.tenant)
    check_key("session", row.session)
    check_bytes("turn_key", row.turn_key, 1, 64)
    check_bytes("key", row.key, 0, 64)
    check_values(row)
    check_blob("selection", row.kept)


def check_blob(name: str, value: bytes) -> None:
    """Raise StoreError for a graph or selection above its bound: the caller has to prune it."""
    check_bytes(name, value, 0, 1 << 31)
    if len(value) > GRAPH_LIMIT:
        raise StoreError(
            f"a {name} of {len(value):,} bytes is not stored, at most {GRAPH_LIMIT:,}; prune it"
        )


def load_session(connection: sqlite3.Connection, tenant: bytes, id: bytes) -> SessionRow | None:
    """Return a session, None when there is none."""
    query = f"SELECT {_SESSION}, graph FROM sessions WHERE tenant = ? AND id = ?"
    found = connection.execute(query, (tenant, id)).fetchone()
    if found is None:
        return None
    *columns, stored_seal, graph = found
    row = SessionRow(**_session_fields(columns), graph=graph)
    check_seal(stored_seal, *_session_values(row))
    return row


def list_sessions(connection: sqlite3.Connection, tenant: bytes) -> list[SessionRow]:
    """Return the tenant's sessions without their graphs, newest first."""
    query = f"SELECT {_SESSION} FROM sessions WHERE tenant = ? ORDER BY updated DESC, rowid DESC"
    return [
        SessionRow(**_session_fields(columns[:-1]))
        for columns in connection.execute(query, (tenant,))
    ]


def save_session(connection: sqlite3.Connection, row: SessionRow, now: float) -> SessionRow:
    """Store a session as the successor of ``row.rev`` and return it as stored.

    Raises:
        ConflictError: The stored revision is another one, or the session is gone.
    """
    saved = replace(row, rev=row.rev + 1, created=row.created or now, updated=now)
    values = _session_values(saved)
    columns = [*map(to_column, values[:-1]), seal(*values), saved.graph]
    if row.rev == 0:
        marks = ", ".join("?" * len(columns))
        query = f"INSERT INTO sessions ({_SESSION}, graph) VALUES ({marks}) ON CONFLICT DO NOTHING"
        done = connection.execute(query, columns)
        _drop_oldest_sessions(connection, saved)
    else:
        names = ", ".join(f"{name} = ?" for name in (*_NAMES, "seal", "graph"))
        query = f"UPDATE sessions SET {names} WHERE tenant = ? AND id = ? AND rev = ?"
        done = connection.execute(query, [*columns, row.tenant, row.id, row.rev])
    if done.rowcount != 1:
        raise ConflictError(
            f"session {row.id.hex()[:8]} was saved by another process or removed since revision "
            f"{row.rev}; load it again"
        )
    return saved


def delete_session(connection: sqlite3.Connection, tenant: bytes, id: bytes) -> bool:
    """Remove a session with its selections and index; False when there was none."""
    for table in ("selections", "indexes"):
        connection.execute(f"DELETE FROM {table} WHERE tenant = ? AND session = ?", (tenant, id))
    query = "DELETE FROM sessions WHERE tenant = ? AND id = ?"
    return connection.execute(query, (tenant, id)).rowcount == 1


def _drop_oldest_sessions(connection: sqlite3.Connection, newest: SessionRow) -> None:
    query = "SELECT count(*) FROM sessions WHERE tenant = ?"
    (count,) = connection.execute(query, (newest.tenant,)).fetchone()
    oldest = "SELECT id FROM sessions WHERE tenant = ? AND id != ? ORDER BY updated, rowid LIMIT ?"
    excess = (newest.tenant, newest.id, max(0, count - SESSION_LIMIT))
    for (id,) in connection.execute(oldest, excess).fetchall():
        delete_session(connection, newest.tenant, id)


def load_index(connection: sqlite3.Connection, tenant: bytes, session: bytes) -> bytes | None:
    """Return the index cache of a session; None when there is none, or a damaged one."""
    query = "SELECT bytes, seal FROM indexes WHERE tenant = ? AND session = ?"
    found = connection.execute(query, (tenant, session)).fetchone()
    if found is None or found[1] != seal(tenant, session, found[0]):
        return None
    return bytes(found[0])


def save_index(connection: sqlite3.Connection, tenant: bytes, session: bytes, index: bytes) -> None:
    """Replace the index cache of a session; one above its bound is dropped."""
    where = (tenant, session)
    connection.execute("DELETE FROM indexes WHERE tenant = ? AND session = ?", where)
    if len(index) <= INDEX_LIMIT:
        query = "INSERT INTO indexes (tenant, session, seal, bytes) VALUES (?, ?, ?, ?)"
        connection.execute(query, (*where, seal(*where, index), index))


def load_selection(
    connection: sqlite3.Connection, tenant: bytes, session: bytes, turn_key: bytes
) -> SelectionRow | None:
    """Return what a turn was given, None when that is not known."""
    where = "tenant = ? AND session = ? AND turn_key = ?"
    query = f"SELECT {_SELECTION} FROM selections WHERE {where}"
    found = connection.execute(query, (tenant, session, turn_key)).fetchone()
    return None if found is None else _selection(found)


def list_selections(
    connection: sqlite3.Connection, tenant: bytes, session: bytes
) -> list[SelectionRow]:
    """Return the selections of a session, newest first."""
    where = "tenant = ? AND session = ?"
    # a new row gets the greatest rowid: no clock decides
    query = f"SELECT {_SELECTION} FROM selections WHERE {where} ORDER BY rowid DESC"
    return [_selection(found) for found in connection.execute(query, (tenant, session))]


def put_selection(connection: sqlite3.Connection, row: SelectionRow, now: float) -> SelectionRow:
    """Keep a selection, unless the turn has one of the same settings; return the one kept.

    Raises:
        ConflictError: The session is not stored, or not any more.
    """
    here = (row.tenant, row.session)
    known = "SELECT 1 FROM sessions WHERE tenant = ? AND id = ?"
    if connection.execute(known, here).fetchone() is None:
        raise ConflictError(
            f"session {row.session.hex()[:8]} is not stored; save it before its selections"
        )
    first = load_selection(connection, *here, row.turn_key)
    if first is not None and first.key == row.key:
        return first
    kept = replace(row, created=now)
    values = _selection_values(kept)
    query = f"INSERT OR REPLACE INTO selections ({_SELECTION}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    connection.execute(query, (*values[:-1], seal(*values), kept.kept))
    oldest = (
        "DELETE FROM selections WHERE rowid IN (SELECT rowid FROM selections "
        "WHERE tenant = ? AND session = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?)"
    )
    connection.execute(oldest, (*here, SELECTION_LIMIT))
    return kept


def _session_fields(columns: Sequence[Any]) -> dict[str, Any]:
    texts = map(to_text, columns[_TEXTS])
    values = (*columns[: _TEXTS.start], *texts, *columns[_TEXTS.stop :])
    return dict(zip(_NAMES, values, strict=True))


def _session_values(row: SessionRow) -> list[Value]:
    return [getattr(row, name) for name in (*_NAMES, "graph")]


def _selection(found: tuple[Any, ...]) -> SelectionRow:
    tenant, session, turn_key, key, graph_rev, created, stored_seal, kept = found
    row = SelectionRow(
        tenant=tenant, session=session, turn_key=turn_key, key=key,
        graph_rev=graph_rev, created=created, kept=kept,
    )  # fmt: skip
    check_seal(stored_seal, *_selection_values(row))
    return row


def _selection_values(row: SelectionRow) -> list[Value]:
    return [row.tenant, row.session, row.turn_key, row.key, row.graph_rev, row.created, row.kept]
