"""Snapshot and branch in one go: a session goes on, trimmed, under a new id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.cmv.branch import branch
from recap.cmv.snapshot import take
from recap.errors import RecapError

if TYPE_CHECKING:
    from recap.cmv.branch import Branch, Wish
    from recap.cmv.homes import Homes
    from recap.cmv.snapshot import Labels, Seen
    from recap.store import SnapshotRow, Store


def fork(
    store: Store,
    seen: Seen,
    labels: Labels,
    wish: Wish,
    homes: Homes,
    *,
    now: float | None = None,
) -> tuple[SnapshotRow, Branch]:
    """Take a snapshot of a session and make a branch of it. The session is never changed.

    Raises:
        RecapError: See ``take`` and ``branch``. Where the branch failed the snapshot stays, and the
            error says so.
    """
    row = take(store, seen, labels)
    try:
        return row, branch(store, row, wish, homes, now=now)
    except RecapError as err:
        raise type(err)(f"{err} (snapshot {row.name} was kept)") from err
