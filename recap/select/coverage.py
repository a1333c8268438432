"""Packing by marginal coverage (ours): two blocks that say the same are worth one.

Half of the room goes to the newest blocks, since the next turn mostly continues the last one. The
other half goes to the blocks that add most identifiers which nothing kept holds yet, per character.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.select.pack import Packing, Room, fill, ranked
from recap.select.relevance import idf, row_sums, units

if TYPE_CHECKING:
    from recap.blocks.table import BoolArray, FloatArray, Int32Array, IntArray
    from recap.select.score import Evidence

ACT_BONUS = 2.0
"""What each block in which the agent itself wrote an identifier adds to its weight of 1 (ours)."""
ACTS_COUNTED = 3
AGE_DECAY = 2.0
"""An identifier not used since the session began weighs exp(-AGE_DECAY) of a fresh one (ours)."""
REQUEST_FACTOR = 4.0
"""Weight of an identifier that the request names, relative to others (ours)."""

SHORTLIST = 16
"""One in so many candidates stands on the shortlist of the greedy search; affects speed alone."""
LEAST_SHORTLIST = 64


class Rows(NamedTuple):
    """Identifiers of blocks in compressed rows: b's are ``terms[starts[b]:starts[b + 1]]``."""

    starts: IntArray
    terms: IntArray | Int32Array

    def of(self, mask: BoolArray) -> IntArray | Int32Array:
        """Return the entries of the masked blocks, in order."""
        return self.terms[np.repeat(mask, np.diff(self.starts))]


def pack_coverage(evidence: Evidence, score: FloatArray, room: Room) -> Packing:
    """Keep candidates by score in a share of the room, then by marginal coverage in the rest.

    The score of the packing is identifier weight per character: of a block kept for coverage, what
    it added; of a block left out, what it would still add; 0 for all others. Time grows with the
    entries of the index, and with the logarithm of a shortlist for each candidate.
    """
    cost_chars = evidence.table.cost_chars
    share = Fraction(str(evidence.settings.recency_share))
    recent = fill(ranked(score, room.candidates), cost_chars, floor(share * room.chars))
    is_kept = room.is_kept.copy()
    is_kept[recent.chosen] = True
    rest = room.candidates[~is_kept[room.candidates]]

    weight = identifier_weight(evidence)
    rows = Rows(evidence.table.index.starts, evidence.table.index.terms)
    weight[rows.of(is_kept)] = 0
    rows = _uncovered(rows, weight, rest)
    taken = _greedy(rows, weight, rest, cost_chars, room.chars - recent.spent_chars)

    chosen = np.array(list(taken), np.int64)
    added = density(rows, weight, cost_chars)
    least = min(taken.values(), default=np.inf)
    passed = rest[added[rest] > least]
    added[chosen] = list(taken.values())
    return Packing((("recent", recent.chosen), ("coverage", chosen)), passed, added)


def identifier_weight(evidence: Evidence) -> FloatArray:
    """Return idf(w) * p(w) of every identifier: float64 ``[m]``, in whole units.

    p(w), how likely the next turn needs w, is proportional to (1 + 2 min(act(w), 3)) *
    exp(-2 pos(w)) * (4 if w is in the request). act(w) counts the blocks in which the agent itself
    wrote w; pos(w) is the distance of its last occurrence from the end, 0 newest to 1 oldest.
    """
    index, last = evidence.table.index, len(evidence.table) - 1
    of_last_use = np.exp(-AGE_DECAY * (last - np.arange(last + 1)) / max(last, 1))
    acts = 1 + ACT_BONUS * np.minimum(index.acts, ACTS_COUNTED)
    weight = idf(index) * acts * of_last_use.take(index.last_use)
    weight[evidence.terms] *= REQUEST_FACTOR
    return units(weight)


def density(rows: Rows, weight: FloatArray, cost_chars: IntArray) -> FloatArray:
    """Return the summed identifier weights of each block per character: float64 ``[blocks]``."""
    return row_sums(rows.starts, weight.take(rows.terms)) / np.maximum(cost_chars, 1)


def _uncovered(rows: Rows, weight: FloatArray, candidates: IntArray) -> Rows:
    """Return the rows of the candidates without identifiers of weight 0; other rows are empty."""
    is_candidate = np.zeros(len(rows.starts) - 1, np.bool_)
    is_candidate[candidates] = True
    is_open = np.repeat(is_candidate, np.diff(rows.starts)) & (weight > 0).take(rows.terms)
    lengths = row_sums(rows.starts, is_open).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return Rows(starts, rows.terms[is_open].astype(np.int64))


def _greedy(
    rows: Rows, weight: FloatArray, candidates: IntArray, cost_chars: IntArray, chars: int
) -> dict[int, float]:
    """Return the blocks taken, in order, and the weight per character that each added.

    Takes again and again the fitting candidate that adds most per character, ties newest first,
    until none fits. What a block adds only falls, so an old value bounds it from above and only the
    block on top of a heap is computed anew (lazy greedy, Minoux 1978). The heap holds a shortlist;
    when its best has come down to the others, all are computed anew at once.

    Args:
        rows: Uncovered identifiers of the candidates.
        weight: Of each identifier; those that get covered are set to 0.
        candidates: Chronological.
        cost_chars: Cost of every block of the table.
        chars: What the blocks taken may cost together.
    """
    taken: dict[int, float] = {}
    is_taken = np.zeros(cost_chars.size, np.bool_)
    starts, costs = rows.starts.tolist(), cost_chars.tolist()
    ones = np.ones(np.diff(rows.starts).max(initial=0))
    while (candidates := candidates[(cost_chars <= chars)[candidates]]).size:
        bounds = density(rows, weight, cost_chars)[candidates]
        if not bounds.any():
            newest = fill(candidates[::-1], cost_chars, chars).chosen
            return taken | dict.fromkeys(newest.tolist(), 0.0)
        heap, least = _shortlist(bounds, candidates)
        while heap and heap[0][0] <= -least:
            bound, key = heap[0]
            block = -key
            cost = costs[block]
            if cost > chars:
                heapq.heappop(heap)
                continue
            row = rows.terms[starts[block] : starts[block + 1]]
            added = float(weight[row].dot(ones[: row.size])) / max(cost, 1)
            if added < -bound:
                heapq.heapreplace(heap, (-added, key))
                continue
            heapq.heappop(heap)
            weight[row] = 0
            chars -= cost
            taken[block] = added
            is_taken[block] = True
        candidates = candidates[~is_taken[candidates]]
    return taken


def _shortlist(bounds: FloatArray, candidates: IntArray) -> tuple[list[tuple[float, int]], float]:
    """Return a heap of (-bound, -block) of the best candidates, and the least bound on it."""
    listed = min(bounds.size, bounds.size // SHORTLIST + LEAST_SHORTLIST)
    least = float(np.partition(bounds, -listed)[-listed])
    is_listed = bounds >= least
    keys = -candidates[is_listed]
    heap = list(zip((-bounds[is_listed]).tolist(), keys.tolist(), strict=True))
    heapq.heapify(heap)
    return heap, least
