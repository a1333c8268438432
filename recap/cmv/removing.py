"""Snapshots and branches taken away, and the bytes that nobody needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.errors import UsageError
from recap.store import SnapshotRow
from recap.store.history import GRACE_SECONDS

if TYPE_CHECKING:
    from recap.store import BranchRow, Collected, History, Store

SAFE_GRACE_SECONDS = 86400.0
"""No snapshot takes longer than this: bytes older than that belong to none that is being taken."""


def delete(history: History, row: SnapshotRow | BranchRow) -> None:
    """Remove a snapshot, or the record of a branch. Session files are never removed.

    Bytes go with ``collect``. What came of a snapshot stays, and says that its parent is deleted.

    Raises:
        UsageError: Somebody else was first.
    """
    is_snapshot = isinstance(row, SnapshotRow)
    gone = history.delete_snapshot(row.id) if is_snapshot else history.delete_branch(row.id)
    if not gone:
        raise UsageError(f"{row.id} is gone already")


def came_of(history: History, row: SnapshotRow | BranchRow) -> tuple[int, int]:
    """Return how many snapshots and branches came of a snapshot; none of a branch."""
    if not isinstance(row, SnapshotRow):
        return 0, 0
    children = sum(other.parent == row.id for other in history.snapshots())
    return children, len(history.branches(snapshot=row.id))


def collect(
    store: Store, *, grace_seconds: float = GRACE_SECONDS, dry_run: bool = False
) -> Collected:
    """Remove bytes that no snapshot needs and that nobody stored within the grace.

    With a grace of less than a day no other process may have the store open: it could be taking a
    snapshot.

    Raises:
        UsageError: The grace is negative.
        StoreError: Another process has the store open.
    """
    if not grace_seconds >= 0:
        raise UsageError("grace takes a time of at least 0")
    if dry_run or grace_seconds >= SAFE_GRACE_SECONDS:
        return store.history.collect(grace_seconds=grace_seconds, dry_run=dry_run)
    with store.alone():
        return store.history.collect(grace_seconds=grace_seconds)
