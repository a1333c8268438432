"""Where a session's state stands between requests: in a store, or in this process alone."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from recap.transcript.model import digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from recap.store.rows import SelectionRow, SessionRow

VOLATILE_SELECTIONS = 64


@runtime_checkable
class Shelf(Protocol):
    """What a session needs of a store; ``recap.store.Store`` is one."""

    def key(self, *pieces: str | bytes) -> bytes:
        """Return 16 bytes that stand for the pieces."""

    def load_session(self, tenant: bytes, id: bytes) -> SessionRow | None:
        """Return the row of a session."""

    def sessions(self, tenant: bytes) -> list[SessionRow]:
        """Return the rows of a tenant, newest first."""

    def save_session(
        self, row: SessionRow, *, selection: SelectionRow | None = None, index: bytes | None = None
    ) -> SessionRow:
        """Keep a row whose ``rev`` is the stored one; ConflictError for another."""

    def load_index(self, tenant: bytes, id: bytes) -> bytes | None:
        """Return the index cache of a session."""

    def load_selection(self, tenant: bytes, session: bytes, turn_key: bytes) -> SelectionRow | None:
        """Return what a turn was given."""

    def put_selection(self, row: SelectionRow) -> SelectionRow:
        """Keep what a turn was given, unless it was given something under the same key already."""

    def selections(self, tenant: bytes, session: bytes) -> list[SelectionRow]:
        """Return the selections of a session, newest first."""


class Volatile:
    """A shelf of this process: it ends with it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._sessions: dict[tuple[bytes, bytes], SessionRow] = {}
        self._selections: dict[tuple[bytes, bytes], dict[bytes, SelectionRow]] = {}

    def key(self, *pieces: str | bytes) -> bytes:
        """Return 16 bytes that stand for the pieces."""
        return digest(*pieces)

    def load_session(self, tenant: bytes, id: bytes) -> SessionRow | None:
        """Return the row of a session."""
        return self._sessions.get((tenant, id))

    def sessions(self, tenant: bytes) -> list[SessionRow]:
        """Return the rows of a tenant, newest first."""
        rows = [row for row in self._sessions.values() if row.tenant == tenant]
        return sorted(rows, key=lambda row: -row.updated)

    def save_session(
        self, row: SessionRow, *, selection: SelectionRow | None = None, index: bytes | None = None
    ) -> SessionRow:
        """Keep a row; there is nobody to conflict with."""
        now = self._clock()
        saved = replace(row, rev=row.rev + 1, created=row.created or now, updated=now)
        self._sessions[row.tenant, row.id] = saved
        if selection is not None:
            self.put_selection(selection)
        return saved

    def load_index(self, tenant: bytes, id: bytes) -> bytes | None:
        """Return None: the process that would read it has the blocks themselves."""
        return None

    def load_selection(self, tenant: bytes, session: bytes, turn_key: bytes) -> SelectionRow | None:
        """Return what a turn was given."""
        return self._selections.get((tenant, session), {}).get(turn_key)

    def put_selection(self, row: SelectionRow) -> SelectionRow:
        """Keep what a turn was given; the oldest of many goes."""
        rows = self._selections.setdefault((row.tenant, row.session), {})
        known = rows.get(row.turn_key)
        if known is not None and known.key == row.key:
            return known
        rows.pop(row.turn_key, None)
        rows[row.turn_key] = replace(row, created=self._clock())
        if len(rows) > VOLATILE_SELECTIONS:
            del rows[next(iter(rows))]
        return rows[row.turn_key]

    def selections(self, tenant: bytes, session: bytes) -> list[SelectionRow]:
        """Return the selections of a session, newest first."""
        return [*self._selections.get((tenant, session), {}).values()][::-1]
