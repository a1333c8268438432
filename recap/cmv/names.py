"""Names, ids and prefixes: what a person types for a snapshot or a branch. Ids decide."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from typing import TYPE_CHECKING

from recap.errors import UsageError, shown
from recap.store.snapshots import SnapshotRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recap.store import BranchRow, History

NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
LEAST_PREFIX = 4
LEAST_SHOWN = 8
LISTED = 10
"""Candidates that an error names."""


def new_id() -> str:
    """Return 128 random bits in hex."""
    return secrets.token_hex(16)


def check_name(name: str) -> str:
    """Return a name that can be given; UsageError for another."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"a name is 1 to 100 of the characters A-Z a-z 0-9 _ and -; got {shown(name)}"
        )
    return name


def find_snapshot(history: History, ref: str) -> SnapshotRow:
    """Return the snapshot of an id, a name, or a unique prefix of an id.

    Raises:
        UsageError: There is none, or several.
    """
    if ref and (rows := [*_exact(history, ref)]):
        return rows[0]
    found = _found(ref, history.snapshots(), "snapshot")
    assert isinstance(found, SnapshotRow)
    return found


def find(history: History, ref: str) -> SnapshotRow | BranchRow:
    """Return the snapshot or branch of an id, a name, or a unique prefix of an id.

    A name that both a snapshot and a branch have is the snapshot's.

    Raises:
        UsageError: There is none, or several.
    """
    if ref and (rows := [*_exact(history, ref)]):
        return rows[0]
    nodes: list[SnapshotRow | BranchRow] = [*history.snapshots(), *history.branches()]
    return _found(ref, nodes, "snapshot or branch")


def _exact(history: History, ref: str) -> Iterator[SnapshotRow]:
    """Yield the snapshot of an id, then that of a name."""
    if (row := history.snapshot(ref)) is not None:
        yield row
    yield from history.snapshots(name=ref)


def _found(ref: str, rows: Sequence[SnapshotRow | BranchRow], what: str) -> SnapshotRow | BranchRow:
    named = [row for row in rows if ref and ref in (row.id, row.name)]
    begun = [row for row in rows if len(ref) >= LEAST_PREFIX and row.id.startswith(ref)]
    for fitting in (named, begun):
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            listed = ", ".join(f"{row.id[:16]} ({row.name or '-'})" for row in fitting[:LISTED])
            more = f" and {len(fitting) - LISTED} more" if len(fitting) > LISTED else ""
            raise UsageError(f"{shown(ref)} could be {listed}{more}; give more of the id")
    raise UsageError(f"there is no {what} {shown(ref)}; `recap tree` lists them")


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the shortest unique prefix of each id, of at least 8 digits."""
    short: dict[str, str] = {}
    left, digits = set(ids), LEAST_SHOWN
    while left:
        count = Counter(id[:digits] for id in left)
        short |= {id: id[:digits] for id in left if count[id[:digits]] == 1}
        left -= short.keys()
        digits += 1
    return short
