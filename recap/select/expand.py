"""Dependency expansion: what the kept blocks were built on comes along, one hop back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.graph.distinct import distinct
from recap.select.pack import Fill, fill

if TYPE_CHECKING:
    from recap.blocks.table import BoolArray, FloatArray, Int32Array, IntArray
    from recap.graph.state import AlignedGraph


class Expansion(NamedTuple):
    """What support edges did.

    Attributes:
        added: Blocks pulled in.
        pulled_by: int32 ``[added]``: the kept block whose edge did it.
        mass: float64 ``[added]``: that edge's mass.
        passed: Blocks an edge led to that did not fit, while a later one did.
        stale: Blocks an edge led to that are superseded.
    """

    added: IntArray
    pulled_by: Int32Array
    mass: FloatArray
    passed: IntArray
    stale: IntArray


def expand(
    graph: AlignedGraph,
    is_kept: BoolArray,
    cost_chars: IntArray,
    chars: int,
    gain: FloatArray | None = None,
    edge_chars: int = 0,
) -> Expansion:
    """Return the predecessors that a fixed set of kept blocks pulls in (ReCAP section 4.3).

    Kept blocks are visited chronologically (ours), their incoming edges by descending mass, ties
    chronologically: the order of the graph's edges. Every unselected, non-stale predecessor that
    fits is added; what is added pulls nothing itself. With a gain the order of edges fills a part of
    the room alone, and the predecessors that would add most fill the rest (ours).

    Args:
        graph: The graph in the table's order, n blocks.
        is_kept: bool ``[n]``: C0.
        cost_chars: int64 ``[n]``.
        chars: What the added blocks may cost together; negative for nothing.
        gain: float64 ``[n]``: what a block would add; None to visit all by their edges.
        edge_chars: With a gain, what is filled in the order of edges.
    """
    leads_out = is_kept[graph.target] & ~is_kept[graph.source]
    is_stale = graph.is_stale[graph.source]
    stale = distinct(graph.source[leads_out & is_stale]).values.astype(np.int64)
    edges = np.flatnonzero(leads_out & ~is_stale)
    # A block that did not fit where the first edge led to it does not fit later either.
    source, first, _ = distinct(graph.source[edges])
    visits = source[np.argsort(first)].astype(np.int64)
    filled = fill(visits, cost_chars, chars if gain is None else edge_chars)
    if gain is not None:
        rest = visits[~np.isin(visits, filled.chosen)]
        more = fill(
            rest[np.argsort(-gain[rest], kind="stable")], cost_chars, chars - filled.spent_chars
        )
        filled = Fill(np.concatenate((filled.chosen, more.chosen)), more.passed, 0)
    edge = edges[first[np.searchsorted(source, filled.chosen)]]
    return Expansion(filled.chosen, graph.target[edge], graph.mass[edge], filled.passed, stale)
