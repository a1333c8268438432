"""The facade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.config import Settings
from recap.session.pipeline import compact_transcript, demand
from recap.transcript.lists import read_messages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal
    from fractions import Fraction

    from recap.graph.state import ContextGraph
    from recap.session.report import Compaction
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

    Raises:
        UsageError: An unknown policy, pin or dialect, or a value out of range.
        InvalidContextError: The result broke a rule of its dialect: a bug of ours.
    """
    chosen = Settings() if settings is None else settings
    demand(chosen, to, pins, graph)
    if retention is not None:
        chosen = chosen.replace(retention=retention)
    transcript = read_messages(messages, dialect)
    return compact_transcript(
        transcript, request, settings=chosen, policy=policy, pins=pins, graph=graph, to=to
    )
