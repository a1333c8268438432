"""What proves a row of each table, whoever reads it: verification and repair know no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from recap.errors import StoreError
from recap.store.objects import Packed, link, unpack
from recap.store.rows import seal, to_text

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence


class Table(NamedTuple):
    """A table that holds what users would miss: its name, and the columns that name a row."""

    name: str
    key: tuple[str, ...]


TABLES = (
    Table("sessions", ("tenant", "id")),
    Table("selections", ("tenant", "session", "turn_key")),
    Table("indexes", ("tenant", "session")),
    Table("objects", ("hash",)),
    Table("links", ("hash",)),
    Table("snapshots", ("id",)),
    Table("branches", ("id",)),
    Table("unfinished", ("id",)),
)
OF_TENANTS = ("sessions", "selections", "indexes")
"""Tables whose keys mean nothing without the secret they were made with."""


class Columns(NamedTuple):
    """The columns of a table, and which of them are text."""

    names: tuple[str, ...]
    is_text: tuple[bool, ...]

    def key_of(self, table: Table, row: Sequence[Any]) -> tuple[Any, ...]:
        """Return what names a row."""
        return tuple(row[self.names.index(name)] for name in table.key)

    def are_part_of(self, others: Columns) -> bool:
        """Return True when the others have each of these, of the same type."""
        return set(zip(*self, strict=True)) <= set(zip(*others, strict=True))


def read_any_text(connection: sqlite3.Connection) -> None:
    """Let a connection read texts that are damaged: what proves a row then tells."""
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")


def columns_of(connection: sqlite3.Connection, table: Table) -> Columns:
    """Return the columns of a table in their order."""
    found = connection.execute(f"PRAGMA table_info({table.name})").fetchall()
    return Columns(tuple(row[1] for row in found), tuple(row[2] == "TEXT" for row in found))


def is_proved(table: Table, columns: Columns, row: Sequence[Any]) -> bool:
    """Return True when a row is what was written: by its hash, or by the seal of the others."""
    values = dict(zip(columns.names, row, strict=True))
    try:
        if table.name == "objects":
            packed = Packed(values["hash"], values["size"], values["codec"], values["bytes"])
            return bool(len(unpack(packed)) == packed.size)
        if table.name == "links":
            return bool(link(values["parent"], values["object"]).hash == values["hash"])
        texts = zip(columns.names, columns.is_text, row, strict=True)
        sealed = [
            to_text(value) if is_text and value is not None else value
            for name, is_text, value in texts
            if name != "seal"
        ]
        return bool(values["seal"] == seal(*sealed))
    except (StoreError, TypeError, ValueError):  # columns of other types: no row of ours
        return False
