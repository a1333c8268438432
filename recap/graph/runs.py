"""Runs of consecutive numbers: where the lists of some rows lie in a compressed array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def runs(starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return ``start, start + 1, ...`` for each start, ``size`` of them, one run after the other."""
    shifts = starts - (np.cumsum(sizes) - sizes)
    numbers: npt.NDArray[np.int64] = np.arange(int(sizes.sum())) + np.repeat(shifts, sizes)
    return numbers
