"""ContextGraph: importance per block, observed and stale marks, support edges. Immutable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class ContextGraph:
    """The persistent state of one (session, observer).

    Attributes:
        observer: Who measured: ``reuse``, ``proxy``, ``engine``.
        turns: Number of observations folded in.
        ids: Block ids, in the order they were first seen.
        importance: float32 ``[n]`` in [0, 1]: u_t.
        is_observed: bool ``[n]``: in O_t.
        superseded_by: int32 ``[n]``: index of the later block that made this one stale, -1 if none.
        source: int32 ``[e]``: index of the supporting, earlier block a.
        target: int32 ``[e]``: index of the later block b.
        mass: float32 ``[e]`` in (theta, 1]: w(a, b). Edges are sorted by (target, source).
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
