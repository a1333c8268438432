"""Runs of indices side by side: how rows of a compressed matrix are gathered without a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def ranges(starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return ``start, start + 1, ...`` for each start, ``size`` of them, one run after the other."""
    shifts = starts - (np.cumsum(sizes) - sizes)
    runs: npt.NDArray[np.int64] = np.arange(int(sizes.sum())) + np.repeat(shifts, sizes)
    return runs
