"""Which positions of a completed turn are sampled as query rows (ours).

A position's priority is a hash of (seed, absolute position) and nothing else. The sample is the
positions of least priority, so whoever sees the positions in pieces, in any order and in several
processes, keeps the same ones, and a seed gives the same rows on every computer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recap.transcript.model import digest

if TYPE_CHECKING:
    import numpy.typing as npt

# SplitMix64 (Steele, Lea, Flood 2014): its finalizer maps 64 bits one to one.
GAMMA = 0x9E3779B97F4A7C15
MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LAST_SHIFT = 31
MASK = 2**64 - 1


def row_seed(session: str, turn_key: str) -> int:
    """Return the seed of a turn's rows in ``[0, 2**64)``: an unkeyed hash, equal everywhere."""
    return int.from_bytes(digest(session, turn_key)[:8], "little")


def priorities(seed: int, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return the priority of each absolute position: uint64, shaped like ``positions``.

    Element n of SplitMix64's stream from ``seed``; two positions of a seed never tie.
    """
    state = np.asarray(positions).astype(np.uint64) * np.uint64(GAMMA)
    state += np.uint64((seed + GAMMA) & MASK)
    for shift, factor in MIXERS:
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    mixed: npt.NDArray[np.uint64] = state ^ (state >> np.uint64(LAST_SHIFT))
    return mixed


def sample_rows(seed: int, start: int, end: int, count: int) -> npt.NDArray[np.int64]:
    """Return the ``count`` positions in ``[start, end)`` of least priority, ascending.

    All of them where there are no more than ``count``: int64 ``[min(count, end - start)]``.

    Raises:
        ValueError: ``start`` or ``count`` is negative, or ``end`` lies before ``start``.
    """
    if not 0 <= start <= end or count < 0:
        raise ValueError(f"no rows to sample: {count} of positions {start} to {end}")
    positions = np.arange(start, end, dtype=np.int64)
    if len(positions) <= count:
        return positions
    if count == 0:
        return positions[:0]
    least = np.argpartition(priorities(seed, positions), count - 1)[:count]
    return np.sort(positions[least])


def edge_rows(
    seed: int, positions: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64], most: int
) -> npt.NDArray[np.bool_]:
    """Return which sampled rows measure support edges: at most ``most`` of one segment.

    Args:
        seed: Seed of the turn's rows.
        positions: int64 ``[w]``: sampled positions, ascending.
        offsets: int64 ``[s + 1]``: segment i spans positions ``[offsets[i], offsets[i + 1])``.
        most: Rows of a segment that are taken: those of least priority.

    Returns:
        bool ``[w]``; False for a row that lies in no segment.
    """
    segment = np.searchsorted(offsets, positions, side="right") - 1
    order = np.lexsort((priorities(seed, positions), segment))
    grouped = segment[order]
    rank = np.arange(len(order)) - np.searchsorted(grouped, grouped)
    is_taken = np.zeros(len(positions), np.bool_)
    is_taken[order] = (rank < most) & (grouped >= 0) & (grouped < len(offsets) - 1)
    return is_taken
