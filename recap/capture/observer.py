"""The observer with a proxy model: completed turns in, one observation each, or why there is none.

Within a warm stretch, while the agent's context only grows, the clip stays as it is and the model
runs over what is new alone. A resumed run chooses the same clips as one that went through: in a
stretch what did not fit once does not fit later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.capture.replay import ReplayError, fitting
from recap.capture.spans import SpanError
from recap.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from recap.blocks.table import BlockTable
    from recap.capture.proxy import ProxyModel
    from recap.config import Settings
    from recap.graph.observation import TurnObservation

OBSERVER = "proxy"


class Observed(NamedTuple):
    """What became of a turn.

    Attributes:
        turn: 0-based number.
        observation: What it used; None when that could not be measured.
        reason: Why not, a word or two joined by hyphens; "" with an observation.
    """

    turn: int
    observation: TurnObservation | None
    reason: str


class _Stretch(NamedTuple):
    """A warm stretch: ids shown before the latest turn, and the clip."""

    history: tuple[str, ...]
    clip: int


def observe_turns(
    table: BlockTable,
    turns: range,
    model: ProxyModel,
    settings: Settings,
    seeds: Sequence[int],
    served: Sequence[Collection[str] | None] | None = None,
) -> Iterator[Observed]:
    """Yield what became of each turn, in order; each is measured when it is asked for.

    Args:
        table: Blocks of the session.
        turns: Turn numbers, ascending.
        model: The proxy model; it goes on from what it ran last, as far as that is the same.
        settings: ``replay_tokens`` and those of ``ProxyModel.observe``.
        seeds: For each turn what its rows are drawn by, see ``row_seed``.
        served: For each turn the ids of the blocks the agent was served besides the turn's own;
            None for all of them.
    """
    stretch: _Stretch | None = None
    all_served = [None] * len(turns) if served is None else served
    limit = min(settings.replay_tokens, model.most_tokens)
    for turn, seed, given in zip(turns, seeds, all_served, strict=True):
        history = _history(table, turn, given)
        if stretch and history[: len(stretch.history)] != stretch.history:
            stretch = None
            model.forget()
        try:
            clip = stretch.clip if stretch else None
            replay = fitting(table, turn, limit, model.count, served=given, clip=clip)
            if stretch and replay.clip != clip:
                model.forget()
            stretch = _Stretch(history, replay.clip)
            observed = Observed(turn, model.observe(replay, turn, seed, settings), "")
        except ReplayError:
            observed = Observed(turn, None, "too-long")
        except (SpanError, CaptureError) as err:
            observed = Observed(turn, None, err.reason)
        yield observed


def _history(table: BlockTable, turn: int, served: Collection[str] | None) -> tuple[str, ...]:
    """Return the ids of the blocks that the agent was served before a turn."""
    before = table.ids[: int(np.searchsorted(table.turn, turn))]
    return before if served is None else tuple(id for id in before if id in served)
