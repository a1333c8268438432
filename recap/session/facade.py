"""``recap.Session``: one agent session, kept from request to request and from process to process."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from recap import policy as policies
from recap.capture.reuse import OBSERVER as REUSE
from recap.config import Settings
from recap.economics import PRICES, Usage, cache_life, calibrated, usage_of
from recap.errors import StoreError, UsageError, shown
from recap.session.known import Memory, Remembered, known_of
from recap.session.moment import moment_of
from recap.session.observing import Progress, ask, brought_up, turns_to_observe
from recap.session.past import Past
from recap.session.pipeline import compact_transcript, demand
from recap.session.reading import GrowingList
from recap.session.shelf import Shelf, Volatile
from recap.session.undo import Served, as_it_was, one_of
from recap.session.visit import Visit
from recap.store import Store
from recap.transcript.items import PLAIN_TEXT
from recap.transcript.model import Transcript, canonical_json, digest
from recap.turns import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from decimal import Decimal
    from fractions import Fraction

    from recap.economics import Prices
    from recap.graph.state import ContextGraph
    from recap.select.kept import Kept
    from recap.session.known import Known, Prior
    from recap.session.moment import Moment
    from recap.session.observing import Observer
    from recap.session.report import Compaction
    from recap.session.worker import Worker
    from recap.store import SelectionRow, SessionRow
    from recap.transcript.model import Dialect, Json
    from recap.turns import Boundary


LATEST = 1e11
"""Times from this one on, seconds, are none (the year 5138); milliseconds are above it."""


class Session:
    """One agent session: aligned with what is known, observed, compacted, remembered.

    Every request of the session goes through the same object, or through objects with the same store
    and ``id``: what earlier requests taught is used, the kept set of a turn stays what it was, and
    only what is new is worked on. Not for several threads at once.

    Attributes:
        failure: Why the last result was not saved; None when it was. A result is never lost to a
            store that cannot be written.
    """

    def __init__(  # noqa: PLR0913 - one keyword for each thing that names a session
        self,
        id: str = "",
        *,
        store: Shelf | Path | str | None = None,
        agent: str = "",
        tenant: str = "",
        label: str = "",
        settings: Settings | None = None,
        prices: Mapping[str, Prices] = PRICES,
        clock: Callable[[], float] = time.time,
        observer: Observer | None = None,
        worker: Worker | None = None,
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
            prices: Model pattern -> prices, for the cost verdict; see ``economics.price_table``.
            clock: Unix time, seconds.
            observer: Measures turns where the settings ask for a model; None takes the model they
                name, which is loaded when ``observe`` needs it.
            worker: Brings the session up to date in the background, where that takes a model.

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
        self._prices = prices
        self._cached_before: int | None = None
        self._cache_life: float | None = None
        self._has_selected = False
        self._owned: Store | None = None
        if store is None:
            self._shelf: Shelf = Volatile(clock)
        elif isinstance(store, str | Path):
            self._shelf = self._owned = Store.open(_folder(store), clock=clock)
        elif isinstance(store, Shelf):
            self._shelf = store
        else:
            raise UsageError(f"store must be a store, or the folder of one, got {shown(store)}")
        self._label = label
        self._past = Past(self._shelf, self._named, label or id, self._settings.observer)
        self._observer = _observer(self._settings, observer)
        self._worker = worker
        if worker is not None and not isinstance(self._shelf, Store):
            raise UsageError("a worker needs a store that it can open as well: give store")
        self._list = GrowingList()
        # What a list showed once holds for a later one of plain texts, as after a native compaction.
        self._dialect: Dialect | Literal[""] = ""
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
        is_cold: bool = False,
        keep: bool = True,
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
            is_cold: The caller knows that the provider's cache of the session is gone.
            keep: False looks, and leaves no trace.

        Raises:
            UsageError: As for ``recap.compact``; so are the others.
            StoreError: The store cannot be read.
        """
        settings = self._settings
        demand(settings, to, pins, graph)
        if retention is not None:
            settings = settings.replace(retention=retention)
        transcript = self._read(messages, dialect)
        if graph is not None:
            return compact_transcript(
                transcript, request, settings=settings, policy=policy, pins=pins, graph=graph,
                to=to, alternate=alternate, model=model, named=self._named,
            )  # fmt: skip
        key = _settings_key(settings, policy or settings.policy, pins)
        facts = policies.Moment(
            is_cold_resume=is_cold,
            now=self._clock(),
            cache_life=self._cache_life,
            cached_before=self._cached_before,
        )
        visit = Visit(self._past, transcript.format, settings, key, facts, self._model)

        def served() -> Compaction:
            return compact_transcript(
                transcript, request, settings=settings, policy=policy, pins=pins, to=to,
                alternate=alternate, model=model, named=self._named, memory=visit,
            )  # fmt: skip

        done = visit.judged(served(), self._prices)
        if visit.is_overruled:
            done = visit.judged(served(), self._prices)
        if keep and not self._keep(done, visit):
            done = visit.judged(served(), self._prices)
        if keep:
            self._past.served_chars = done.report.prompt_chars
            self._has_selected = visit.step.action == "select"
            self._submit(messages, transcript.dialect, done.known)
        if self.failure is not None and keep:
            notes = {**done.report.notes, "not-saved": 1}
            done = replace(done, report=replace(done.report, notes=notes))
        return done

    def observe(
        self,
        messages: Sequence[Mapping[str, Json]] | Mapping[str, Json] | Transcript,
        *,
        dialect: str = "auto",
        keep: bool = True,
        open_turn: bool = True,
        progress: Callable[[Progress], None] | None = None,
    ) -> Known:
        """Return what is known of the session, all its turns taken for completed; nothing is selected.

        Kept of it are the turns that a later message of the person has closed. An observer with a
        model measures those the graph has not seen, and each is kept before the next one begins.

        Args:
            messages: The session as the client has it now.
            dialect: Dialect of a message list.
            keep: False looks, and leaves no trace.
            open_turn: False leaves the turn alone that no later message has closed; where that takes
                a model it would be measured for this call alone.
            progress: Called after each turn that a model measured; what it raises ends the work.

        Raises:
            NotInstalledError: The model, or a package it needs, is missing.
            StoreError: The store cannot be read or written.
        """
        known = self.known(messages, dialect)
        if keep:
            self._past.keep(known, None)
        if self._observer is None:
            return known
        turns = turns_to_observe(known, open_turn=open_turn)
        measured = ask(self._observer, known, turns, self._past.given)
        for done, step in enumerate(brought_up(known, measured, self._settings), 1):
            known = step.known
            if keep:
                self._past.keep(known, None)
            if progress is not None:
                progress(Progress(done, len(turns), step.reason))
        return known

    def known(
        self,
        messages: Sequence[Mapping[str, Json]] | Mapping[str, Json] | Transcript,
        dialect: str = "auto",
    ) -> Known:
        """Return what is known of the session, all its turns taken for completed.

        No model is run, and nothing is kept: the graph of an observer with a model may lag behind.

        Raises:
            StoreError: The store cannot be read.
        """
        transcript = self._read(messages, dialect)
        memory = _Observing(self._past, transcript.format, self._model)
        return known_of(
            transcript, None, self._settings, named=self._named, memory=memory, is_complete=True
        )

    def responded(self, usage: Mapping[str, Json] | Usage, at: float | None = None) -> None:
        """Take note of a response: when it came, and what the vendor's cache holds.

        Args:
            usage: The response's usage, as the vendor reports it.
            at: Unix time of the response, seconds; now if None.

        Raises:
            UsageError: ``usage`` is no usage of a known vendor, or ``at`` no time.
            StoreError: It cannot be saved.
        """
        tokens = usage if isinstance(usage, Usage) else usage_of(usage)
        if tokens is None:
            raise UsageError("usage must be the usage object of a response, as the vendor sends it")
        when = self._clock() if at is None else at
        if not (isinstance(when, (int, float)) and 0 <= when < LATEST):  # type: ignore[redundant-expr]
            raise UsageError(f"at must be a Unix time in seconds, got {shown(at)}")
        row = self._past.row
        # After a selection of ours the cache holds less, which says nothing about its age.
        self._cached_before = row.cached_tokens if row and not self._has_selected else None
        self._has_selected = False
        self._cache_life = cache_life(tokens) or self._cache_life
        chars = self._past.served_chars

        def noted(row: SessionRow) -> SessionRow:
            return replace(
                row,
                last_response=when,
                cached_tokens=tokens.cache_read,
                chars_per_token=calibrated(chars, tokens.input, row.chars_per_token),
            )

        self._past.change(noted)

    def selections(
        self, messages: Sequence[Mapping[str, Json]] | Mapping[str, Json] | Transcript
    ) -> list[Served]:
        """Return what the last turns of the session were given, newest first, at most 64."""
        transcript = self._read(messages)
        return self._served(moment_of(transcript, None, self._named), transcript.format)

    def compact_as(
        self,
        ref: str,
        messages: Sequence[Mapping[str, Json]] | Mapping[str, Json] | Transcript,
        request: str | Mapping[str, Json] | None = None,
        *,
        to: Dialect | None = None,
        alternate: bool = False,
        model: str = "",
    ) -> Compaction:
        """Return the context again that an earlier turn was given.

        Args:
            ref: Which: a beginning of ``Served.ref``, or ``-1`` for the newest, ``-2``, ...
            messages: The session as the client has it now.
            request: The request, where it was given apart.
            to: Dialect of the result.
            alternate: Join adjacent messages of one role.
            model: The model the context is for.

        Raises:
            UsageError: No selection, or several, have that name, or its turn is gone.
        """
        transcript = self._read(messages)
        moment = moment_of(transcript, None, self._named)
        served = one_of(self._served(moment, transcript.format), ref)
        before = as_it_was(transcript, served, request is not None, moment.closed)
        settings = self._settings.replace(mode="turn", retention=served.kept.retention)
        done = compact_transcript(
            before, None if served.message is not None else request, settings=settings,
            policy=served.kept.policy, to=to, alternate=alternate, model=model,
            named=self._named, memory=_Again(served.kept),
        )  # fmt: skip
        return replace(done, report=replace(done.report, action="reuse", reason="undo"))

    @property
    def _model(self) -> str:
        """Fingerprint of the model that measures the session, "" for none."""
        return "" if self._observer is None else self._observer.fingerprint

    def _submit(self, messages: object, dialect: str, known: Known) -> None:
        """Have turns that the graph has not seen measured in the background."""
        is_behind = known.settled.turns < known.closed_turns
        if self._worker is None or self._observer is None or not is_behind:
            return
        if isinstance(self._shelf, Store):
            from recap.session.worker import Job

            session, folder = known.moment.session, self._shelf.folder
            self._worker.submit(
                Job(folder, session, self._label, self._settings, dialect), messages
            )

    def _served(self, moment: Moment, format: str) -> list[Served]:
        self._past.enter(moment, format)
        return [
            Served(row.turn_key.hex(), row.created, kept, self._begin_of(row, moment.closed))
            for row, kept in self._past.selections()
        ]

    def _begin_of(self, row: SelectionRow, turns: Sequence[Boundary]) -> int | None:
        """Return the message that begins the turn a selection was made for; None for none of them."""
        return next((turn.message for turn in turns if self._past.is_of(row, turn.turn_key)), None)

    def _read(
        self,
        messages: Sequence[Mapping[str, Json]] | Mapping[str, Json] | Transcript,
        dialect: str = "auto",
    ) -> Transcript:
        if isinstance(messages, Transcript):
            return messages
        transcript = self._list.read(messages, dialect)
        if dialect != "auto":
            return transcript
        if transcript.evidence != PLAIN_TEXT:
            self._dialect = transcript.dialect
        elif self._dialect not in ("", transcript.dialect):
            return self._list.read(messages, self._dialect)
        return transcript

    def _keep(self, done: Compaction, visit: Visit) -> bool:
        """Save what was learned; a result is never lost to a store that cannot be written.

        False when another process gave the turn something else at the same time: that is served.
        """
        self.failure = None
        if visit.step.reason == "off":
            return True
        try:
            return self._past.keep(done.known, visit.kept_set(done))
        except StoreError as err:
            self.failure = err
            return True


