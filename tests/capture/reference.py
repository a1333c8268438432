"""Observations counted turn by turn over all blocks: slow, and plain to follow."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from recap.capture.reuse import RECOUNT_GROWTH, turn_count
from recap.graph.observation import TurnObservation
from recap.graph.stale import mark_stale
from recap.graph.update import update

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recap.blocks.table import BlockTable
    from recap.config import Settings
    from recap.graph.repeats import Repeats
    from recap.graph.state import ContextGraph


def observations(table: BlockTable) -> Iterator[TurnObservation]:
    """Yield what each turn reused; sums are added in the order of identifiers."""
    index = table.index
    rows = [index.terms[a:b].tolist() for a, b in pairwise(index.starts.tolist())]
    wrote = [index.wrote[a:b].tolist() for a, b in pairwise(index.starts.tolist())]
    ends = np.searchsorted(table.turn, np.arange(turn_count(table)), side="right").tolist()
    frequency = [0] * index.size
    weight = np.zeros(index.size)
    counted = 0
    for turn, (start, end) in enumerate(pairwise([0, *ends])):
        for row in rows[start:end]:
            for term in row:
                frequency[term] += 1
        if end >= RECOUNT_GROWTH * counted:
            counted, weight = end, np.log1p(end / np.maximum(frequency, 1))
        total = [sum(weight[term] for term in row) for row in rows[:end]]
        last_writer = {
            term: block
            for block in range(start, end)
            for term, own in zip(rows[block], wrote[block], strict=True)
            if own
        }
        use = [
            share(sum(weight[term] for term in row if last_writer.get(term, -1) > block), whole)
            for block, (row, whole) in enumerate(zip(rows[:end], total, strict=True))
        ]
        holder = {term: block for block in range(start) for term in rows[block]}
        edges: dict[tuple[int, int], float] = {}
        for block in range(start, end):
            for term in rows[block]:
                if term in holder:
                    pair = (block, holder[term])
                    edges[pair] = edges.get(pair, 0.0) + weight[term]
                holder[term] = block
        pairs = sorted(edges)
        yield TurnObservation.of(
            turn,
            table.ids[:end],
            use,
            [later for later, _ in pairs],
            [earlier for _, earlier in pairs],
            [share(edges[pair], total[pair[0]]) for pair in pairs],
        )


def share(part: float, whole: float) -> float:
    """Return part / whole, between 0 and 1."""
    return min(part / whole, 1.0) if whole > 0 else 0.0


def graph_after(
    table: BlockTable, graph: ContextGraph, repeats: Repeats, settings: Settings
) -> ContextGraph:
    """Return the graph with the table's turns that it lacks folded in, each by itself."""
    for found in list(observations(table))[graph.turns :]:
        graph = mark_stale(update(graph, found, settings), [found], repeats)
    return graph
