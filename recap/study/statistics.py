"""Means with intervals, paired differences and headroom, resampling sessions. Pure, numpy alone.

Transitions of one session resemble one another, so sessions are what is drawn, not transitions: an
interval says what other sessions of this kind would give. NaN is a turn that says nothing, and is left
out together with what it is paired with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from recap.blocks.table import FloatArray, IntArray

DRAWS = 2_000
SEED = 0
INTERVAL = (0.025, 0.975)

LEAST_ROOM = 1e-6
"""Mean room below which no share of it is stated."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over transitions.

    Attributes:
        n: Transitions that say something.
        sessions: Sessions they are of.
        mean: Their mean.
        median: Their median.
        low, high: 95 % bootstrap interval of the mean; None with fewer than two sessions.
    """

    n: int
    sessions: int
    mean: float
    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Share:
    """A ratio of two means, with its 95 % bootstrap interval as in ``Estimate``."""

    value: float
    low: float | None
    high: float | None


def drawn(sessions: int, seed: int = SEED, draws: int = DRAWS) -> IntArray:
    """Return how often each session is drawn, with replacement: int64 ``[draws, sessions]``."""
    if not sessions:
        return np.zeros((draws, 0), np.int64)
    chances = np.full(sessions, 1 / sessions)
    return np.random.default_rng(seed).multinomial(sessions, chances, size=draws)


def estimate(values: FloatArray, session: IntArray, draws: IntArray) -> Estimate | None:
    """Return the mean of values with its interval; None where all are NaN.

    Args:
        values: float64 ``[n]``, one a transition.
        session: int64 ``[n]``: index of its session.
        draws: See ``drawn``.
    """
    is_told = ~np.isnan(values)
    if not is_told.any():
        return None
    told, of = values[is_told], session[is_told]
    sums, counts = _per_session(told, of, draws.shape[1])
    sessions = int((counts > 0).sum())
    low, high = _interval(draws @ sums, draws @ counts) if sessions > 1 else (None, None)
    return Estimate(len(told), sessions, float(told.mean()), float(np.median(told)), low, high)


def headroom(
    gain: FloatArray, room: FloatArray, session: IntArray, draws: IntArray
) -> Share | None:
    """Return mean gain / mean room: the share of the headroom that was closed (ours).

    1 is the oracle, 0 the reference. None where the oracle is no better than the reference.

    Args:
        gain: float64 ``[n]``: what a method is better than the reference, NaN where it says nothing.
        room: float64 ``[n]``: what the oracle is.
        session: As for ``estimate``.
        draws: As for ``estimate``.
    """
    is_told = ~(np.isnan(gain) | np.isnan(room))
    if not is_told.any() or room[is_told].mean() < LEAST_ROOM:
        return None
    of = session[is_told]
    gains, counts = _per_session(gain[is_told], of, draws.shape[1])
    rooms, _ = _per_session(room[is_told], of, draws.shape[1])
    several = (counts > 0).sum() > 1
    low, high = _interval(draws @ gains, draws @ rooms) if several else (None, None)
    return Share(float(gain[is_told].mean() / room[is_told].mean()), low, high)


def session_means(values: FloatArray, session: IntArray, sessions: int) -> FloatArray:
    """Return the mean of each session's values: float64 ``[sessions]``, NaN where none says any."""
    is_told = ~np.isnan(values)
    sums, counts = _per_session(values[is_told], session[is_told], sessions)
    means = np.full(sessions, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _per_session(
    values: FloatArray, session: IntArray, sessions: int
) -> tuple[FloatArray, FloatArray]:
    """Return the sum of each session's values and their number, as floats."""
    sums = np.bincount(session, values, sessions).astype(np.float64)
    return sums, np.bincount(session, minlength=sessions).astype(np.float64)


def _interval(above: FloatArray, below: FloatArray) -> tuple[float | None, float | None]:
    """Return the interval of the draws' ratios; draws without any value say nothing."""
    is_told = below > LEAST_ROOM
    if not is_told.any():
        return None, None
    low, high = np.quantile(above[is_told] / below[is_told], INTERVAL)
    return float(low), float(high)
