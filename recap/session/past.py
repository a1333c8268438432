"""A session's past on its shelf: the graph of its settled turns, its index, its kept sets."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from recap.blocks.index_codec import decode_index, encode_index
from recap.capture.reuse import OBSERVER
from recap.errors import ConflictError, InputError
from recap.graph.codec import decode, encode
from recap.select import kept as kept_sets
from recap.session.known import KEY_DIGITS, NOTHING, Prior
from recap.session.shelf import Volatile
from recap.store.rows import SelectionRow, SessionRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from recap.graph.state import ContextGraph
    from recap.select.kept import Kept
    from recap.session.known import Known
    from recap.session.moment import Moment
    from recap.session.shelf import Shelf
    from recap.turns import SessionKey

LABEL_CHARS = 1000
"""Characters of a label, or a sub-agent's name, that are kept."""

SAVE_ATTEMPTS = 100
"""Times a row is loaded and changed again when other processes save it first."""

INDEX_GROWTH = 1.125
"""The index is kept anew when a session has grown by this factor: so it costs what is new."""


class Past:
    """What one session has on a shelf, and what this process saw of it.

    A session is named by the client's id, the agent and the root: its row is found with the first
    moment, and anew when a native compaction replaced the root.
    """

    def __init__(self, shelf: Shelf, named: SessionKey, label: str, observer: str) -> None:
        self._shelf = shelf
        self._named = named
        self._observer = observer
        self._label = _label(label, named.agent)
        self._tenant = shelf.key("tenant", named.tenant)
        self._row: SessionRow | None = None
        self._prior: Prior | None = None
        self._indexed = 0
        self.served_chars = 0
        """Characters of the prompt that went out last."""

    @property
    def row(self) -> SessionRow | None:
        """The session's row as it was last loaded or saved; None before the first moment."""
        return self._row

    def enter(self, moment: Moment, format: str) -> Prior:
        """Return what was known of the session before a moment, and take its row."""
        session = moment.session
        id = self._shelf.key("session", session.id, session.agent, session.root, self._observer)
        # Loaded each time: another process may have seen a response, or removed the session.
        self._row = self._shelf.load_session(self._tenant, id) or self._new_row(id, format)
        if self._prior is None:
            return self._stored_prior(self._row)
        return self._caught_up(self._prior, self._row)

    def kept(self, turn_key: str, settings_key: bytes) -> Kept | None:
        """Return what a turn was given under these settings."""
        if self._row is None or not turn_key:
            return None
        turn = self._turn(turn_key, settings_key)
        return _same(self._shelf.load_selection(self._tenant, self._row.id, turn), settings_key)

    def latest(self, settings_key: bytes, turns: Iterable[str]) -> tuple[Kept | None, bool]:
        """Return what the last turn under these settings was given, and whether others were used.

        Args:
            settings_key: The settings.
            turns: Keys of the turns of the session, newest first. One of these counts before a
                selection for a request that was given apart, or for a turn that was taken back.
        """
        rows = self._rows()
        given = {row.turn_key: row for row in rows if row.key == settings_key}
        ids = (self._turn(turn, settings_key) for turn in turns) if given else ()
        found = next((given[id] for id in ids if id in given), None)
        return _same(found or next(iter(given.values()), None), settings_key), bool(rows)

    def selections(self) -> list[tuple[SelectionRow, Kept]]:
        """Return what turns were given, newest first; those of another release are left out."""
        found = ((row, _kept_in(row)) for row in self._rows())
        return [(row, kept) for row, kept in found if kept is not None]

    def is_of(self, row: SelectionRow, turn_key: str) -> bool:
        """Return True when a selection was made for a turn."""
        return self._turn(turn_key, row.key) == row.turn_key

    def given(self, turn_keys: Sequence[str]) -> list[Kept | None]:
        """Return what each turn was given last, under any settings; None where that is forgotten."""
        rows = self.selections()
        return [
            next((kept for row, kept in rows if self.is_of(row, key)), None) for key in turn_keys
        ]

    def _rows(self) -> list[SelectionRow]:
        return self._shelf.selections(self._tenant, self._row.id) if self._row else []

    def keep(self, known: Known, kept: Kept | None) -> bool:
        """Save what is known now, and what the turn was given if that is new.

        Returns:
            False when another process was first and gave the turn something else: that stays.

        Raises:
            StoreError: It cannot be saved; what this process knows is known on.
        """
        self._prior = known.prior
        selection = self._selection_row(known, kept)
        self._save(known, selection)
        if selection is None:
            return True
        found = self._shelf.load_selection(selection.tenant, selection.session, selection.turn_key)
        return found is None or found.key != selection.key or found.kept == selection.kept

    def _save(self, known: Known, selection: SelectionRow | None) -> None:
        row = self._row
        # A graph that lags behind is no reason to read the identifiers again, each time.
        index = None if self._observer == OBSERVER else self._index_of(known)
        if row is not None and not _adds(known, row) and row.rev and index is None:
            if selection is None:
                return
            with suppress(ConflictError):  # the session was removed: it is saved anew
                self._shelf.put_selection(replace(selection, graph_rev=row.rev))
                return
            self._row = replace(row, rev=0, observed_key="")
        index = index or self._index_of(known)
        graph = encode(known.settled)

        def grown(row: SessionRow) -> SessionRow:
            if row.rev and not _adds(known, row):
                return row
            return replace(
                row,
                observer=known.settled.observer,
                observed_key=known.settled_key,
                turns=known.settled.turns,
                blocks=len(known.settled.ids),
                graph=graph,
            )

        self.change(grown, selection, index)
        if index is not None:
            self._indexed = len(known.table)

    def change(
        self,
        changed: Callable[[SessionRow], SessionRow],
        selection: SelectionRow | None = None,
        index: bytes | None = None,
    ) -> None:
        """Save a changed row; it is loaded and changed again when another process was first.

        Raises:
            StoreError: It cannot be saved.
        """
        if self._row is None:
            return
        for attempt in range(SAVE_ATTEMPTS):
            row = changed(self._row)
            if selection is not None:
                selection = replace(selection, graph_rev=row.rev + 1)
            try:
                self._row = self._shelf.save_session(row, selection=selection, index=index)
            except ConflictError:
                if attempt == SAVE_ATTEMPTS - 1:
                    raise
                stored = self._shelf.load_session(self._tenant, row.id)
                self._row = stored or replace(self._row, rev=0)
            else:
                return

    def _stored_prior(self, row: SessionRow) -> Prior:
        graph = self._graph_of(row)
        if graph is None:
            return NOTHING
        try:
            data = self._shelf.load_index(self._tenant, row.id)
            index = decode_index(data) if data else None
        except InputError:  # of another release: it is made anew
            index = None
        self._indexed = len(index.fingerprints) if index else 0
        return Prior(graph, row.observed_key, index=index)

    def _caught_up(self, prior: Prior, row: SessionRow) -> Prior:
        """Return what this process knows, and the graph that a worker brought up to date since."""
        if self._observer == OBSERVER or row.observed_key == prior.settled_key:
            return prior
        graph = self._graph_of(row)
        return prior if graph is None else replace(prior, stored=(graph, row.observed_key))

    def _graph_of(self, row: SessionRow) -> ContextGraph | None:
        """Return the graph of a row; None for none, or one that is not this observer's."""
        if not row.graph:
            return None
        try:
            graph = decode(row.graph)
        except InputError:  # of another release: it is made anew
            return None
        return graph if graph.observer == self._observer else None

    def _index_of(self, known: Known) -> bytes | None:
        """Return the index to keep; None where the one kept serves nearly as well.

        What it lacks is read again by whoever goes on from it: an eighth of the session at most.
        """
        if isinstance(self._shelf, Volatile) or len(known.table) < INDEX_GROWTH * self._indexed:
            return None
        return encode_index(known.table)

    def _new_row(self, id: bytes, format: str) -> SessionRow:
        """Return a row not saved yet; it continues the session that had the client's id before."""
        before = self._row
        parent = before.id if before and before.rev and before.id != id else None
        label = self._label
        if parent is None and self._named.id:
            rows = self._shelf.sessions(self._tenant)
            own = (row for row in rows if row.observer in ("", self._observer))
            parent = next((row.id for row in own if row.label == label), None)
        return SessionRow(tenant=self._tenant, id=id, parent=parent, label=label, format=format)

    def _selection_row(self, known: Known, kept: Kept | None) -> SelectionRow | None:
        if kept is None or self._row is None or not known.moment.turn_key:
            return None
        return SelectionRow(
            tenant=self._tenant,
            session=self._row.id,
            turn_key=self._turn(known.moment.turn_key, kept.settings_key),
            key=kept.settings_key,
            kept=kept_sets.encode(kept),
        )

    def _turn(self, turn_key: str, settings_key: bytes) -> bytes:
        """Return the id of a selection: a turn has one for each settings it was asked for with."""
        return self._shelf.key("turn", turn_key, settings_key)


