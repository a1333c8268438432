"""ContextGraph: importance per block, observed and stale marks, support edges. Immutable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class ContextGraph:
    """The persistent state of one (session, observer). Graphs of equal content are equal.

    Attributes:
        observer: Who measured: ``reuse``, ``proxy``, ``engine``.
        turns: Number of observations folded in.
        ids: Block ids, in the order they were first seen.
        importance: float32 ``[n]`` in [0, 1]: u_t.
        is_observed: bool ``[n]``: in O_t.
        superseded_by: int32 ``[n]``: index of the later block that made this one stale, -1 if none.
        source: int32 ``[e]``: index of the supporting, earlier block a.
        target: int32 ``[e]``: index of the later block b.
        mass: float32 ``[e]`` in (theta, 1]: w(a, b). One edge per pair, in the order expansion
            visits them: by target, then by descending mass, then by source.
    """

    observer: str
    turns: int
    ids: tuple[str, ...]
    importance: npt.NDArray[np.float32]
    is_observed: npt.NDArray[np.bool_]
    superseded_by: npt.NDArray[np.int32]
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    mass: npt.NDArray[np.float32]

    @classmethod
    def empty(cls, observer: str) -> ContextGraph:
        """Return the graph of a session that was not observed yet."""
        return cls(
            observer=observer,
            turns=0,
            ids=(),
            importance=np.zeros(0, np.float32),
            is_observed=np.zeros(0, np.bool_),
            superseded_by=np.zeros(0, np.int32),
            source=np.zeros(0, np.int32),
            target=np.zeros(0, np.int32),
            mass=np.zeros(0, np.float32),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ContextGraph):
            return NotImplemented
        return (self.observer, self.turns, self.ids) == (
            other.observer,
            other.turns,
            other.ids,
        ) and (
            all(np.array_equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True))
        )

    __hash__ = None  # type: ignore[assignment]  # arrays cannot be hashed

    def _arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        marks = (self.importance, self.is_observed, self.superseded_by)
        return (*marks, self.source, self.target, self.mass)


@dataclass(frozen=True, slots=True, eq=False)
class AlignedGraph:
    """A graph seen through the blocks of a table: arrays in the table's order.

    Attributes:
        importance: float64 ``[blocks]``: u, 0 for blocks the graph does not know.
        is_observed: bool ``[blocks]``.
        is_stale: bool ``[blocks]``: superseded by a block that the table holds.
        source: int32 ``[e]``: table index of the supporting block.
        target: int32 ``[e]``: table index of the supported block, sorted by target, then by
            descending mass, then by source.
        mass: float64 ``[e]``.
    """

    importance: npt.NDArray[np.float64]
    is_observed: npt.NDArray[np.bool_]
    is_stale: npt.NDArray[np.bool_]
    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    mass: npt.NDArray[np.float64]


def align(graph: ContextGraph, table_ids: tuple[str, ...]) -> AlignedGraph:
    """Return the graph in the order of a table's blocks.

    Blocks and edges that the table does not hold are left out. Costs a few array copies when one
    list of ids continues the other, as in a session that grows; a dictionary of the ids otherwise.
    """
    shared = min(len(graph.ids), len(table_ids))
    if graph.ids[:shared] == table_ids[:shared]:
        return _cut_or_padded(graph, shared, len(table_ids))
    return _rearranged(graph, locate(graph.ids, table_ids), len(table_ids))


def _cut_or_padded(graph: ContextGraph, shared: int, count: int) -> AlignedGraph:
    importance = np.zeros(count)
    is_observed = np.zeros(count, np.bool_)
    is_stale = np.zeros(count, np.bool_)
    superseded_by = graph.superseded_by[:shared]
    importance[:shared] = graph.importance[:shared]
    is_observed[:shared] = graph.is_observed[:shared]
    is_stale[:shared] = (superseded_by >= 0) & (superseded_by < shared)
    source, target, mass = graph.source, graph.target, graph.mass.astype(np.float64)
    is_inside = (source < target) & (target < shared)
    if not is_inside.all():
        source, target, mass = source[is_inside], target[is_inside], mass[is_inside]
    return AlignedGraph(importance, is_observed, is_stale, source, target, mass)


def _rearranged(graph: ContextGraph, row: npt.NDArray[np.int32], count: int) -> AlignedGraph:
    """Return the graph with its blocks at the given rows; -1 leaves a block out."""
    is_held = row >= 0
    rows = row[is_held]
    importance = np.zeros(count)
    is_observed = np.zeros(count, np.bool_)
    is_stale = np.zeros(count, np.bool_)
    is_superseded = (graph.superseded_by >= 0) & is_held[graph.superseded_by]
    importance[rows] = graph.importance[is_held]
    is_observed[rows] = graph.is_observed[is_held]
    is_stale[rows] = is_superseded[is_held]
    source, target = row[graph.source], row[graph.target]
    is_inside = (source >= 0) & (source < target)
    source, target, mass = source[is_inside], target[is_inside], graph.mass[is_inside]
    order = np.lexsort((source, -mass, target))
    return AlignedGraph(
        importance,
        is_observed,
        is_stale,
        source[order],
        target[order],
        mass[order].astype(np.float64),
    )


def locate(ids: tuple[str, ...], within: tuple[str, ...]) -> npt.NDArray[np.int32]:
    """Return int32 ``[ids]``: the index of each id in ``within``, -1 where it is not there."""
    shared = min(len(ids), len(within))
    if ids[:shared] == within[:shared]:  # one continues the other
        index = np.full(len(ids), -1, np.int32)
        index[:shared] = np.arange(shared)
        return index
    position = {block_id: i for i, block_id in enumerate(within)}
    return np.fromiter((position.get(block_id, -1) for block_id in ids), np.int32, len(ids))
