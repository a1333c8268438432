from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.capture.sampling import edge_rows, priorities, row_seed, sample_rows

seeds = st.integers(0, 2**64 - 1)
BINS = 16
CHI_SQUARE_BOUND = 45.0  # 15 degrees of freedom: exceeded by chance once in 13,000


class Streaming:
    """The engine's way: it sees positions in chunks and keeps the best so far."""

    def __init__(self, seed: int, count: int) -> None:
        self.seed, self.count = seed, count
        self.kept: list[tuple[int, int]] = []

    def see(self, positions: np.ndarray) -> None:
        drawn = priorities(self.seed, positions).tolist()
        for position, priority in zip(positions.tolist(), drawn, strict=True):
            if len(self.kept) < self.count or priority < self.kept[-1][0]:
                self.kept = sorted([*self.kept, (priority, position)])[: self.count]


def stream(seed: int, step: int) -> int:
    """Return element ``step`` of SplitMix64 as published, in whole numbers of Python."""
    mask = 2**64 - 1
    z = (seed + (step + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_the_priorities_of_seed_zero_are_the_published_ones() -> None:
    first = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert priorities(0, np.arange(3)).tolist() == first


@given(seeds, st.lists(st.integers(0, 2**40), max_size=20))
def test_a_priority_is_the_same_in_whole_numbers(seed: int, positions: list[int]) -> None:
    drawn = priorities(seed, np.asarray(positions, np.int64))
    assert drawn.dtype == np.uint64
    assert drawn.tolist() == [stream(seed, position) for position in positions]


def test_a_seed_is_the_same_in_another_process() -> None:
    code = "from recap.capture.sampling import row_seed; print(row_seed('s', 't'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == row_seed("s", "t") == 5345274115986919778


def test_sessions_and_turns_have_seeds_of_their_own() -> None:
    found = {row_seed(session, turn) for session in ("", "a", "ab") for turn in ("", "b", "ab")}
    assert len(found) == 9
    assert all(0 <= seed < 2**64 for seed in found)


@given(seeds, st.integers(0, 500), st.integers(0, 300), st.integers(0, 80), st.data())
def test_a_stream_in_any_chunks_keeps_the_same_rows(
    seed: int, start: int, length: int, count: int, data: st.DataObject
) -> None:
    chosen = sample_rows(seed, start, start + length, count)
    streaming = Streaming(seed, count) if count else None
    cuts = data.draw(st.lists(st.integers(0, length), max_size=6))
    bounds = [0, *sorted(cuts), length]
    chunks = [np.arange(a, b) + start for a, b in itertools.pairwise(bounds)]
    for chunk in data.draw(st.permutations(chunks)):
        if streaming:
            streaming.see(chunk)
    kept = sorted(position for _, position in streaming.kept) if streaming else []
    assert chosen.tolist() == kept
    assert chosen.dtype == np.int64


@given(seeds, st.integers(0, 500), st.integers(0, 300), st.integers(0, 80))
def test_rows_are_ascending_and_inside_and_as_many_as_asked(
    seed: int, start: int, length: int, count: int
) -> None:
    chosen = sample_rows(seed, start, start + length, count)
    assert len(chosen) == min(count, length)
    assert (np.diff(chosen) > 0).all()
    assert ((chosen >= start) & (chosen < start + length)).all()


def test_rows_spread_evenly_over_the_turn() -> None:
    length, count, turns = 1600, 64, 200
    counts = np.zeros(BINS)
    for turn in range(turns):
        chosen = sample_rows(row_seed("session", str(turn)), 4000, 4000 + length, count)
        counts += np.bincount((chosen - 4000) * BINS // length, minlength=BINS)
    expected = count * turns / BINS
    assert ((counts - expected) ** 2 / expected).sum() < CHI_SQUARE_BOUND


def test_neighbouring_positions_are_drawn_independently() -> None:
    drawn = priorities(row_seed("s", "t"), np.arange(20_000)) >> np.uint64(60)
    pairs = np.bincount((drawn[:-1] * np.uint64(16) + drawn[1:]).astype(np.int64), minlength=256)
    expected = len(drawn) / 256
    assert ((pairs - expected) ** 2 / expected).sum() < 360  # 255 degrees of freedom


@pytest.mark.parametrize(("start", "end", "count"), [(-1, 5, 3), (5, 4, 3), (0, 5, -1)])
def test_rows_of_no_range_are_refused(start: int, end: int, count: int) -> None:
    with pytest.raises(ValueError, match="no rows to sample"):
        sample_rows(0, start, end, count)


@given(
    seeds,
    st.sets(st.integers(0, 120), max_size=60).map(sorted),
    st.lists(st.integers(0, 120), min_size=1, max_size=9).map(sorted),
    st.integers(0, 5),
)
def test_a_segment_measures_edges_with_its_rows_of_least_priority(
    seed: int, positions: list[int], offsets: list[int], most: int
) -> None:
    rows = np.asarray(positions, np.int64)
    taken = edge_rows(seed, rows, np.asarray(offsets, np.int64), most)
    expected: set[int] = set()
    for start, end in itertools.pairwise(offsets):
        inside = [position for position in positions if start <= position < end]
        expected.update(sorted(inside, key=lambda position: stream(seed, position))[:most])
    assert taken.dtype == np.bool_
    assert set(rows[taken].tolist()) == expected
