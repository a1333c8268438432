"""Which layers are measured."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.capture.layers import edge_of, first_full, spaced_full

MODELS = st.lists(st.booleans(), max_size=64)
COUNTS = st.integers(1, 40)


def test_the_first_layers_leave_sliding_windows_out() -> None:
    assert first_full([False, True, False, True, True], 2) == (1, 3)


def test_fewer_layers_than_wanted_are_all_taken() -> None:
    assert first_full([True, False, True], 8) == spaced_full([True, False, True], 8) == (0, 2)


@pytest.mark.parametrize(
    ("layers", "count", "wanted"),
    [(30, 3, (0, 15, 29)), (48, 8, (0, 7, 13, 20, 27, 34, 40, 47)), (5, 1, (2,)), (4, 2, (0, 3))],
)
def test_spaced_layers_reach_from_the_first_to_the_last(
    layers: int, count: int, wanted: tuple[int, ...]
) -> None:
    assert spaced_full([True] * layers, count) == wanted


@given(MODELS, COUNTS)
def test_chosen_layers_are_full_ascending_and_as_many_as_there_can_be(
    is_full: list[bool], count: int
) -> None:
    for chosen in (first_full(is_full, count), spaced_full(is_full, count)):
        assert len(chosen) == min(count, sum(is_full))
        assert all(is_full[layer] for layer in chosen)
        assert all(a < b for a, b in pairwise(chosen))


@given(MODELS, st.integers(2, 40))
def test_gaps_between_spaced_layers_differ_by_one_at_most(is_full: list[bool], count: int) -> None:
    rank = {layer: i for i, layer in enumerate(i for i, full in enumerate(is_full) if full)}
    gaps = [rank[b] - rank[a] for a, b in pairwise(spaced_full(is_full, count))]
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_edges_come_from_the_measured_layer_nearest_to_the_wanted_one() -> None:
    assert edge_of((0, 1, 2, 3, 4, 5), 4) == 4
    assert edge_of((1, 3, 5), 4) == 3
    assert edge_of((5, 11, 17), 4) == 5
    assert edge_of((0,), 9) == 0
