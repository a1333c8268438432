"""Importance survives a rewritten history: the graph under the new ids of its blocks (ours)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from recap.graph.state import ContextGraph


def renamed(
    graph: ContextGraph,
    new_ids: Mapping[str, str],
    turns: int,
    *,
    gone: Collection[str] = frozenset(),
) -> ContextGraph:
    """Return the graph with its blocks under new ids: scores, marks and edges go with them.

    The order of the blocks stays as it is. A block whose id another one takes is left out.

    Args:
        graph: Graph of the history as it was.
        new_ids: Id a block had -> id it has; blocks that are not in it keep theirs.
        turns: How many of the turns as they are now count as folded in.
        gone: Ids, as they were, of blocks that were taken back: left out with their edges.

    Raises:
        ValueError: Two blocks would get one id.
    """
    moved = [None if old in gone else new_ids.get(old) for old in graph.ids]
    given = {new for new in moved if new is not None}
    if len(given) < sum(new is not None for new in moved):
        raise ValueError("new_ids gives two blocks the same id")
    is_kept = np.array(
        [
            old not in gone and (new is not None or old not in given)
            for old, new in zip(graph.ids, moved, strict=True)
        ],
        np.bool_,
    )
    ids = tuple(
        old if new is None else new
        for old, new, kept in zip(graph.ids, moved, is_kept.tolist(), strict=True)
        if kept
    )
    return _without(dataclasses.replace(graph, turns=turns), is_kept, ids)


def _without(
    graph: ContextGraph, is_kept: np.ndarray[tuple[int], np.dtype[np.bool_]], ids: tuple[str, ...]
) -> ContextGraph:
    """Return the graph of the kept blocks; as they keep their order, the edges do."""
    place = np.where(is_kept, np.cumsum(is_kept) - 1, -1).astype(np.int32)
    superseder = graph.superseded_by[is_kept]
    is_edge = is_kept[graph.source] & is_kept[graph.target]
    return dataclasses.replace(
        graph,
        ids=ids,
        importance=graph.importance[is_kept],
        is_observed=graph.is_observed[is_kept],
        superseded_by=np.where(superseder >= 0, place[superseder], np.int32(-1)),
        source=place[graph.source[is_edge]],
        target=place[graph.target[is_edge]],
        mass=graph.mass[is_edge],
    )
