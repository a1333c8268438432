"""Reading what can still be read of a damaged database: row by row, around what is broken."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any

from recap.store.database import connect
from recap.store.migrations import damaged_definitions
from recap.store.tables import columns_of, is_proved, read_any_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from recap.store.tables import Columns, Table

_GAP_LIMIT = 100_000
"""Row numbers between two readable stretches that are tried one by one."""

_PAGE_BYTES = 4096
_COUNT_AT = slice(28, 32)  # of the file header: size of the database in pages


class Salvage:
    """The proved rows of one table of a damaged database, and the names of those it lost.

    Attributes:
        columns: The columns of a row.
        named: Keys of all rows that the table or the index of its key still names.
        knows_all: False when there may be rows that nothing names any more.
    """

    def __init__(self, connection: sqlite3.Connection, table: Table, columns: Columns) -> None:
        self._connection = connection
        self._table = table
        self.columns = columns
        self._seen: set[int] = set()
        self._is_broken = self._is_unproved = False
        self.named: set[tuple[Any, ...]] = set()
        self.knows_all = True

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the proved rows: from either end up to what is broken, then one by one."""
        numbers, is_index_whole = self._numbers()
        first = yield from self._stretch("ASC")
        if self._is_broken:
            last = yield from self._stretch("DESC")
            gap = range(first + 1, min(last, first + _GAP_LIMIT))
            for number in chain(numbers, gap):
                if number not in self._seen:
                    for _, row in self._scan("WHERE rowid = ?", number):
                        yield from self._proved(number, row)
        self.knows_all = is_index_whole or not (self._is_broken or self._is_unproved)

    def _numbers(self) -> tuple[list[int], bool]:
        """Return the row numbers that the index of the key names, and whether it is whole."""
        names = ", ".join(self._table.key)
        numbers = []
        for order in ("ASC", "DESC"):
            by = ", ".join(f"{name} {order}" for name in self._table.key)
            query = f"SELECT rowid, {names} FROM {self._table.name} ORDER BY {by}"
            try:
                for number, *key in self._connection.execute(query):
                    self.named.add(tuple(key))
                    numbers.append(number)
            except sqlite3.Error:
                continue
            return numbers, order == "ASC"
        return numbers, False

    def _stretch(self, order: str) -> Generator[tuple[Any, ...], None, int]:
        """Yield the proved rows from one end, and return the number of the last row read."""
        number = 0
        for number, row in self._scan(f"ORDER BY rowid {order}"):
            yield from self._proved(number, row)
        return number

    def _scan(self, which: str, *values: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
        names = ", ".join(self.columns.names)
        query = f"SELECT rowid, {names} FROM {self._table.name} {which}"
        try:
            for number, *row in self._connection.execute(query, values):
                yield number, tuple(row)
        except sqlite3.Error:
            self._is_broken = True

    def _proved(self, number: int, row: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        if number in self._seen:
            return
        self._seen.add(number)
        if is_proved(self._table, self.columns, row):
            self.named.add(self.columns.key_of(self._table, row))
            yield row
        else:
            self._is_unproved = True


def salvaging(connection: sqlite3.Connection, table: Table, ours: Columns) -> Salvage | None:
    """Return what can read a table; None when the database does not know it, or tells it wrong.

    Args:
        connection: A database of this release or an older one.
        table: Which.
        ours: The columns that it has in this release. One that the database has beside them comes
            of a damaged definition.
    """
    try:
        columns = columns_of(connection, table)
    except sqlite3.Error:
        return None
    if not columns.names or not columns.are_part_of(ours):
        return None
    return Salvage(connection, table, columns)


def open_damaged(path: Path, template: Path) -> sqlite3.Connection | None:
    """Return a connection to a copy of a damaged database; None when nothing of it can be read.

    The copy is changed: a first page that is broken, or tells a table wrong, is replaced by that of
    an empty database, whose tables begin at the same pages because the same migrations made them.
    The proofs of the rows decide whether that was right.

    Args:
        path: The copy.
        template: An empty database of the same schema.
    """
    if not path.exists() or not path.stat().st_size:
        return None
    if (connection := _connected(path)) is not None:
        if _tells_tables_right(connection):
            return connection
        connection.close()
    data = template.read_bytes()[:_PAGE_BYTES]
    with path.open("r+b") as file:
        size = -(-path.stat().st_size // _PAGE_BYTES)
        file.truncate(size * _PAGE_BYTES)
        header = bytearray(data)
        header[_COUNT_AT] = size.to_bytes(4, "big")
        file.write(header)
    return _connected(path)


def _tells_tables_right(connection: sqlite3.Connection) -> bool:
    try:
        return not damaged_definitions(connection)
    except sqlite3.Error:
        return False


def _connected(path: Path) -> sqlite3.Connection | None:
    connection = connect(path)
    read_any_text(connection)
    try:
        connection.execute("PRAGMA writable_schema = ON")  # read on where the file is too short
        known = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except sqlite3.Error:
        known = []
    if ("sessions",) in known:
        return connection
    with closing(connection):
        return None
