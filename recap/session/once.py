"""``recap.compact``: one call, with or without a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.config import Settings
from recap.errors import UsageError
from recap.session.facade import Session
from recap.session.pipeline import compact_transcript, demand
from recap.transcript.lists import read_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal
    from fractions import Fraction
    from pathlib import Path

    from recap.graph.state import ContextGraph
    from recap.session.report import Compaction
    from recap.session.shelf import Shelf
    from recap.transcript.model import Dialect, Json


def compact(  # noqa: PLR0913 - one keyword for each thing a caller may want
    messages: Sequence[Mapping[str, Json]] | Mapping[str, Json],
    request: str | Mapping[str, Json] | None = None,
    *,
    retention: str | float | Fraction | Decimal | None = None,
    policy: str | None = None,
    dialect: str = "auto",
    to: Dialect | None = None,
    pins: Sequence[str] = (),
    settings: Settings | None = None,
    graph: ContextGraph | None = None,
    store: Shelf | Path | str | None = None,
    session_id: str = "",
) -> Compaction:
    """Return a short, valid message list that holds what the request needs. No model is called.

    Args:
        messages: A message list as a client sends it, in any dialect of ``DIALECTS``, or the request
            document around it. It is not changed.
        request: The arriving request, as text or as a user message: then the whole list is history.
            None: the last real user message is the request, and what follows it is the current
            turn, which stays as it is.
        retention: Share beta of the history's characters to keep, in (0, 1]; 0.1 by default.
        policy: Name of a recipe, see ``recap.select.policies``; None for the default.
        dialect: The list's dialect, or ``auto``; the result has the same one.
        to: Another dialect for the result.
        pins: Ids of blocks to keep in any case.
        settings: Every other coefficient.
        graph: The session's context graph; None builds one from text reuse.
        store: A store, or the folder of one, that keeps the session's graph and what its turns were
            given; a call of its own each time, so hold a ``recap.Session`` for many.
        session_id: The client's id of the session in the store; its first message names it if "".

    Raises:
        UsageError: An unknown policy, pin or dialect, or a value out of range.
        StoreError: The store cannot be opened or read; where the result cannot be kept, the report
            notes ``not-saved``.
        InvalidContextError: The result broke a rule of its dialect: a bug of ours.
    """
    if store is None and session_id:
        raise UsageError("session_id names a session of a store: give store as well")
    chosen = Settings() if settings is None else settings
    demand(chosen, to, pins, graph)
    if retention is not None:
        chosen = chosen.replace(retention=retention)
    if store is None:
        transcript = read_messages(messages, dialect)
        return compact_transcript(
            transcript, request, settings=chosen, policy=policy, pins=pins, graph=graph, to=to
        )
    with Session(session_id, store=store, settings=chosen) as session:
        return session.compact(
            messages, request, policy=policy, dialect=dialect, to=to, pins=pins, graph=graph
        )
