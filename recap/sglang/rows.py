"""Which query rows of a request are kept while its tokens stream by.

The rows are those of ``recap.capture.sampling.sample_rows`` at the end, whatever came in which pieces:
a position's priority is a hash of (seed, position), and the least ones stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recap.capture.sampling import priorities

if TYPE_CHECKING:
    import numpy.typing as npt

    IntArray = npt.NDArray[np.int64]

SPARE = 1
"""Places beside the rows wanted: a step that runs ahead of a request's end enters one row that does
not belong to it, and must not push out one that does."""

_AHEAD = 1024
_NONE = np.empty(0, np.int64)


class RowSample:
    """The rows of one request: at most ``count + SPARE`` positions and the place of each.

    A place is a number in ``[0, count + SPARE)``: a row of the request's part of the store.
    """

    def __init__(self, seed: int, start: int, count: int) -> None:
        """Sample ``count`` positions from ``start`` on."""
        self._seed = seed
        self._start = start
        self._count = count
        self._positions = _NONE
        self._priorities = np.empty(0, np.uint64)
        self._places = _NONE
        self._worst = 0
        self._ahead = (-1, self._priorities)

    def offer(self, first: int, end: int) -> tuple[IntArray, IntArray]:
        """Take what belongs to the sample of the positions ``[first, end)``, seen before or not.

        Returns:
            int64 ``[m]`` positions that entered, and int64 ``[m]`` the place of each.
        """
        first = max(first, self._start)
        if first >= end or (end - first == 1 and self._is_beaten(first)):
            return _NONE, _NONE
        fresh = np.setdiff1d(np.arange(first, end, dtype=np.int64), self._positions)
        positions = np.concatenate((self._positions, fresh))
        priority = np.concatenate((self._priorities, priorities(self._seed, fresh)))
        least = np.argsort(priority)[: self._count + SPARE]
        held = len(self._positions)
        stay, enter = least[least < held], least[least >= held]
        places = np.concatenate((self._places[stay], self._free(stay)[: len(enter)]))
        order = np.concatenate((stay, enter))
        self._positions, self._priorities = positions[order], priority[order]
        self._places = places
        self._worst = int(self._priorities.max(initial=0))
        return self._positions[len(stay) :], places[len(stay) :]

    def kept(self, end: int) -> tuple[IntArray, IntArray]:
        """Return the sample of ``[start, end)``: positions, ascending, and the place of each."""
        inside = np.flatnonzero(self._positions < end)
        least = inside[np.argsort(self._priorities[inside])[: self._count]]
        least = least[np.argsort(self._positions[least])]
        return self._positions[least], self._places[least]

    def _free(self, stay: IntArray) -> IntArray:
        every = np.arange(self._count + SPARE, dtype=np.int64)
        return np.setdiff1d(every, self._places[stay], assume_unique=True)

    def _is_beaten(self, position: int) -> bool:
        """Return whether a single position has no chance: the usual case of a long answer."""
        if len(self._positions) <= self._count:
            return False
        page, ahead = self._ahead
        if position // _AHEAD != page:
            page = position // _AHEAD
            span = np.arange(page * _AHEAD, (page + 1) * _AHEAD, dtype=np.int64)
            ahead = priorities(self._seed, span)
            self._ahead = page, ahead
        return int(ahead[position % _AHEAD]) > self._worst
