"""The observer without a model: a block was used when the agent wrote its identifiers again (ours).

Second stage of the flow for closed APIs: blocks in, one ``TurnObservation`` per completed turn out.
It costs milliseconds. It sees reuse in text, not attention: a block that was read and never named
again counts as unused.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.graph.distinct import distinct
from recap.graph.fold import TurnUse, fold
from recap.graph.repeats import find_repeats
from recap.graph.runs import runs
from recap.graph.state import ContextGraph

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from recap.blocks.table import BlockTable
    from recap.config import Settings
    from recap.graph.observation import TurnObservation
    from recap.graph.repeats import Repeats

OBSERVER = "reuse"

RECOUNT_GROWTH = 1.125
"""Identifier weights are counted anew when a session has grown by this factor. Counting at every
turn would cost turns x identifiers; so the weights lag by an eighth and the cost stays linear."""

DENSE_SHARE = 16
"""Where a turn wrote what stands in more than a sixteenth of the blocks, a sum for each block costs
less than to sort those that have one. The sums are the same."""


def build_graph(
    table: BlockTable,
    settings: Settings,
    *,
    turns: int | None = None,
    graph: ContextGraph | None = None,
    repeats: Repeats | None = None,
) -> ContextGraph:
    """Return the graph of a session after its completed turns.

    Args:
        table: Blocks of the session.
        settings: alpha, theta and the overlap that makes a block stale.
        turns: How many turns are completed, from the first on; all that the table holds if None.
        graph: Graph of the session's first turns, to go on from; the result is the same as
            without it.
        repeats: ``find_repeats`` of this table, or of one that begins alike, so that only what is
            new is looked at; the result is the same as without it.
    """
    graph = ContextGraph.empty(OBSERVER) if graph is None else graph
    last = turn_count(table) if turns is None else min(turns, turn_count(table))
    if graph.turns >= last:
        return graph
    repeats = find_repeats(table, settings.stale_overlap, repeats)
    return fold(graph, turn_uses(table, range(graph.turns, last)), repeats, settings)


def turn_count(table: BlockTable) -> int:
    """Return how many turns a table's blocks belong to."""
    return int(table.turn[-1]) + 1 if len(table) else 0


def observe_turns(table: BlockTable, turns: range | None = None) -> Iterator[TurnObservation]:
    """Yield what each completed turn reused, of all blocks up to its end.

    The use of a block is the share of its identifiers that the agent itself wrote after it in the
    turn; a block of the turn leans on an earlier one with the share of its identifiers whose latest
    earlier occurrence lies there. Both shares are weighted by idf(w) = log(1 + N / df(w)), counted
    over the blocks up to the end of the turn, or a little less: what follows the turn changes
    nothing.

    Args:
        table: Blocks of the session.
        turns: Turn numbers, ascending; all turns of the table if None.
    """
    return (use.observation(table.ids) for use in turn_uses(table, turns))


def turn_uses(table: BlockTable, turns: range | None = None) -> Iterator[TurnUse]:
    """Yield the same as ``observe_turns`` without what was not used.

    A few passes over the identifiers up to the end of the last turn, and then what the turns wrote.
    """
    turns = range(turn_count(table)) if turns is None else turns
    ends = np.searchsorted(table.turn, np.arange(turns.stop), side="right")
    bounds = [0, *ends.tolist()]
    counts = _recounts(ends)
    incidence = _incidence(table, bounds[turns.start], bounds[-1])
    weight, total = np.zeros(0), np.zeros(bounds[-1])  # of identifiers; of all those of a block
    counted = known = 0
    for turn in turns:
        start, end = bounds[turn : turn + 2]
        latest = counts[bisect_right(counts, end) - 1]
        if latest > counted:
            counted, known, weight = latest, 0, _idf(incidence, latest)
        total[known:end] = _weights(incidence, weight, known, end)
        known = end
        rows, use = _use(incidence, range(start, end), weight)
        later, earlier, mass = _support(incidence, range(start, end), weight)
        yield TurnUse(
            turn,
            end,
            rows,
            _share(use, total[rows]),
            later,
            earlier,
            _share(mass, total[later]),
        )


def _recounts(ends: npt.NDArray[np.int64]) -> list[int]:
    """Return how many blocks identifiers are counted over, each time; 0 at first."""
    counts, turn = [0], 0
    while turn < len(ends):
        counts.append(int(ends[turn]))
        turn = int(np.searchsorted(ends, max(1, RECOUNT_GROWTH * counts[-1])))
    return counts


