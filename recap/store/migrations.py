"""The schema as ordered migrations: each runs once, whole or not at all; a shipped one stays."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from recap.errors import StoreError
from recap.store.failures import REPAIR

if TYPE_CHECKING:
    from collections.abc import Sequence

APPLICATION_ID = 0x52454350
"""SQLite's mark of whose file it is: "RECP"."""


class Migration(NamedTuple):
    """One step of the schema: its statements, in order."""

    statements: tuple[str, ...]

    @property
    def checksum(self) -> str:
        """SHA-256 of the statements: an edited migration is found."""
        return hashlib.sha256("\0".join(self.statements).encode()).hexdigest()


# Rows carry a seal (rows.seal) that proves them after damage. Big columns stand last: SQLite then
# lists rows without touching their overflow pages.
MIGRATIONS = (
    Migration((
        "CREATE TABLE meta (name TEXT PRIMARY KEY NOT NULL, value NOT NULL)",
        """CREATE TABLE sessions (
            tenant BLOB NOT NULL, id BLOB NOT NULL, rev INTEGER NOT NULL, parent BLOB,
            label TEXT NOT NULL, format TEXT NOT NULL, mode TEXT NOT NULL, observer TEXT NOT NULL,
            observed_key TEXT NOT NULL, turns INTEGER NOT NULL, blocks INTEGER NOT NULL,
            last_response REAL, cached_tokens INTEGER, chars_per_token REAL,
            created REAL NOT NULL, updated REAL NOT NULL, seal BLOB NOT NULL, graph BLOB NOT NULL,
            PRIMARY KEY (tenant, id))""",
        "CREATE INDEX sessions_by_age ON sessions (tenant, updated)",
        """CREATE TABLE selections (
            tenant BLOB NOT NULL, session BLOB NOT NULL, turn_key BLOB NOT NULL, key BLOB NOT NULL,
            graph_rev INTEGER NOT NULL, created REAL NOT NULL, seal BLOB NOT NULL,
            kept BLOB NOT NULL,
            PRIMARY KEY (tenant, session, turn_key))""",
        """CREATE TABLE indexes (
            tenant BLOB NOT NULL, session BLOB NOT NULL, seal BLOB NOT NULL, bytes BLOB NOT NULL,
            PRIMARY KEY (tenant, session))""",
        """CREATE TABLE objects (
            hash BLOB PRIMARY KEY NOT NULL, size INTEGER NOT NULL, codec INTEGER NOT NULL,
            touched REAL NOT NULL, bytes BLOB NOT NULL)""",
        """CREATE TABLE links (
            hash BLOB PRIMARY KEY NOT NULL, parent BLOB, object BLOB NOT NULL)""",
        """CREATE TABLE snapshots (
            id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,
            tags TEXT NOT NULL, created REAL NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL,
            project TEXT NOT NULL, versions TEXT NOT NULL, root BLOB, sha256 BLOB NOT NULL,
            size INTEGER NOT NULL, lines INTEGER NOT NULL, messages TEXT NOT NULL, parent TEXT,
            is_active INTEGER NOT NULL, graph_rev INTEGER NOT NULL, sides TEXT NOT NULL,
            seal BLOB NOT NULL)""",
        "CREATE INDEX snapshots_by_parent ON snapshots (parent)",
        "CREATE UNIQUE INDEX snapshots_by_name ON snapshots (name) WHERE name != ''",
        """CREATE TABLE branches (
            id TEXT PRIMARY KEY NOT NULL, snapshot TEXT NOT NULL, session TEXT NOT NULL,
            name TEXT NOT NULL, created REAL NOT NULL, options TEXT NOT NULL,
            sha256 BLOB NOT NULL, seal BLOB NOT NULL)""",
        "CREATE INDEX branches_by_snapshot ON branches (snapshot)",
    )),
    Migration((
        """CREATE TABLE unfinished (
            id TEXT PRIMARY KEY NOT NULL, folder TEXT NOT NULL, targets TEXT NOT NULL,
            replaces INTEGER NOT NULL, is_ready INTEGER NOT NULL, branch TEXT NOT NULL,
            created REAL NOT NULL, seal BLOB NOT NULL)""",
    )),
)  # fmt: skip

_LEDGER = """CREATE TABLE IF NOT EXISTS migrations (
    number INTEGER PRIMARY KEY, checksum TEXT NOT NULL, applied REAL NOT NULL)"""


def applied(connection: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return number and checksum of the migrations a database went through, in order."""
    known = "SELECT 1 FROM sqlite_master WHERE name = 'migrations'"
    if connection.execute(known).fetchone() is None:
        return []
    return connection.execute("SELECT number, checksum FROM migrations ORDER BY number").fetchall()


def is_newer(rows: Sequence[tuple[int, str]], migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Return True when a database went through all migrations known here and through more."""
    expected = _ledger_of(migrations)
    return len(rows) > len(expected) and list(rows[: len(expected)]) == expected


def pending(
    connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS
) -> Sequence[Migration]:
    """Return the migrations a database still lacks. Only reads.

    Raises:
        StoreError: The database is of a newer release, or its list of migrations is damaged.
    """
    rows = applied(connection)
    if is_newer(rows, migrations):
        raise StoreError(
            f"the store is of a newer release (schema {len(rows)}, this release knows "
            f"{len(migrations)}); upgrade recap-context"
        )
    if rows != _ledger_of(migrations)[: len(rows)]:
        raise StoreError(f"the schema of the store is damaged or not of this project; {REPAIR}")
    return migrations[len(rows) :]


def _ledger_of(migrations: Sequence[Migration]) -> list[tuple[int, str]]:
    return [(number, migration.checksum) for number, migration in enumerate(migrations, 1)]


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Apply what is pending in the transaction that is open, and return how many that were.

    Raises:
        StoreError: See ``pending``.
    """
    todo = pending(connection, migrations)
    connection.execute(_LEDGER)
    first = len(migrations) - len(todo) + 1
    for number, migration in enumerate(todo, first):
        for statement in migration.statements:
            connection.execute(statement)
        row = (number, migration.checksum, time.time())
        connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", row)
    return len(todo)


def damaged_definitions(
    connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS
) -> tuple[str, ...]:
    """Return the tables and indices that are not as the migrations made them that a database has had."""
    with closing(sqlite3.connect(":memory:")) as made:
        migrate(made, migrations[: len(applied(connection))])
        missing = _definitions(made) - _definitions(connection)
    return tuple(sorted(name for name, _ in missing))


def _definitions(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    return set(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
