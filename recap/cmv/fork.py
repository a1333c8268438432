"""Snapshot and branch in one go: a session goes on, trimmed, under a new id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.cmv.branch import branch
from recap.cmv.facts import CLAUDE_CODE
from recap.cmv.snapshot import take
from recap.errors import RecapError, UsageError

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
        UsageError: The session is of a client whose sessions are not trimmed, and it is asked for.
        RecapError: See ``take`` and ``branch``. Where the branch failed the snapshot stays, and the
            error says so.
    """
    if wish.trim is not None and seen.facts.format != CLAUDE_CODE:
        raise UsageError(
            f"sessions of {seen.facts.format} are not trimmed, and nothing was kept: `recap snapshot "
            "NAME` and `recap branch NAME --no-trim` keep it whole"
        )
    row = take(store, seen, labels)
    try:
        return row, branch(store, row, wish, homes, now=now)
    except RecapError as err:
        raise type(err)(f"{err} (snapshot {row.name} was kept)") from err