class _Observing(Memory):
    """A session's past, without its kept sets."""

    def __init__(self, past: Past, format: str, model: str) -> None:
        self.model = model
        self._past = past
        self._format = format

    def prior(self, moment: Moment) -> Prior:
        """Return what was known of the session before."""
        return self._past.enter(moment, self._format)


class _Again(Memory):
    """A past that holds one kept set."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def kept(self, known: Known) -> Remembered:
        """Return the kept set."""
        return Remembered(self._kept, extend=False)


def _observer(settings: Settings, given: Observer | None) -> Observer | None:
    """Return what measures turns with a model; None where the settings ask for none."""
    if settings.observer == REUSE:
        return None
    if given is not None:
        return given
    if settings.observer == "engine":
        raise UsageError("observer engine measures inside an SGLang server; use reuse or proxy")
    from recap.session.model import ProxyObserver

    return ProxyObserver(settings)


def _folder(store: Path | str) -> Path:
    """Return the folder that is named; UsageError for what names none."""
    try:
        folder = Path(store).expanduser()
        named = os.fsencode(folder)
    except (ValueError, RuntimeError) as err:  # a lone surrogate; a home that nobody has
        raise UsageError(f"store names no folder: {shown(store)}") from err
    if not str(store).strip() or b"\0" in named:
        raise UsageError(f"store names no folder: {shown(store)}")
    return folder


def _settings_key(settings: Settings, policy: str, pins: Sequence[str]) -> bytes:
    """Return the fingerprint of everything that shapes a selection besides the session."""
    return digest(canonical_json(asdict(settings)), policy, *pins)
