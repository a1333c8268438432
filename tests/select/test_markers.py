from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.segment import Block
from recap.select.markers import MARKER_CHARS, MARKER_SHARE, Gap, gaps, marker_text, merge


def blocks(turns: list[int]) -> list[Block]:
    return [Block(f"{i:016x}", "reply", (), 1, turn) for i, turn in enumerate(turns)]


def test_gaps_are_the_runs_between_kept_blocks():
    found = gaps(blocks([0, 0, 1, 1, 2, 2]), [1, 4])
    assert found == [Gap(0, 1, 0, 0), Gap(2, 2, 1, 1), Gap(5, 1, 2, 2)]


def test_nothing_dropped_leaves_no_gap():
    assert gaps(blocks([0, 0]), [0, 1]) == []
    assert gaps([], []) == []


def test_a_marker_says_how_many_blocks_of_which_turn():
    assert marker_text(Gap(0, 1, 0, 0)) == "[recap: 1 block of turn 1 omitted]"
    assert marker_text(Gap(0, 12, 2, 4)) == "[recap: 12 blocks of turns 3-5 omitted]"


@given(st.integers(1, 10**12), st.integers(0, 10**9), st.integers(0, 10**9))
def test_no_marker_is_longer_than_its_limit(count: int, first: int, more: int):
    assert len(marker_text(Gap(0, count, first, first + more))) <= MARKER_CHARS


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 5000))
def test_markers_stay_within_their_share_and_count_every_dropped_block(
    is_kept: list[bool], budget: int
):
    kept = [i for i, keep in enumerate(is_kept) if keep]
    merged = merge(gaps(blocks(list(range(len(is_kept)))), kept), budget)
    assert sum(len(marker_text(gap)) for gap in merged) * MARKER_SHARE <= budget
    if merged:
        assert sum(gap.blocks for gap in merged) == is_kept.count(False)
        assert [gap.first for gap in merged] == sorted(gap.first for gap in merged)


def test_small_gaps_join_the_next_large_one():
    found = [Gap(0, 1, 0, 0), Gap(3, 9, 1, 2), Gap(20, 2, 5, 5)]
    assert merge(found, MARKER_SHARE * MARKER_CHARS) == [Gap(3, 12, 0, 5)]
