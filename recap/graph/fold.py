"""Graph update after turns that saw all blocks of a table up to their end, in time for what they used.

The same as ``update`` and ``mark_stale`` turn by turn, bit for bit. Those pass over every observed
block; in a long session a turn uses few of them, and the scores of the others soon are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.graph.observation import TurnObservation
from recap.graph.runs import runs
from recap.graph.state import ContextGraph, locate
from recap.graph.update import Edges, grown, merged

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from recap.config import Settings
    from recap.graph.repeats import Repeats


class TurnUse(NamedTuple):
    """What a completed turn used of the first blocks of a table: a ``TurnObservation`` without zeros.

    Attributes:
        turn: 0-based number of the turn.
        end: Number of blocks up to the end of the turn: all of them were observed.
        rows: int64 ``[k]``: the blocks that were used, ascending.
        use: float64 ``[k]``, >= 0: their use.
        later, earlier, mass: As of ``TurnObservation``.
    """

    turn: int
    end: int
    rows: npt.NDArray[np.int64]
    use: npt.NDArray[np.float64]
    later: npt.NDArray[np.int32]
    earlier: npt.NDArray[np.int32]
    mass: npt.NDArray[np.float64]

    def observation(self, ids: tuple[str, ...]) -> TurnObservation:
        """Return it with the ids of the table's blocks."""
        use = np.zeros(self.end)
        use[self.rows] = self.use
        known = ids[: self.end]
        return TurnObservation(self.turn, known, use, self.later, self.earlier, self.mass)


def fold(
    graph: ContextGraph, turns: Iterable[TurnUse], repeats: Repeats, settings: Settings
) -> ContextGraph:
    """Return the graph after completed turns, which ascend; ``repeats`` are of their table."""
    state = _Fold(graph, repeats)
    for turn in turns:
        state.see(turn.end)
        state.move(turn, settings.smoothing)
        state.mark(turn)
        state.connect(turn, settings.edge_threshold)
    return state.graph()


class _Fold:
    """Columns of the graph as turns change them, with room for every block of the table.

    ``node`` leads from a row of the table to its place in the graph.
    """

    def __init__(self, graph: ContextGraph, repeats: Repeats) -> None:
        self.old, self.ids = graph, repeats.ids
        self.node = locate(repeats.ids, graph.ids)
        is_new = self.node < 0
        size = len(graph.ids) + int(np.count_nonzero(is_new))
        self.node[is_new] = np.arange(len(graph.ids), size)
        self.turns, self.seen = graph.turns, 0
        self.importance = grown(graph.importance, size, np.float32(0))
        self.superseded_by = grown(graph.superseded_by, size, np.int32(-1))
        self.use = np.full(size, np.nan)  # no comparison with what was not observed is true
        self.is_live = np.zeros(size, np.bool_)
        self.live = np.zeros(0, np.int32)  # observed nodes whose score is not 0
        self.edges: list[Edges] = []
        rows = np.arange(len(repeats.ids) + 1)
        self.pairs_from = np.searchsorted(repeats.later, rows)  # of each row, as the later block
        self.earlier = self.node[repeats.earlier]

    def see(self, end: int) -> None:
        """Count the blocks up to ``end`` as observed."""
        nodes = self.node[self.seen : end]
        self.use[nodes] = 0
        self.seen = max(self.seen, end)
        self._enliven(nodes)

    def move(self, turn: TurnUse, smoothing: float) -> None:
        """Move the scores, as ``update`` does."""
        self.turns += 1
        nodes = self.node[turn.rows]
        peak = turn.use.max(initial=0.0)
        share = turn.use / peak if peak > 0 else turn.use
        before = self.importance[nodes].astype(np.float64)
        faded = (1 - smoothing) * self.importance[self.live].astype(np.float64)
        self.importance[self.live] = faded
        self.importance[nodes] = (1 - smoothing) * before + smoothing * share
        self._enliven(nodes)
        is_live = self.importance[self.live] != 0
        self.is_live[self.live] = is_live
        self.live = self.live[is_live]

    def mark(self, turn: TurnUse) -> None:
        """Change the stale marks, as ``mark_stale`` does: only blocks that were used can."""
        rows, use = turn.rows[turn.use > 0], turn.use[turn.use > 0]
        nodes = self.node[rows]
        self.use[nodes] = use
        marked = nodes[self.superseded_by[nodes] >= 0]
        is_back = self.use[marked] > self.use[self.superseded_by[marked]]
        self.superseded_by[marked[is_back]] = -1
        begin = self.pairs_from[rows]
        counts = self.pairs_from[rows + 1] - begin
        earlier = self.earlier[runs(begin, counts)]
        is_outdone = np.repeat(use, counts) >= self.use[earlier]
        # The last one of several stays.
        self.superseded_by[earlier[is_outdone]] = np.repeat(nodes, counts)[is_outdone]
        self.use[nodes] = 0

    def connect(self, turn: TurnUse, threshold: float) -> None:
        """Take the edges above the threshold."""
        is_edge = turn.mass > threshold
        source, target = self.node[turn.earlier[is_edge]], self.node[turn.later[is_edge]]
        self.edges.append(Edges(source, target, turn.mass[is_edge].astype(np.float32)))

    def graph(self) -> ContextGraph:
        """Return the graph: blocks that were not seen have no place in it."""
        old, seen = self.old, self.node[: self.seen]
        new = np.flatnonzero(seen >= len(old.ids)).tolist()
        ids = old.ids + tuple(self.ids[row] for row in new)
        is_observed = grown(old.is_observed, len(ids), np.False_)
        is_observed[seen] = True
        return ContextGraph(
            old.observer,
            self.turns,
            ids,
            self.importance[: len(ids)].copy(),
            is_observed,
            self.superseded_by[: len(ids)].copy(),
            *merged(Edges(old.source, old.target, old.mass), self.edges, len(ids)),
        )

    def _enliven(self, nodes: npt.NDArray[np.int32]) -> None:
        """Take observed nodes among those that fade."""
        new = nodes[~self.is_live[nodes]]
        self.is_live[new] = True
        self.live = np.concatenate((self.live, new))
