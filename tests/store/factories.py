"""Rows and transcripts to store, and ways to look at and to damage a database."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from recap.store import BranchRow, Chain, SelectionRow, SessionRow, SideFile, SnapshotRow

if TYPE_CHECKING:
    from pathlib import Path

    from recap.store import Store

TENANT, OTHER = b"t" * 16, b"o" * 16


def key(number: int) -> bytes:
    """Return an id."""
    return number.to_bytes(16, "big")


def row(number: int = 1, tenant: bytes = TENANT, **changes: object) -> SessionRow:
    """Return a session."""
    return SessionRow(tenant=tenant, id=key(number), **{"graph": b"graph", **changes})  # type: ignore[arg-type]


def chosen(turn: int, number: int = 1, tenant: bytes = TENANT, **changes: object) -> SelectionRow:
    """Return a selection of a turn of a session."""
    fields = {"turn_key": key(turn), "kept": b"kept %d" % turn, **changes}
    return SelectionRow(tenant=tenant, session=key(number), **fields)  # type: ignore[arg-type]


def transcript(lines: int, seed: int = 1) -> list[bytes]:
    """Return lines of a few kilobytes that compress like text."""
    draw = random.Random(seed)
    words = [draw.randbytes(4).hex().encode() for _ in range(500)]
    return [b" ".join(draw.choices(words, k=draw.randint(10, 400))) + b"\n" for _ in range(lines)]


def snapshot(chain: Chain, id: str = "a" * 32, **changes: object) -> SnapshotRow:
    """Return a snapshot of a chain."""
    fields = {"root": chain.root, "sha256": chain.sha256, "size": chain.size, **changes}
    return SnapshotRow(id=id, **fields)  # type: ignore[arg-type]


def fill(store: Store, sessions: int = 12) -> None:
    """Store sessions with graphs over several pages, selections, indexes, snapshots, branches."""
    draw = random.Random(9)
    for number in range(sessions):
        graph = draw.randbytes(draw.choice([50, 3000, 20_000]))
        store.save_session(
            row(number, graph=graph, label=f"session {number}"),
            selection=chosen(number, number), index=draw.randbytes(2000),
        )  # fmt: skip
    lines = transcript(300)
    for number in range(3):
        chain = store.history.put_chain(lines[: 100 * (number + 1)])
        side = store.history.put_chain(b"side %d" % number)
        sides = (SideFile(name="side", root=side.root, sha256=side.sha256, size=side.size),)
        taken = snapshot(chain, f"s{number}", name=f"name{number}", sides=sides)
        branch = BranchRow(id=f"b{number}", snapshot=taken.id, session=f"made {number}")
        store.history.add_snapshot(taken, branch=branch)


def rows_in(store: Store, table: str) -> int:
    """Return how many rows a table has."""
    with closing(sqlite3.connect(store.folder / "recap.db")) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def execute(store: Store, statement: str, *values: object) -> None:
    """Change the database behind the store's back."""
    execute_in(store.folder / "recap.db", statement, *values)


def execute_in(database: Path, statement: str, *values: object) -> None:
    """Change a database that is no open store's."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement, values)
