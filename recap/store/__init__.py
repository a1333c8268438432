"""State that lasts: sessions with their graphs, selections, snapshots. Bytes in, bytes out."""

from __future__ import annotations

from recap.store.history import Chain, Collected, History
from recap.store.repair import Repair, repair
from recap.store.rows import SelectionRow, SessionRow
from recap.store.snapshots import BranchRow, SideFile, SnapshotRow
from recap.store.store import Store
from recap.store.verify import Fault, verify

__all__ = [
    "BranchRow",
    "Chain",
    "Collected",
    "Fault",
    "History",
    "Repair",
    "SelectionRow",
    "SessionRow",
    "SideFile",
    "SnapshotRow",
    "Store",
    "repair",
    "verify",
]
