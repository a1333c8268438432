"""State that lasts: sessions with their graphs, selections, snapshots. Bytes in, bytes out."""

from __future__ import annotations

from recap.store.rows import SelectionRow, SessionRow
from recap.store.store import Store

__all__ = ["SelectionRow", "SessionRow", "Store"]
