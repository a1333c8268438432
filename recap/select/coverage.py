"""Packing by marginal coverage (ours): two blocks that say the same are worth one.

Blocks compete with the terms they would add, identifiers and lines that nothing kept holds yet, each
by how likely the next turn needs it (``need``), per character.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.select.need import need
from recap.select.pack import Packing, PackRule, Room, fill, ranked
from recap.select.relevance import row_sums

if TYPE_CHECKING:
    from recap.blocks.table import BoolArray, FloatArray, IntArray, TermIndex
    from recap.select.score import Evidence

TOTAL = 2.0**44
"""Weights of all terms sum to this many whole units: sums of them are exact in any order."""

SHORTLIST = 16
"""One in so many candidates stands on the shortlist of the greedy search; affects speed alone."""
LEAST_SHORTLIST = 64


class Open(NamedTuple):
    """What candidates would add to what is kept.

    Attributes:
        starts: int64 ``[blocks + 1]``: where the shared terms of a block begin.
        terms: int64: the open terms that each holds: those of some weight that several candidates hold.
        weight: float64: of each open term; 0 once it is covered.
        alone: float64 ``[blocks]``: weight of the terms that no other candidate holds.
    """

    starts: IntArray
    terms: IntArray
    weight: FloatArray
    alone: FloatArray

    def density(self, price: FloatArray) -> FloatArray:
        """Return what each block would add for its price: float64 ``[blocks]``."""
        shared = row_sums(self.starts, self.weight.take(self.terms))
        return (self.alone + shared) / price


def pack_coverage(evidence: Evidence, score: FloatArray, room: Room) -> Packing:
    """Keep candidates by score in a share of the room, then by marginal coverage in the rest.

    The score of the packing is millionths of the weight of all terms, per character: of a block kept
    for coverage, what it added; of a block left out, what it would still add; 0 for all others. Time
    grows with the entries of the indices, and with the logarithm of a shortlist for each candidate.
    """
    cost_chars = evidence.table.cost_chars
    share = Fraction(str(evidence.settings.recency_share))
    recent = fill(ranked(score, room.candidates), cost_chars, floor(share * room.chars))
    is_kept = room.is_kept.copy()
    is_kept[recent.chosen] = True
    rest = room.candidates[~is_kept[room.candidates]]

    table = evidence.table
    names, lines = term_weights(evidence)
    added = _joined(
        _open(table.index, names, is_kept, rest), _open(table.lines, lines, is_kept, rest)
    )
    price = _price(evidence)
    taken = _greedy(added, rest, cost_chars, price, room.chars - recent.spent_chars)

    chosen = np.array(list(taken), np.int64)
    final = added.density(price)
    final[chosen] = 0
    least = min(taken.values(), default=np.inf)
    passed = rest[final[rest] > least]
    final[chosen] = list(taken.values())
    kept: tuple[tuple[PackRule, IntArray], ...] = (
        ("recent", recent.chosen),
        ("coverage", chosen),
    )
    return Packing(kept, passed, final * (1e6 / TOTAL))


def _price(evidence: Evidence) -> FloatArray:
    """Return what the gain of a block is divided by: its characters, fewer for an important block."""
    cost_chars: FloatArray = np.maximum(evidence.table.cost_chars, 1).astype(np.float64)
    gain = evidence.settings.importance_gain
    return cost_chars / (1 + gain * evidence.graph.importance) if gain else cost_chars


def term_weights(evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Return the weights of identifiers and of lines: two float64 arrays, whole units.

    An identifier that the request names weighs ``request_factor`` times as much. All lines together
    weigh ``line_share``, all identifiers the rest.
    """
    table, settings = evidence.table, evidence.settings
    names, lines = need(table.index, settings), need(table.lines, settings)
    names[evidence.terms] *= settings.request_factor
    return _scaled(names, 1 - settings.line_share), _scaled(lines, settings.line_share)


def _scaled(weight: FloatArray, share: float) -> FloatArray:
    total = float(weight.sum())
    return np.rint(weight * (share * TOTAL / total)) if total else weight


def _open(index: TermIndex, weight: FloatArray, is_kept: BoolArray, candidates: IntArray) -> Open:
    """Return what candidates would add of one kind of terms."""
    terms, lengths = index.terms, np.diff(index.starts)
    is_candidate = np.zeros(len(lengths), np.bool_)
    is_candidate[candidates] = True
    of_candidate = np.repeat(is_candidate, lengths)
    elsewhere = np.bincount(terms[~of_candidate], minlength=index.size)
    holders = index.document_frequency - elsewhere
    weight = weight.copy()
    weight[terms[np.repeat(is_kept, lengths)]] = 0
    alone = row_sums(index.starts, np.where(holders == 1, weight, 0).take(terms))
    alone[~is_candidate] = 0
    is_shared = (holders > 1) & (weight > 0)
    places = np.flatnonzero(is_shared.take(terms) & of_candidate)
    starts = np.searchsorted(places, index.starts)
    # Numbered anew, since the weights of a few open terms stay in the cache and those of all do not.
    number = np.cumsum(is_shared) - 1
    return Open(starts, number.take(terms[places]), weight[is_shared], alone)


def _joined(one: Open, two: Open) -> Open:
    """Return both kinds of terms as one."""
    starts = one.starts + two.starts
    terms = np.empty(starts[-1], np.int64)
    for part, before, offset in (
        (one, two.starts[:-1], 0),
        (two, one.starts[1:], one.weight.size),
    ):
        places = np.arange(part.terms.size) + np.repeat(before, np.diff(part.starts))
        terms[places] = part.terms + offset
    weight = np.concatenate((one.weight, two.weight))
    return Open(starts, terms, weight, one.alone + two.alone)


def _greedy(
    added: Open, candidates: IntArray, cost_chars: IntArray, price: FloatArray, chars: int
) -> dict[int, float]:
    """Return the blocks taken, in order, and the weight for its price that each added.

    Takes again and again the fitting candidate that adds most per character, ties newest first,
    until none fits. What a block adds only falls, so an old value bounds it from above and only the
    block on top of a heap is computed anew (lazy greedy, Minoux 1978). The heap holds a shortlist;
    when its best has come down to the others, all are computed anew at once.

    Args:
        added: What candidates would add; weights of terms that get covered are set to 0.
        candidates: Chronological.
        cost_chars: Cost of every block of the table.
        price: What its gain is divided by.
        chars: What the blocks taken may cost together.
    """
    taken: dict[int, float] = {}
    is_taken = np.zeros(cost_chars.size, np.bool_)
    weight = added.weight
    starts, costs = added.starts.tolist(), cost_chars.tolist()
    alone, prices = added.alone.tolist(), price.tolist()
    ones = np.ones(np.diff(added.starts).max(initial=0))
    while (candidates := candidates[(cost_chars <= chars)[candidates]]).size:
        bounds = added.density(price)[candidates]
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
            row = added.terms[starts[block] : starts[block + 1]]
            gain = (alone[block] + float(weight[row].dot(ones[: row.size]))) / prices[block]
            if gain < -bound:
                heapq.heapreplace(heap, (-gain, key))
                continue
            heapq.heappop(heap)
            weight[row] = 0
            chars -= cost
            taken[block] = gain
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
