from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recap.graph.effective import effective_importance
from recap.graph.state import ContextGraph


def test_a_block_matters_as_much_as_what_leans_on_it_times_the_edge():
    graph = replace(
        ContextGraph.empty("reuse"),
        ids=("a", "b", "c"),
        importance=np.array([0.1, 0.8, 0.3], np.float32),
        source=np.array([0, 1], np.int32),
        target=np.array([1, 2], np.int32),
        mass=np.array([0.5, 0.9], np.float32),
    )
    assert effective_importance(graph) == pytest.approx({"a": 0.4, "b": 0.8, "c": 0.3})
