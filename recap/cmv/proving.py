"""One snapshot or branch judged: are its bytes what was kept, is its file what was written?"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal, NamedTuple

from recap.cmv.restoring import branch_file
from recap.cmv.side_files import read_pieces
from recap.errors import RecapError, StoreError
from recap.store import SnapshotRow

if TYPE_CHECKING:
    from pathlib import Path

    from recap.cmv.homes import Homes
    from recap.store import BranchRow, History

State = Literal["whole", "damaged", "as made", "went on", "gone"]
BAD = ("damaged", "gone")


class Proof(NamedTuple):
    """What was found.

    Attributes:
        state: Of a snapshot ``whole`` or ``damaged``; of a branch's file ``as made``, ``went on``
            (its bytes are others than those that were written) or ``gone``.
        detail: What is wrong, "" for nothing.
        path: File of the branch; None where there is none.
    """

    state: State
    detail: str = ""
    path: Path | None = None


def prove(history: History, row: SnapshotRow | BranchRow, homes: Homes) -> Proof:
    """Read a snapshot with all files beside it, or the file of a branch, and judge it."""
    if isinstance(row, SnapshotRow):
        try:
            for each in row.chains:
                for _ in history.read(each):
                    pass
        except StoreError as err:
            return Proof("damaged", str(err))
        return Proof("whole")
    try:
        path = branch_file(history, row, homes)
        whole = hashlib.sha256()
        for piece in read_pieces(path):
            whole.update(piece)
    except RecapError as err:
        return Proof("gone", str(err))
    return Proof("as made" if whole.digest() == row.sha256 else "went on", path=path)