def _label(label: str, agent: str) -> str:
    """Return what people know a session by: that of a sub-agent is not its main agent's."""
    return f"{label[:LABEL_CHARS]} {agent[:LABEL_CHARS]}" if agent else label[:LABEL_CHARS]


def _adds(known: Known, row: SessionRow) -> bool:
    """Return True when what is known goes beyond the row.

    A process that sees an older state of the session takes nothing from what others saved.
    """
    if known.settled_key in ("", row.observed_key):
        return False
    if known.settled_key[KEY_DIGITS:] != row.observed_key[KEY_DIGITS:]:
        return True  # made by another model, or with other coefficients
    if known.settled.turns >= row.turns:
        return True
    return not _begins(row, known.settled)


def _begins(row: SessionRow, graph: ContextGraph) -> bool:
    """Return True when the row's graph begins with the blocks of a shorter one."""
    try:
        stored = decode(row.graph)
    except InputError:
        return False
    return stored.ids[: len(graph.ids)] == graph.ids


def _same(row: SelectionRow | None, settings_key: bytes) -> Kept | None:
    """Return the kept set of a row made under these settings."""
    return _kept_in(row) if row is not None and row.key == settings_key else None


def _kept_in(row: SelectionRow) -> Kept | None:
    """Return the kept set of a row; None for one of another release."""
    try:
        return kept_sets.decode(row.kept)
    except InputError:
        return None
