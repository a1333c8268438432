"""Supersession: an earlier block that a later one repeats, and outdoes in use, is stale (ours)."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.graph.state import ContextGraph, locate

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from recap.blocks.table import BlockTable, IdentifierIndex
    from recap.graph.observation import TurnObservation

FEWEST_IDENTIFIERS = 8
"""A block with fewer is never stale: any longer block on the same matter holds such a handful."""

MOST_REPEATS = 4
"""Later blocks considered per block, the first ones: a file read 1,000 times has 500,000 pairs."""

KEY_HITS = 3
"""Rare identifiers a block must share before it is compared in full: it saves most comparisons."""


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
    """Return the pairs a < b with |I(a) & I(b)| / |I(a)| >= overlap.

    For each a the first ``MOST_REPEATS`` of them, so that a longer table has the same pairs and
    more. A block that holds enough of a's identifiers holds a few of its rarest ones: only blocks
    that do are compared, and the cost grows with the blocks, not with their pairs.
    """
    index = table.index
    sizes = np.diff(index.starts)
    needed = np.ceil(overlap * sizes).astype(np.int64)
    needed -= (needed - 1) / np.maximum(sizes, 1) >= overlap  # 0.55 * 20 is above 11
    needed_keys = np.minimum(needed, KEY_HITS)
    can_go_stale = (sizes >= FEWEST_IDENTIFIERS) & ~table.is_user
    keys = _rarest(index, sizes - needed + needed_keys)
    enough, enough_keys = needed.tolist(), needed_keys.tolist()
    holders: defaultdict[int, list[int]] = defaultdict(list)  # by key: blocks that may go stale
    repeats: Counter[int] = Counter()
    pairs: list[tuple[int, int]] = []
    for later in range(len(table)):
        terms = _row(index, later)
        held = frozenset(terms)
        hits = Counter(chain.from_iterable([holders[term] for term in terms if term in holders]))
        for earlier in sorted(a for a, count in hits.items() if count >= enough_keys[a]):
            if len(held.intersection(_row(index, earlier))) < enough[earlier]:
                continue
            pairs.append((earlier, later))
            repeats[earlier] += 1
            if repeats[earlier] == MOST_REPEATS:
                for term in keys[earlier]:
                    holders[term].remove(earlier)
        if can_go_stale[later]:
            for term in keys[later]:
                holders[term].append(later)
    columns = np.array(pairs, np.int32).reshape(-1, 2)
    return Repeats(table.ids, columns[:, 0], columns[:, 1])


def _row(index: IdentifierIndex, block: int) -> list[int]:
    terms: list[int] = index.terms[index.starts[block] : index.starts[block + 1]].tolist()
    return terms


def _rarest(index: IdentifierIndex, counts: npt.NDArray[np.int64]) -> list[list[int]]:
    """Return the given number of identifiers of each block, the rarest ones."""
    block = np.repeat(np.arange(len(counts)), np.diff(index.starts))
    by_rarity = index.terms[np.lexsort((index.document_frequency[index.terms], block))]
    return [
        by_rarity[start : start + count].tolist()
        for start, count in zip(index.starts[:-1], counts, strict=True)
    ]


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
