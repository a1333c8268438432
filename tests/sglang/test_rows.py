"""Rows kept while tokens stream are those of the sample over the whole turn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recap.capture.sampling import sample_rows
from recap.sglang.rows import SPARE, RowSample

SEEDS = st.integers(0, 2**64 - 1)


@given(
    SEEDS,
    st.integers(0, 40),
    st.integers(1, 20),
    st.lists(st.integers(1, 60), min_size=1, max_size=30),
)
def test_any_pieces_of_a_turn_keep_the_rows_of_the_whole(
    seed: int, start: int, count: int, sizes: list[int]
) -> None:
    sample, end = RowSample(seed, start, count), 0
    for size in sizes:
        sample.offer(end, end + size)
        end += size
    kept, _ = sample.kept(end)
    assert kept.tolist() == sample_rows(seed, min(start, end), end, count).tolist()


@given(SEEDS, st.integers(1, 20), st.integers(1, 300), st.integers(1, 300))
def test_positions_computed_again_after_a_retraction_change_nothing(
    seed: int, count: int, first: int, more: int
) -> None:
    sample = RowSample(seed, 0, count)
    sample.offer(0, first)
    sample.offer(0, first + more)  # everything is prefilled again
    for position in range(first + more, first + more + 20):
        sample.offer(position, position + 1)
    end = first + more + 20
    assert sample.kept(end)[0].tolist() == sample_rows(seed, 0, end, count).tolist()


@given(SEEDS, st.integers(1, 20), st.integers(1, 2000))
def test_a_step_that_runs_ahead_of_the_end_pushes_no_row_out(
    seed: int, count: int, end: int
) -> None:
    sample = RowSample(seed, 0, count)
    sample.offer(0, end)
    sample.offer(end, end + 1)
    assert sample.kept(end)[0].tolist() == sample_rows(seed, 0, end, count).tolist()


@given(SEEDS, st.integers(1, 8), st.lists(st.integers(1, 30), min_size=1, max_size=30))
def test_a_place_always_holds_the_position_that_entered_it_last(
    seed: int, count: int, sizes: list[int]
) -> None:
    sample, written = RowSample(seed, 0, count), {}
    for first, end in pairwise(np.cumsum([0, *sizes]).tolist()):
        positions, places = sample.offer(first, end)
        assert len(set(places.tolist())) == len(places)
        written.update(zip(places.tolist(), positions.tolist(), strict=True))
    kept, places = sample.kept(sum(sizes))
    assert [written[place] for place in places.tolist()] == kept.tolist()
    assert set(written) <= set(range(count + SPARE))


def test_positions_before_the_turn_never_enter() -> None:
    positions, _ = RowSample(1, 50, 8).offer(0, 50)
    assert not len(positions)
