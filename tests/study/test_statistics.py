"""Estimates against plain loops, and what holds of them whatever the numbers."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.study.statistics import drawn, estimate, headroom, session_means

NAN = float("nan")
VALUES = st.one_of(st.just(NAN), st.floats(-1, 1, width=32))
SAMPLES = st.lists(st.tuples(st.integers(0, 6), VALUES, VALUES), min_size=1, max_size=40)
SESSIONS = 7


def arrays(
    samples: list[tuple[int, float, float]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    session, one, two = zip(*samples, strict=True)
    return np.array(session, np.int64), np.array(one, np.float64), np.array(two, np.float64)


def quantile(values: list[float], share: float) -> float:
    """The quantile between neighbours, as numpy and R's type 7 have it."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


@given(SAMPLES)
def test_an_estimate_is_what_plain_loops_give(samples: list[tuple[int, float, float]]) -> None:
    session, values, _ = arrays(samples)
    draws = drawn(SESSIONS, draws=50)
    found = estimate(values, session, draws)
    told = [(s, v) for s, v, _ in samples if not math.isnan(v)]
    if not told:
        assert found is None
        return
    assert found is not None
    only = [v for _, v in told]
    assert (found.n, found.sessions) == (len(told), len({s for s, _ in told}))
    assert found.mean == pytest.approx(statistics.fmean(only), abs=1e-12)
    assert found.median == pytest.approx(statistics.median(only), abs=1e-12)
    if found.sessions < 2:
        assert (found.low, found.high) == (None, None)
        return
    means = []
    for draw in draws.tolist():
        taken = [v for s, v in told for _ in range(draw[s])]
        if taken:
            means.append(statistics.fmean(taken))
    assert found.low == pytest.approx(quantile(means, 0.025), abs=1e-9)
    assert found.high == pytest.approx(quantile(means, 0.975), abs=1e-9)


@given(SAMPLES)
def test_a_method_differs_from_itself_by_nothing_at_all(
    samples: list[tuple[int, float, float]],
) -> None:
    session, values, _ = arrays(samples)
    found = estimate(values - values, session, drawn(SESSIONS))
    if found is not None and found.sessions > 1:
        assert (found.mean, found.median, found.low, found.high) == (0, 0, 0, 0)


@given(SAMPLES)
def test_what_says_nothing_is_left_out_with_what_it_is_paired_with(
    samples: list[tuple[int, float, float]],
) -> None:
    session, one, two = arrays(samples)
    found = estimate(one - two, session, drawn(SESSIONS))
    pairs = [(a, b) for _, a, b in samples if not (math.isnan(a) or math.isnan(b))]
    assert (found.n if found else 0) == len(pairs)
    if found is not None:
        assert found.mean == pytest.approx(statistics.fmean(a - b for a, b in pairs), abs=1e-12)


@given(SAMPLES, st.randoms(use_true_random=False))
def test_the_order_of_transitions_does_not_matter(
    samples: list[tuple[int, float, float]], random: object
) -> None:
    session, values, _ = arrays(samples)
    order = np.array(random.sample(range(len(samples)), len(samples)))  # type: ignore[attr-defined]
    one = estimate(values, session, drawn(SESSIONS))
    two = estimate(values[order], session[order], drawn(SESSIONS))
    if one is None or two is None:
        assert one == two
        return
    assert (one.n, one.sessions, one.median) == (two.n, two.sessions, two.median)
    assert one.mean == pytest.approx(two.mean, abs=1e-12)
    if one.low is not None:
        assert one.low == pytest.approx(two.low, abs=1e-12)


@given(SAMPLES)
def test_the_oracle_closes_all_headroom_and_the_reference_none(
    samples: list[tuple[int, float, float]],
) -> None:
    session, base, oracle = arrays(samples)
    room = oracle - base
    whole = headroom(room, room, session, drawn(SESSIONS))
    nothing = headroom(base - base, room, session, drawn(SESSIONS))
    has_room = np.nanmean(room) >= 1e-6 if not np.isnan(room).all() else False
    assert (whole is not None) == (nothing is not None) == has_room
    if whole is not None and nothing is not None:
        assert (whole.value, nothing.value) == (1, 0)
        assert {whole.low, whole.high} <= {1, None}
        assert {nothing.low, nothing.high} <= {0, None}


def test_headroom_is_of_means_not_a_mean_of_ratios() -> None:
    session = np.array([0, 1])
    gain, room = np.array([0.1, 0.0]), np.array([0.1, 0.9])
    found = headroom(gain, room, session, drawn(2))
    assert found is not None
    assert found.value == pytest.approx(0.1)


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """200 studies of 40 sessions whose transitions share their session's level."""
    rng = np.random.default_rng(5)
    draws = drawn(40, draws=400)
    session = np.repeat(np.arange(40), 6)
    hits, plain_hits = 0, 0
    for _ in range(200):
        values = np.repeat(rng.normal(0.3, 0.2, 40), 6) + rng.normal(0, 0.1, 240)
        found = estimate(values, session, draws)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.3 <= found.high
        spread = 1.96 * values.std() / len(values) ** 0.5
        plain_hits += abs(values.mean() - 0.3) <= spread
    assert 0.88 <= hits / 200 <= 0.99
    assert plain_hits / 200 < 0.75, "as if transitions were independent: far too narrow"


def test_sessions_are_drawn_with_replacement_from_a_seed() -> None:
    draws = drawn(9, seed=3, draws=500)
    assert draws.shape == (500, 9)
    assert (draws.sum(axis=1) == 9).all()
    assert draws.max() > 1
    assert np.array_equal(draws, drawn(9, seed=3, draws=500))
    assert not np.array_equal(draws, drawn(9, seed=4, draws=500))
    assert drawn(0).shape[1] == 0


def test_session_means_leave_out_what_says_nothing() -> None:
    means = session_means(np.array([1.0, NAN, 3.0, NAN]), np.array([0, 0, 0, 1]), 3)
    assert means[0] == 2
    assert np.isnan(means[1:]).all()
