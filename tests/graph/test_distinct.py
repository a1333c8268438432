from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recap.graph.distinct import distinct


@given(st.lists(st.integers(-5, 5)))
def test_distinct_is_what_unique_is(values: list[int]):
    array = np.array(values, np.int64)
    expected = np.unique(array, return_index=True, return_inverse=True)
    assert all(
        np.array_equal(mine, theirs) for mine, theirs in zip(distinct(array), expected, strict=True)
    )
