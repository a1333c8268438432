"""Content-addressed pieces and the chains that join them: SQL on an open transaction.

A piece is named by the SHA-256 of its bytes, a link by the SHA-256 of the link before and its piece:
one root proves all that leads to it, and transcripts with a common beginning share its links.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, NamedTuple

from recap.errors import StoreError
from recap.store.failures import REPAIR

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

HASH_BYTES = 32
CHAIN_LIMIT = 1_000_000
"""Links of one chain; more is damage."""

PIECE_LIMIT = 8 << 20
"""Bytes of a piece; ``cutting`` makes none longer than 5 MiB."""

_PLAIN, _ZLIB = 0, 1
_LEVEL = 1  # a fifth less time than level 3 for a thirteenth more bytes, over real sessions


class Packed(NamedTuple):
    """A piece as it is stored."""

    hash: bytes
    size: int
    codec: int
    data: bytes


class Link(NamedTuple):
    """One link of a chain: its name, the link before, its piece."""

    hash: bytes
    parent: bytes | None
    object: bytes


def name_of(piece: bytes) -> bytes:
    """Return what names a piece."""
    return hashlib.sha256(piece).digest()


def pack(name: bytes, piece: bytes) -> Packed:
    """Return a piece under its name and, where that makes it smaller, compressed."""
    data = zlib.compress(piece, _LEVEL)
    codec = _ZLIB if len(data) < len(piece) else _PLAIN
    return Packed(name, len(piece), codec, data if codec == _ZLIB else piece)


def unpack(packed: Packed) -> bytes:
    """Return the piece, proved by its name; a hostile one takes no more memory than any other.

    Raises:
        StoreError: The bytes are damaged.
    """
    try:
        if not 0 <= packed.size <= PIECE_LIMIT:
            raise _damaged(packed.hash)
        piece = packed.data
        if packed.codec != _PLAIN:
            piece = zlib.decompressobj().decompress(packed.data, packed.size + 1)
        if name_of(piece) == packed.hash:
            return piece
    except (zlib.error, TypeError) as err:  # SQLite keeps any type in any column
        raise _damaged(packed.hash) from err
    raise _damaged(packed.hash)


def link(parent: bytes | None, name: bytes) -> Link:
    """Return the link that puts a piece behind another link, or at the beginning."""
    return Link(hashlib.sha256((parent or bytes(HASH_BYTES)) + name).digest(), parent, name)


def known(connection: sqlite3.Connection, names: Sequence[bytes]) -> set[bytes]:
    """Return which pieces are stored."""
    query = "SELECT 1 FROM objects WHERE hash = ?"
    return {name for name in names if connection.execute(query, (name,)).fetchone()}


def touch(connection: sqlite3.Connection, name: bytes, now: float) -> bool:
    """Keep a stored piece from the next collection; False when it is not stored."""
    query = "UPDATE objects SET touched = max(touched, ?) WHERE hash = ?"
    return connection.execute(query, (now, name)).rowcount == 1


def put(connection: sqlite3.Connection, packed: Packed, now: float) -> None:
    """Store a piece that is not stored."""
    query = "INSERT INTO objects (hash, size, codec, touched, bytes) VALUES (?, ?, ?, ?, ?)"
    connection.execute(query, (packed.hash, packed.size, packed.codec, now, packed.data))


def put_links(connection: sqlite3.Connection, links: Iterable[Link]) -> None:
    """Store links; one that is stored stays."""
    query = "INSERT INTO links (hash, parent, object) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    connection.executemany(query, links)


def get(connection: sqlite3.Connection, name: bytes) -> bytes:
    """Return a piece.

    Raises:
        StoreError: It is missing or damaged.
    """
    query = "SELECT hash, size, codec, bytes FROM objects WHERE hash = ?"
    found = connection.execute(query, (name,)).fetchone()
    if found is None:
        raise _damaged(name)
    return unpack(Packed(*found))


def walk(connection: sqlite3.Connection, root: bytes) -> list[Link]:
    """Return the links of a chain from its beginning, each proved.

    Raises:
        StoreError: A link is missing or is not what its name says; so no chain is a circle.
    """
    links = list(_backwards(connection, root))
    if not links or links[-1].parent is not None:
        raise _damaged(root)
    return links[::-1]


def _backwards(connection: sqlite3.Connection, root: bytes) -> Iterator[Link]:
    query = """WITH RECURSIVE chain (hash, parent, object, depth) AS (
        SELECT hash, parent, object, 1 FROM links WHERE hash = ?
        UNION ALL
        SELECT before.hash, before.parent, before.object, depth + 1
        FROM chain JOIN links AS before ON before.hash = chain.parent WHERE depth < ?)
        SELECT hash, parent, object FROM chain"""
    for found in map(Link._make, connection.execute(query, (root, CHAIN_LIMIT))):
        try:
            is_proved = link(found.parent, found.object) == found
        except TypeError:  # see unpack
            is_proved = False
        if not is_proved:
            raise _damaged(root)
        yield found


def demand_whole(connection: sqlite3.Connection, root: bytes) -> None:
    """Raise StoreError unless all links and pieces of a chain are stored; reads no bytes."""
    for found in walk(connection, root):
        if not known(connection, [found.object]):
            raise _damaged(found.object)


def _damaged(name: object) -> StoreError:
    shown = name.hex()[:16] if isinstance(name, bytes) else "without a name"
    return StoreError(f"object {shown} of the store is missing or damaged; {REPAIR}")


def collect(
    connection: sqlite3.Connection, roots: Iterable[bytes], before: float, *, dry_run: bool
) -> tuple[int, int]:
    """Remove what no root leads to and nobody touched lately; return pieces and bytes removed.

    Args:
        connection: In a transaction.
        roots: Of all snapshots and their side files.
        before: Unix time; what was stored or asked for since then stays.
        dry_run: Only count.
    """
    connection.execute("CREATE TEMP TABLE live (hash BLOB PRIMARY KEY) WITHOUT ROWID")
    connection.executemany("INSERT OR IGNORE INTO live VALUES (?)", [(root,) for root in roots])
    connection.execute(
        """WITH RECURSIVE back (hash) AS (
            SELECT hash FROM live UNION
            SELECT parent FROM links JOIN back USING (hash) WHERE parent IS NOT NULL)
        INSERT OR IGNORE INTO live SELECT hash FROM back"""
    )
    connection.execute(
        """CREATE TEMP TABLE kept AS SELECT hash, object FROM links
        WHERE hash IN live OR object IN (SELECT hash FROM objects WHERE touched >= ?)""",
        (before,),
    )
    gone = "hash NOT IN (SELECT object FROM kept) AND touched < ?"
    query = f"SELECT count(*), coalesce(sum(length(bytes)), 0) FROM objects WHERE {gone}"
    (count, size) = connection.execute(query, (before,)).fetchone()
    if not dry_run:
        connection.execute(f"DELETE FROM objects WHERE {gone}", (before,))
        connection.execute("DELETE FROM links WHERE hash NOT IN (SELECT hash FROM kept)")
    connection.execute("DROP TABLE kept")
    connection.execute("DROP TABLE live")
    return count, size
