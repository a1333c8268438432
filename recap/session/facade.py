"""``recap.Session``: one agent session, kept from request to request and from process to process."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recap.config import Settings
from recap.errors import StoreError, UsageError
from recap.select.kept import kept_of
from recap.session.known import Memory, Prior, Remembered
from recap.session.past import Past
from recap.session.pipeline import compact_transcript, demand
from recap.session.reading import GrowingList
from recap.session.shelf import Volatile
from recap.store import Store
from recap.transcript.model import Transcript, canonical_json, digest
from recap.turns import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from decimal import Decimal
    from fractions import Fraction

    from recap.graph.state import ContextGraph
    from recap.session.known import Known
    from recap.session.moment import Moment
    from recap.session.report import Compaction
    from recap.session.shelf import Shelf
    from recap.store import SessionRow
    from recap.transcript.model import Dialect, Json


class Session:
    """One agent session: aligned with what is known, observed, compacted, remembered.

    Every request of the session goes through the same object, or through objects with the same store
    and ``id``: what earlier requests taught is used, the kept set of a turn stays what it was, and
    only what is new is worked on. Not for several threads at once.

    Attributes:
        failure: Why the last result was not saved; None when it was. A result is never lost to a
            store that cannot be written.
    """

    def __init__(
        self,
        id: str = "",
        *,
        store: Shelf | Path | str | None = None,
        agent: str = "",
        tenant: str = "",
        label: str = "",
        settings: Settings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open a session.

        Args:
            id: The client's id of the session; "" lets its first message name it.
            store: Where its state is kept: a store, or the folder of one; None keeps it in this
                process alone.
            agent: Id of a sub-agent that shares the session's id.
            tenant: Whose session it is.
            label: What people know it by, kept with it; the id by default.
            settings: Coefficients.
            clock: Unix time, seconds.

        Raises:
            StoreError: The store cannot be opened.
        """
        self._settings = Settings() if settings is None else settings
        demand(self._settings, None, (), None)
        for name, value in (("id", id), ("agent", agent), ("tenant", tenant), ("label", label)):
            if not isinstance(value, str):
                raise UsageError(f"{name} must be text, got {type(value).__name__}")
        self._named = SessionKey(tenant, id, agent, "")
        self._clock = clock
        self._owned: Store | None = None
        if store is None:
            self._shelf: Shelf = Volatile(clock)
        elif isinstance(store, str | Path):
            self._shelf = self._owned = Store.open(Path(store), clock=clock)
        else:
            self._shelf = store
        self._past = Past(self._shelf, self._named, label or id)
        self._list = GrowingList()
        self.failure: StoreError | None = None

    def close(self) -> None:
        """Close the store, if the session opened it."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def row(self) -> SessionRow | None:
        """The session's row as it was last loaded or saved; None before the first request."""
        return self._past.row

    def compact(  # noqa: PLR0913 - as ``recap.compact``
        self,
        messages: Sequence[Mapping[str, Json]] | Mapping[str, Json] | Transcript,
        request: str | Mapping[str, Json] | None = None,
        *,
        retention: str | float | Fraction | Decimal | None = None,
        policy: str | None = None,
        dialect: str = "auto",
        to: Dialect | None = None,
        pins: Sequence[str] = (),
        graph: ContextGraph | None = None,
        alternate: bool = False,
        model: str = "",
    ) -> Compaction:
        """Return the context for a request, as ``recap.compact`` does, and remember it.

        The same turn gets the same blocks again, in any process that shares the store, as long as
        settings, policy and pins are the same.

        Args:
            messages: The whole session as the client has it now, or the transcript of a log.
            request: The arriving request; None for the last one of the session.
            retention: As for ``recap.compact``, like the following; None for the session's settings.
            policy: Name of a recipe.
            dialect: Dialect of a message list.
            to: Dialect of the result.
            pins: Ids of blocks to keep.
            graph: A graph from elsewhere to select by: then nothing is remembered.
            alternate: Join adjacent messages of one role.
            model: The model the context is for.

        Raises:
            UsageError: As for ``recap.compact``; so are the others.
            StoreError: The store cannot be read.
        """
        settings = self._settings
        demand(settings, to, pins, graph)
        if retention is not None:
            settings = settings.replace(retention=retention)
        if isinstance(messages, Transcript):
            transcript = messages
        else:
            transcript = self._list.read(messages, dialect)
        key = _settings_key(settings, policy or settings.policy, pins)
        visit = _Visit(self._past, transcript.format, key) if graph is None else None
        done = compact_transcript(
            transcript, request, settings=settings, policy=policy, pins=pins, graph=graph, to=to,
            alternate=alternate, model=model, named=self._named, memory=visit,
        )  # fmt: skip
        return done if visit is None else self._kept(done, visit)

    def _kept(self, done: Compaction, visit: _Visit) -> Compaction:
        """Save what was learned; a result is never lost to a store that cannot be written."""
        kept = None if visit.served else kept_of(done.selection, visit.settings_key)
        self.failure = None
        try:
            self._past.keep(done.known, kept)
        except StoreError as err:
            self.failure = err
            notes = {**done.report.notes, "not-saved": 1}
            return replace(done, report=replace(done.report, notes=notes))
        return done


class _Visit(Memory):
    """One request's view of the session's past."""

    def __init__(self, past: Past, format: str, settings_key: bytes) -> None:
        self._past = past
        self._format = format
        self.settings_key = settings_key
        self.served = False

    def prior(self, moment: Moment) -> Prior:
        return self._past.enter(moment, self._format)

    def kept(self, known: Known) -> Remembered | None:
        kept = self._past.kept(known.moment.turn_key, self.settings_key)
        self.served = kept is not None
        return Remembered(kept, extend=False) if kept else None


def _settings_key(settings: Settings, policy: str, pins: Sequence[str]) -> bytes:
    """Return the fingerprint of everything that shapes a selection besides the session."""
    return digest(canonical_json(asdict(settings)), policy, *pins)
