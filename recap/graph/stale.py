"""Supersession: an earlier block that a later one repeats, and outdoes in use, is stale (ours)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from recap.graph.state import ContextGraph, locate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recap.graph.observation import TurnObservation
    from recap.graph.repeats import Repeats


def mark_stale(
    graph: ContextGraph, observations: Iterable[TurnObservation], repeats: Repeats
) -> ContextGraph:
    """Return the graph with the stale marks of some turns, which ``update`` has folded in.

    A block is marked when a later block that repeats it was used at least as much in a turn, and
    was used at all; the newest such block counts as its superseder. A marked block loses the mark
    when it is used more than its superseder. Blocks that were not observed keep theirs.

    Deviation: equal use suffices. Attention never gives two blocks the same, but text reuse cannot
    tell two copies apart, and then the later one is the current one.
    """
    node = locate(repeats.ids, graph.ids)
    earlier, later = node[repeats.earlier], node[repeats.later]
    is_known = (earlier >= 0) & (later >= 0)
    earlier, later = earlier[is_known], later[is_known]
    superseded_by = graph.superseded_by.copy()
    for observation in observations:
        use = np.full(len(graph.ids), np.nan)  # no comparison with what was not observed is true
        use[locate(observation.ids, graph.ids)] = observation.use
        marked = np.flatnonzero(superseded_by >= 0)
        is_back = use[marked] > use[superseded_by[marked]]
        superseded_by[marked[is_back]] = -1
        is_outdone = (use[later] >= use[earlier]) & (use[later] > 0)
        superseded_by[earlier[is_outdone]] = later[is_outdone]  # the last one of several stays
    return dataclasses.replace(graph, superseded_by=superseded_by)
