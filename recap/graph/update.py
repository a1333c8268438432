"""Graph update: importance, observed set and support edges after completed turns. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from recap.graph.state import ContextGraph, locate

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from recap.config import Settings
    from recap.graph.observation import TurnObservation

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Edges(NamedTuple):
    """Columns of edges, as of ``ContextGraph``."""

    source: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]
    mass: npt.NDArray[np.float32]

    def at(self, which: npt.NDArray[np.generic]) -> Edges:
        """Return the edges at a mask or at indices."""
        return Edges(*(column[which] for column in self))


def update(graph: ContextGraph, observation: TurnObservation, settings: Settings) -> ContextGraph:
    """Return the graph after one more completed turn (ReCAP section 4.2).

    u_t(v) = (1 - alpha) u_{t-1}(v) + alpha use(v) / max use, for the observed blocks; others keep
    their score and new ones start at 0. A turn in which nothing was used counts as use 0. Masses
    above theta become edges; an edge keeps the greatest mass it ever had. Stale marks stay as they
    are, see ``mark_stale``.
    """
    return update_all(graph, (observation,), settings)


def update_all(
    graph: ContextGraph, observations: Iterable[TurnObservation], settings: Settings
) -> ContextGraph:
    """Return the graph after several turns, in order: equal to one ``update`` each, but faster.

    Edges are merged once, so that the cost of a turn grows with its observation alone.
    """
    ids, turns = graph.ids, graph.turns
    importance, is_observed = graph.importance, graph.is_observed
    edges = []
    for observation in observations:
        turns += 1
        ids, node = _with_new(ids, observation.ids)
        importance = grown(importance, len(ids), np.float32(0))
        is_observed = grown(is_observed, len(ids), np.False_)
        importance[node] = _moved(importance[node], observation.use, settings.smoothing)
        is_observed[node] = True
        edges.append(_edges_above(settings.edge_threshold, observation, node))
    old = Edges(graph.source, graph.target, graph.mass)
    return ContextGraph(
        graph.observer,
        turns,
        ids,
        importance,
        is_observed,
        grown(graph.superseded_by, len(ids), np.int32(-1)),
        *merged(old, edges, len(ids)),
    )


def _with_new(
    ids: tuple[str, ...], observed: tuple[str, ...]
) -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """Return the ids with the new ones at the end, and the index of each observed block."""
    node = locate(observed, ids)
    new = np.flatnonzero(node < 0)
    node[new] = np.arange(len(ids), len(ids) + len(new))
    return ids + tuple(observed[i] for i in new.tolist()), node


def _moved(
    importance: npt.NDArray[np.float32], use: npt.NDArray[np.float64], smoothing: float
) -> npt.NDArray[np.float64]:
    peak = use.max(initial=0.0)
    share = use / peak if peak > 0 else use
    return (1 - smoothing) * importance.astype(np.float64) + smoothing * share


def grown(values: npt.NDArray[_Scalar], size: int, fill: _Scalar) -> npt.NDArray[_Scalar]:
    """Return a copy with room for new blocks."""
    grown = np.full(size, fill, values.dtype)
    grown[: len(values)] = values
    return grown


def _edges_above(
    threshold: float, observation: TurnObservation, node: npt.NDArray[np.int32]
) -> Edges:
    is_edge = observation.mass > threshold
    source, target = observation.earlier[is_edge], observation.later[is_edge]
    return Edges(node[source], node[target], observation.mass[is_edge].astype(np.float32))


def merged(old: Edges, new: list[Edges], count: int) -> Edges:
    """Return all edges in the graph's order, each pair once with its greatest mass.

    Only targets that got new edges are sorted again; both runs are then in order of their targets,
    which makes the stable sort a linear merge.
    """
    added = _concatenated(new)
    is_touched = np.zeros(count, np.bool_)
    is_touched[added.target] = True
    is_open = is_touched[old.target]
    strongest = _strongest(_concatenated([old.at(is_open), added]))
    edges = _concatenated([old.at(~is_open), strongest])
    return edges.at(np.argsort(edges.target, kind="stable"))


def _strongest(edges: Edges) -> Edges:
    by_pair = edges.at(np.lexsort((-edges.mass, edges.source, edges.target)))
    is_first = np.ones(len(by_pair.mass), np.bool_)
    is_first[1:] = np.diff(by_pair.source) != 0
    is_first[1:] |= np.diff(by_pair.target) != 0
    once = by_pair.at(is_first)
    return once.at(np.lexsort((once.source, -once.mass, once.target)))


def _concatenated(parts: list[Edges]) -> Edges:
    if not parts:
        return Edges(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))
    return Edges(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
