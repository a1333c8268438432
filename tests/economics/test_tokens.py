"""Characters per token: robust against reports that say nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.economics import calibrated, tokens_of
from recap.economics.tokens import HIGHEST, LOWEST

ANY = st.one_of(st.floats(), st.integers(-(10**15), 10**15))


def test_the_first_report_is_taken_as_it_is() -> None:
    assert calibrated(3600, 1000) == 3.6


@pytest.mark.parametrize(
    ("chars", "tokens"),
    [
        (0, 1000), (100, 0), (100, 25), (1e9, 1000), (10, 1000), (-4000, 1000), (4000, -1000),
        (float("nan"), 1000), (float("inf"), 1000), (4000, float("nan")),
    ],
)  # fmt: skip
def test_an_absurd_report_changes_nothing(chars: float, tokens: float) -> None:
    assert calibrated(chars, tokens) is None
    assert calibrated(chars, tokens, 3.5) == 3.5


def test_a_ratio_that_went_bad_is_forgotten() -> None:
    assert calibrated(0, 0, float("nan")) is None
    assert calibrated(3600, 1000, 0.0) == 3.6


@given(ANY, ANY, st.one_of(st.none(), st.floats()))
def test_the_ratio_stays_in_bounds(chars: float, tokens: float, before: float | None) -> None:
    ratio = calibrated(chars, tokens, before)
    assert ratio is None or LOWEST <= ratio <= HIGHEST


@given(st.floats(1.5, 11), st.floats(1.5, 11))
def test_it_settles_on_the_ratio_that_is_reported(start: float, true: float) -> None:
    ratio: float | None = start
    distances = []
    for _ in range(30):
        ratio = calibrated(true * 10_000, 10_000, ratio)
        assert ratio is not None
        distances.append(abs(ratio - true))
    assert distances[-1] <= 0.01 * true
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(distances))


def test_tokens_are_rounded_up_and_never_negative() -> None:
    assert [tokens_of(n) for n in (-3, 0, 1, 5, 6)] == [0, 0, 1, 2, 3]
    assert tokens_of(1000, 4.0) == 250


def test_a_ratio_out_of_bounds_is_replaced() -> None:
    assert tokens_of(400, 0.0) == tokens_of(400, float("nan")) == tokens_of(400) == 160
