"""State that lasts: sessions with their graphs, selections, snapshots. Bytes in, bytes out.

A store that cannot be opened is judged by ``recap.store.verify`` and mended by
``recap.store.repair``; opening one needs neither.
"""

from __future__ import annotations

from recap.store.history import Chain, Collected, History
from recap.store.rows import SelectionRow, SessionRow
from recap.store.snapshots import BranchRow, SideFile, SnapshotRow
from recap.store.store import Store

__all__ = [
    "BranchRow",
    "Chain",
    "Collected",
    "History",
    "SelectionRow",
    "SessionRow",
    "SideFile",
    "SnapshotRow",
    "Store",
]
