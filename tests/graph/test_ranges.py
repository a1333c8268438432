from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recap.graph.ranges import ranges


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5))))
def test_runs_stand_side_by_side_in_their_order(runs):
    starts = np.array([start for start, _ in runs], np.int64)
    sizes = np.array([size for _, size in runs], np.int64)
    expected = [start + i for start, size in runs for i in range(size)]
    assert ranges(starts, sizes).tolist() == expected
