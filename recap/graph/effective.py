"""Effective importance: a block matters at least as much as what leans on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recap.graph.state import ContextGraph


def effective_importance(graph: ContextGraph) -> dict[str, float]:
    """Return for each block id the larger of its importance and its dependents' times the edge.

    Ours: ``max(u(a), max over b of w(a, b) u(b))``, one hop, like the expansion of a selection.
    """
    effective = graph.importance.copy()
    np.maximum.at(effective, graph.source, graph.mass * graph.importance[graph.target])
    return dict(zip(graph.ids, effective.tolist(), strict=True))
