"""Repeats: later blocks that hold most identifiers of an earlier one (ours)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.graph.runs import runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from recap.blocks.table import BlockTable, TermIndex

FEWEST_IDENTIFIERS = 8
"""A block with fewer is never stale: any longer block on the same matter holds such a handful."""

MOST_REPEATS = 4
"""Later blocks considered per block, the first ones: a file read 1,000 times has 500,000 pairs."""

KEY_HITS = 8
"""Keys a block must share before it is compared in full: it saves most comparisons."""

CHUNK_SHARE, FEWEST_IN_CHUNK = 8, 128
"""Blocks are looked at in chunks, an eighth of those that may be repeated yet, so that few that have
their repeats are still in the lists, and the lists are made anew a logarithmic number of times."""

CELLS = 1 << 18
"""Pairs of blocks whose shared keys are counted at once: 2 MiB."""


class Basis(NamedTuple):
    """What repeats were found in.

    Attributes:
        incidence: Identifier index of the table.
        is_user: bool ``[blocks]``: blocks that are never repeated.
        overlap: Share of a block's identifiers that makes a repeat.
    """

    incidence: TermIndex
    is_user: npt.NDArray[np.bool_]
    overlap: float


class Repeats(NamedTuple):
    """Pairs of blocks of a table of which the later one repeats most of the earlier one.

    Attributes:
        ids: Ids of the table's blocks.
        earlier: int32 ``[pairs]``: index into ``ids``; never a user block.
        later: int32 ``[pairs]``: index into ``ids``, ascending.
        basis: What they were found in; None for pairs from elsewhere.
    """

    ids: tuple[str, ...]
    earlier: npt.NDArray[np.int32]
    later: npt.NDArray[np.int32]
    basis: Basis | None = None


def find_repeats(table: BlockTable, overlap: float, known: Repeats | None = None) -> Repeats:
    """Return the pairs a < b with |I(a) & I(b)| / |I(a)| >= overlap.

    For each a the first ``MOST_REPEATS`` of them, so that a longer table has the same pairs and
    more. Of a's identifiers the newest ones, mostly rare, are its keys, so many that who holds
    enough of a holds ``KEY_HITS`` keys: only blocks that do are compared.

    Args:
        table: Blocks of a session.
        overlap: Share in (0, 1].
        known: Repeats found in a table that begins alike: only later blocks are looked at, for the
            same result.
    """
    basis = Basis(table.index, table.is_user, overlap)
    begin, pairs = 0, np.zeros((0, 2), np.int32)
    if known is not None and known.basis is not None and known.basis.overlap == overlap:
        begin = _shared_rows(known.basis, basis)
        is_held = known.later < begin
        pairs = np.stack((known.earlier[is_held], known.later[is_held]), axis=1)
    search = _Search(basis, np.bincount(pairs[:, 0], minlength=len(table)))
    columns = np.concatenate((pairs, *search.pairs(begin, len(table))))
    return Repeats(table.ids, columns[:, 0], columns[:, 1], basis)


class _Search:
    """State of one pass over the blocks: how many repeats each has."""

    def __init__(self, basis: Basis, repeats: npt.NDArray[np.int64]) -> None:
        index = basis.incidence
        self.starts, self.terms, self.names = index.starts, index.terms, index.size
        self.sizes = np.diff(index.starts)
        self.needed = _needed(self.sizes, basis.overlap)
        self.hits = np.minimum(self.needed, KEY_HITS)
        self.is_open = (self.sizes >= FEWEST_IDENTIFIERS) & ~basis.is_user
        self.is_open &= repeats < MOST_REPEATS
        self.repeats = repeats

    def pairs(self, begin: int, stop: int) -> Iterator[npt.NDArray[np.int32]]:
        """Yield ``[pairs, 2]`` of which the later block lies in ``[begin, stop)``, ascending."""
        while begin < stop:
            is_open = int(np.count_nonzero(self.is_open[:begin]))
            end = min(stop, begin + max(FEWEST_IN_CHUNK, is_open // CHUNK_SHARE))
            lists, bounds = self._lists(begin, end)
            rows = max(1, CELLS // end)
            for start in range(begin, end, rows):
                batch = slice(start, min(end, start + rows))
                found = self._candidates(batch, end, lists, bounds)
                yield self._first(found[self._is_repeat(found)])
            begin = end

    def _lists(self, begin: int, end: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the open blocks before ``end`` by key, for the identifiers of the chunk's blocks."""
        is_asked = np.zeros(self.names, np.bool_)
        is_asked[self.terms[self.starts[begin] : self.starts[end]]] = True
        rows = np.flatnonzero(self.is_open[:end])
        keys = (self.sizes - self.needed + self.hits)[rows]
        entry = runs(self.starts[rows + 1] - keys, keys)
        block = np.repeat(rows, keys)
        is_wanted = is_asked[self.terms[entry]]
        block, term = block[is_wanted], self.terms[entry[is_wanted]]
        bounds = np.concatenate(([0], np.cumsum(np.bincount(term, minlength=self.names))))
        return block[np.argsort(term, kind="stable")], bounds

    def _candidates(
        self,
        batch: slice,
        width: int,
        lists: npt.NDArray[np.int64],
        bounds: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int32]:
        """Return pairs that share enough keys, the later block in the batch; lists end at width."""
        term = self.terms[self.starts[batch.start] : self.starts[batch.stop]]
        counts = bounds[term + 1] - bounds[term]
        rows = batch.stop - batch.start
        cell = np.repeat(np.repeat(np.arange(rows) * width, self.sizes[batch]), counts)
        cell += lists[runs(bounds[term], counts)]
        shared = np.bincount(cell, minlength=rows * width).reshape(rows, width)
        later, earlier = np.nonzero(shared >= np.maximum(self.hits[:width], 1))
        later += batch.start
        is_before = earlier < later
        return np.stack((earlier[is_before], later[is_before]), axis=1).astype(np.int32)

    def _is_repeat(self, pairs: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Return which pairs share enough identifiers."""
        is_held = np.zeros(self.names, np.bool_)
        is_repeat = np.zeros(len(pairs), np.bool_)
        bounds = np.flatnonzero(np.diff(pairs[:, 1], prepend=-1, append=len(self.sizes)))
        for at, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            later, earlier = int(pairs[at, 1]), pairs[at:end, 0]
            held = self.terms[self.starts[later] : self.starts[later + 1]]
            is_held[held] = True
            sizes = self.sizes[earlier]
            hit = is_held[self.terms[runs(self.starts[earlier], sizes)]]
            shared = np.add.reduceat(hit, np.cumsum(sizes) - sizes, dtype=np.int64)
            is_repeat[at:end] = shared >= self.needed[earlier]
            is_held[held] = False
        return is_repeat

    def _first(self, pairs: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the pairs without those of blocks that have their repeats, and count the rest."""
        earlier = pairs[:, 0]
        order = np.argsort(earlier, kind="stable")
        ascending = earlier[order]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order)) - np.searchsorted(ascending, ascending)
        first = pairs[rank + self.repeats[earlier] < MOST_REPEATS]
        self.repeats += np.bincount(first[:, 0], minlength=len(self.repeats))
        self.is_open &= self.repeats < MOST_REPEATS
        return first


def _needed(sizes: npt.NDArray[np.int64], overlap: float) -> npt.NDArray[np.int64]:
    """Return how many identifiers of a block make a repeat."""
    needed: npt.NDArray[np.int64] = np.ceil(overlap * sizes).astype(np.int64)
    needed -= (needed - 1) / np.maximum(sizes, 1) >= overlap  # 0.55 * 20 is above 11
    return needed


def _shared_rows(one: Basis, other: Basis) -> int:
    """Return how many blocks two tables share from their beginning, as far as repeats can tell."""
    rows = min(len(one.is_user), len(other.is_user))
    rows = _shared(one.is_user[:rows], other.is_user[:rows])
    rows = _shared(one.incidence.starts[1 : rows + 1], other.incidence.starts[1 : rows + 1])
    entries = one.incidence.starts[rows]
    same = _shared(one.incidence.terms[:entries], other.incidence.terms[:entries])
    return int(np.searchsorted(one.incidence.starts[: rows + 1], same, side="right")) - 1


def _shared(one: npt.NDArray[np.generic], other: npt.NDArray[np.generic]) -> int:
    differing = np.flatnonzero(one != other)
    return int(differing[0]) if len(differing) else len(one)
