"""Dependency expansion: what the kept blocks were built on comes along, one hop back."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.graph.distinct import distinct
from recap.select.pack import fill

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


def expand(graph: AlignedGraph, is_kept: BoolArray, cost_chars: IntArray, chars: int) -> Expansion:
    """Return the predecessors that a fixed set of kept blocks pulls in (ReCAP section 4.3).

    Kept blocks are visited chronologically (ours), their incoming edges by descending mass, ties
    chronologically: the order of the graph's edges. Every unselected, non-stale predecessor that
    fits is added; what is added pulls nothing itself.

    Args:
        graph: The graph in the table's order, n blocks.
        is_kept: bool ``[n]``: C0.
        cost_chars: int64 ``[n]``.
        chars: What the added blocks may cost together; negative for nothing.
    """
    leads_out = is_kept[graph.target] & ~is_kept[graph.source]
    is_stale = graph.is_stale[graph.source]
    stale = distinct(graph.source[leads_out & is_stale]).values.astype(np.int64)
    edges = np.flatnonzero(leads_out & ~is_stale)
    # A block that did not fit where the first edge led to it does not fit later either.
    source, first, _ = distinct(graph.source[edges])
    visits = np.argsort(first)
    filled = fill(source[visits].astype(np.int64), cost_chars, chars)
    edge = edges[first[np.searchsorted(source, filled.chosen)]]
    return Expansion(filled.chosen, graph.target[edge], graph.mass[edge], filled.passed, stale)