class _Incidence(NamedTuple):
    """Entries (block, identifier) up to a turn's end, and the blocks that hold an identifier.

    Attributes:
        starts: int64 ``[blocks + 1]``: where the entries of a block begin.
        block, term: int64, int32 ``[nnz]``: what an entry stands for.
        wrote: bool ``[nnz]``: the agent itself wrote it.
        size: Number of identifiers, m.
        first: The first entry of the turns that are asked for.
        posting_starts: int64 ``[m + 1]``: where the postings of an identifier begin.
        posting: int64: blocks that hold an identifier, ascending; only of identifiers that occur
            from ``first`` on.
        place: int64 ``[nnz - first]``: where an entry from ``first`` on stands among the postings.
    """

    starts: npt.NDArray[np.int64]
    block: npt.NDArray[np.int64]
    term: npt.NDArray[np.int32]
    wrote: npt.NDArray[np.bool_]
    size: int
    first: int
    posting_starts: npt.NDArray[np.int64]
    posting: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]

    def entries(self, start: int, end: int) -> slice:
        """Return where the entries of blocks ``[start, end)`` lie."""
        return slice(int(self.starts[start]), int(self.starts[end]))


def _incidence(table: BlockTable, begin: int, end: int) -> _Incidence:
    """Return the entries of the first ``end`` blocks, with postings for those from ``begin`` on."""
    index = table.index
    starts = index.starts[: end + 1]
    first, stop = int(starts[begin]), int(starts[end])
    term, block = index.terms[:stop], np.repeat(np.arange(end), np.diff(starts))
    is_asked = np.zeros(index.size, np.bool_)
    is_asked[term[first:]] = True
    asked = np.flatnonzero(is_asked[term])
    order = np.argsort(term[asked], kind="stable")
    place = np.empty(len(asked), np.int64)
    place[order] = np.arange(len(asked))
    counts = np.bincount(term[asked], minlength=index.size)
    return _Incidence(
        starts=starts,
        block=block,
        term=term,
        wrote=index.wrote[:stop],
        size=index.size,
        first=first,
        posting_starts=np.concatenate(([0], np.cumsum(counts))),
        posting=block[asked[order]],
        place=place[len(asked) - (stop - first) :],  # the last ones: all of them were asked for
    )


def _idf(incidence: _Incidence, blocks: int) -> npt.NDArray[np.float64]:
    """Return the weight of each identifier by its frequency in the first blocks."""
    term = incidence.term[incidence.entries(0, blocks)]
    frequency = np.bincount(term, minlength=incidence.size)
    weight: npt.NDArray[np.float64] = np.log1p(blocks / np.maximum(frequency, 1))
    return weight


def _weights(
    incidence: _Incidence, weight: npt.NDArray[np.float64], start: int, end: int
) -> npt.NDArray[np.float64]:
    """Return the weight of all identifiers of each block in ``[start, end)``."""
    entries = incidence.entries(start, end)
    block, term = incidence.block[entries] - start, incidence.term[entries]
    return _sums(block, weight[term], end - start)


def _use(
    incidence: _Incidence, turn: range, weight: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return blocks, ascending, and the weight of what the agent wrote after them in the turn."""
    entries = incidence.entries(turn.start, turn.stop)
    wrote = np.flatnonzero(incidence.wrote[entries])[::-1] + entries.start
    term, latest, _ = distinct(incidence.term[wrote])
    begin = incidence.posting_starts[term]
    counts = incidence.place[wrote[latest] - incidence.first] - begin
    holder = incidence.posting[runs(begin, counts)]
    gain = np.repeat(weight[term], counts)
    if len(holder) * DENSE_SHARE < turn.stop:
        _, first, of = distinct(holder)
        return holder[first], _sums(of, gain, len(first))
    sums = _sums(holder, gain, turn.stop)
    rows = np.flatnonzero(sums)
    return rows, sums[rows]


def _support(
    incidence: _Incidence, turn: range, weight: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return (later, earlier, weight of the identifiers that later has from earlier)."""
    entries = incidence.entries(turn.start, turn.stop)
    term = incidence.term[entries]
    place = incidence.place[entries.start - incidence.first : entries.stop - incidence.first]
    is_known = place > incidence.posting_starts[term]
    previous = incidence.posting[place[is_known] - 1]
    pair = incidence.block[entries][is_known] * turn.stop + previous
    pairs, _, of_pair = distinct(pair)
    shared = _sums(of_pair, weight[term[is_known]], len(pairs))
    later, earlier = np.divmod(pairs, turn.stop) if len(pairs) else (pairs, pairs)
    return later.astype(np.int32), earlier.astype(np.int32), shared


def _sums(
    group: npt.NDArray[np.int64], values: npt.NDArray[np.float64], count: int
) -> npt.NDArray[np.float64]:
    """Return the sum of the values of each group, added in their order."""
    return np.bincount(group, values, minlength=count).astype(np.float64)


def _share(
    part: npt.NDArray[np.float64], total: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return part / total, 0 where a block holds nothing; rounding never lifts it above 1."""
    return np.minimum(part / np.where(total > 0, total, 1), 1)
