"""Notes of files that are on their way to their names: SQL on an open transaction.

A file outside the store cannot be part of a transaction. So a note is written before the first byte, made
ready in the transaction that records what the files are, and removed when all have their names: whoever
finds a note whose maker is gone knows whether to go on or to go back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.errors import UsageError
from recap.store.rows import check_seal, check_values, seal, to_column, to_text
from recap.store.snapshots import ITEM_LIMIT

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from recap.store.rows import Value

_COLUMNS = "id, folder, targets, replaces, is_ready, branch, created, seal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """Files on their way to their names.

    Attributes:
        id: Decides; part of the names that the files have until then.
        folder: Where they are until then.
        targets: The names they get, absolute, the most important one first.
        replaces: They take the place of files that are there.
        is_ready: All are written whole, and what they are is recorded.
        branch: Id of the branch that they are, "" for none.
        created: Unix time, set when the note is added.
    """

    id: str
    folder: str
    targets: tuple[str, ...]
    replaces: bool = False
    is_ready: bool = False
    branch: str = ""
    created: float = 0.0


def check_unfinished(row: Unfinished) -> None:
    """Raise UsageError for a note that cannot be stored."""
    check_values(row, but=("targets",))
    if not row.id or not row.targets or len(row.targets) > ITEM_LIMIT:
        raise UsageError(f"a note names 1 to {ITEM_LIMIT:,} files, got {len(row.targets):,}")


def put(connection: sqlite3.Connection, row: Unfinished) -> None:
    """Store a note, in place of the one of its id."""
    values: tuple[Value, ...] = (
        row.id, row.folder, json.dumps(row.targets), row.replaces, row.is_ready, row.branch,
        row.created,
    )  # fmt: skip
    columns = [*map(to_column, values), seal(*values)]
    marks = ", ".join("?" * len(columns))
    connection.execute(f"REPLACE INTO unfinished ({_COLUMNS}) VALUES ({marks})", columns)


def drop(connection: sqlite3.Connection, id: str) -> None:
    """Remove a note, if it is there."""
    connection.execute("DELETE FROM unfinished WHERE id = ?", (id,))


def iter_unfinished(connection: sqlite3.Connection) -> Iterator[Unfinished]:
    """Yield the notes, oldest first, each proved.

    Raises:
        StoreError: A row is damaged.
    """
    query = f"SELECT {_COLUMNS} FROM unfinished ORDER BY created, rowid"
    for *found, stored_seal in connection.execute(query):
        id, folder, targets, branch = (to_text(found[at]) for at in (0, 1, 2, 5))
        check_seal(stored_seal, id, folder, targets, *found[3:5], branch, found[6])
        yield Unfinished(
            id=id, folder=folder, targets=tuple(json.loads(targets)), replaces=bool(found[3]),
            is_ready=bool(found[4]), branch=branch, created=found[6],
        )  # fmt: skip
