"""Supersession: an earlier block that a later one repeats, and outdoes in use, is stale (ours)."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.graph.ranges import ranges
from recap.graph.state import ContextGraph, locate

if TYPE_CHECKING:
    import numpy.typing as npt

    from recap.blocks.table import BlockTable, IdentifierIndex
    from recap.graph.observation import TurnObservation

FEWEST_IDENTIFIERS = 8
"""A block with fewer is never stale: any longer block on the same matter holds such a handful."""

MOST_REPEATS = 4
"""Later blocks considered per block, the first ones: a file read 1,000 times has 500,000 pairs."""


class Repeats(NamedTuple):
    """Pairs of blocks of a table of which the later one repeats most of the earlier one.

    Attributes:
        ids: Ids of the table's blocks.
        earlier: int32 ``[pairs]``: index into ``ids``; never a user block.
        later: int32 ``[pairs]``: index into ``ids``, ascending.
    """

    ids: tuple[str, ...]
    earlier: npt.NDArray[np.int32]
    later: npt.NDArray[np.int32]


def find_repeats(table: BlockTable, overlap: float) -> Repeats:
    """Return the pairs a < b with |I(a) & I(b)| >= overlap * |I(a)|, exactly.

    Only blocks that share one of a's ``|I(a)| - needed + 1`` rarest identifiers can share ``needed``
    of them, so that only those are compared. A longer table has the same pairs, and more.
    """
    index = table.index
    starts, terms = index.starts, index.terms
    needed = overlap * np.diff(starts)
    keys = _rare_terms(index, needed)
    can_go_stale = (np.diff(starts) >= FEWEST_IDENTIFIERS) & ~table.is_user
    holders: defaultdict[int, set[int]] = defaultdict(set)
    repeats = np.zeros(len(table), np.int32)
    is_held = np.zeros(index.size, np.bool_)
    pairs: list[tuple[int, int]] = []
    for later in range(len(table)):
        row = terms[starts[later] : starts[later + 1]]
        found = set().union(*(holders[term] for term in row.tolist() if term in holders))
        if found:
            is_held[row] = True
            candidates = np.array(sorted(found), np.int64)
            is_repeated = _count(is_held, index, candidates) >= needed[candidates]
            is_held[row] = False
            for earlier in candidates[is_repeated].tolist():
                pairs.append((earlier, later))
                repeats[earlier] += 1
                if repeats[earlier] == MOST_REPEATS:
                    for term in keys[earlier]:
                        holders[term].discard(earlier)
        if can_go_stale[later]:
            for term in keys[later]:
                holders[term].add(later)
    columns = np.array(pairs, np.int32).reshape(-1, 2)
    return Repeats(table.ids, columns[:, 0], columns[:, 1])


def _rare_terms(index: IdentifierIndex, needed: npt.NDArray[np.float64]) -> list[list[int]]:
    """Return per block the identifiers of which any block that repeats it holds at least one."""
    sizes = np.diff(index.starts)
    row = np.repeat(np.arange(len(sizes)), sizes)
    by_rarity = index.terms[np.lexsort((index.document_frequency[index.terms], row))].tolist()
    counts = sizes - np.ceil(needed).astype(np.int64) + 1
    spans = zip(index.starts[:-1].tolist(), counts.tolist(), strict=True)
    return [by_rarity[start : start + count] for start, count in spans]


def _count(
    is_held: npt.NDArray[np.bool_], index: IdentifierIndex, blocks: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return how many identifiers of each block are held; no block may be without any."""
    sizes = index.starts[blocks + 1] - index.starts[blocks]
    terms = index.terms[ranges(index.starts[blocks], sizes)]
    return np.add.reduceat(is_held[terms].astype(np.int64), np.cumsum(sizes) - sizes)


def mark_stale(graph: ContextGraph, observation: TurnObservation, repeats: Repeats) -> ContextGraph:
    """Return the graph with the stale marks of one turn: call it after ``update`` with that turn.

    A block is marked when a later block that repeats it was used at least as much in this turn,
    and was used at all; the newest such block counts as its superseder. A marked block loses the
    mark when it was used more than its superseder. Blocks that were not observed keep theirs.

    Deviation: equal use suffices. Attention never gives two blocks the same, but text reuse cannot
    tell two copies apart, and then the later one is the current one.
    """
    use = np.full(len(graph.ids), np.nan)  # a comparison with what was not observed is never true
    use[locate(observation.ids, graph.ids)] = observation.use
    superseded_by = graph.superseded_by.copy()
    marked = np.flatnonzero(superseded_by >= 0)
    is_back = use[marked] > use[superseded_by[marked]]
    superseded_by[marked[is_back]] = -1

    node = locate(repeats.ids, graph.ids)
    earlier, later = node[repeats.earlier], node[repeats.later]
    is_known = (earlier >= 0) & (later >= 0)
    earlier, later = earlier[is_known], later[is_known]
    is_outdone = (use[later] >= use[earlier]) & (use[later] > 0)
    superseded_by[earlier[is_outdone]] = later[is_outdone]  # the last one of several stays
    return dataclasses.replace(graph, superseded_by=superseded_by)
