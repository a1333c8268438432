"""Filling a budget by a fixed order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recap.select.pack import fill, ranked

COSTS = st.lists(st.integers(0, 30), max_size=12)


def filled(costs: list[int], chars: int) -> tuple[list[int], list[int], int]:
    done = fill(np.arange(len(costs)), np.array(costs, np.int64), chars)
    return done.chosen.tolist(), done.passed.tolist(), done.spent_chars


def test_filling_goes_on_past_a_block_that_does_not_fit() -> None:
    assert filled([4, 9, 3, 8], 8) == ([0, 2], [1], 7)


def test_nothing_was_passed_after_the_last_block_taken() -> None:
    assert filled([4, 9, 9], 5) == ([0], [], 4)


def test_a_budget_already_overrun_takes_nothing_not_even_what_is_free() -> None:
    assert filled([0, 1], -1) == ([], [], 0)


def test_a_spent_budget_still_takes_what_is_free() -> None:
    assert filled([1, 0, 1, 0], 0) == ([1, 3], [0, 2], 0)


def test_nothing_fills_nothing() -> None:
    assert filled([], 10) == ([], [], 0)


@given(costs=COSTS, chars=st.integers(-5, 200))
def test_a_step_more_room_never_costs_less(costs: list[int], chars: int) -> None:
    poorer, richer = filled(costs, chars)[2], filled(costs, chars + 1)[2]
    assert poorer <= richer


@given(costs=COSTS, chars=st.integers(-5, 200))
def test_a_block_is_left_out_only_when_it_did_not_fit(costs: list[int], chars: int) -> None:
    chosen, _, spent = filled(costs, chars)
    assert spent == sum(costs[i] for i in chosen) <= max(chars, 0)
    left = chars
    for i, cost in enumerate(costs):
        assert (i in chosen) == (cost <= left)
        left -= cost if i in chosen else 0


def test_equal_scores_rank_chronologically() -> None:
    score = np.tile([1.0, 2.0], 50)
    assert ranked(score, np.arange(100)).tolist() == [*range(1, 100, 2), *range(0, 100, 2)]
