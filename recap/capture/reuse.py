"""The observer without a model: a block was used when the agent wrote its identifiers again (ours).

Second stage of the flow for closed APIs: blocks in, one ``TurnObservation`` per completed turn out.
It costs milliseconds. It sees reuse in text, not attention: a block that was read and never named
again counts as unused.
"""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.graph.distinct import distinct
from recap.graph.observation import TurnObservation
from recap.graph.stale import find_repeats, mark_stale
from recap.graph.state import ContextGraph
from recap.graph.update import update_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from recap.blocks.table import BlockTable
    from recap.config import Settings

OBSERVER = "reuse"

RECOUNT_GROWTH = 1.125
"""Identifier weights are counted anew when a session has grown by this factor. Counting at every
turn would cost turns x identifiers; so the weights lag by an eighth and the cost stays linear."""

BATCH_TURNS = 32
"""Turns folded into the graph at once: its edges are copied once a batch, not once a turn."""


def build_graph(
    table: BlockTable,
    settings: Settings,
    *,
    turns: int | None = None,
    graph: ContextGraph | None = None,
) -> ContextGraph:
    """Return the graph of a session after its completed turns.

    Args:
        table: Blocks of the session.
        settings: alpha, theta and the overlap that makes a block stale.
        turns: How many turns are completed, from the first on; all that the table holds if None.
        graph: Graph of the session's first turns, to go on from; the result is the same as
            without it.
    """
    graph = ContextGraph.empty(OBSERVER) if graph is None else graph
    last = turn_count(table) if turns is None else min(turns, turn_count(table))
    if graph.turns >= last:
        return graph
    repeats = find_repeats(table, settings.stale_overlap)
    observations = observe_turns(table, range(graph.turns, last))
    while batch := list(islice(observations, BATCH_TURNS)):
        graph = mark_stale(update_all(graph, batch, settings), batch, repeats)
    return graph


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
    turns = range(turn_count(table)) if turns is None else turns
    incidence = _incidence(table)
    ends = np.searchsorted(table.turn, np.arange(turns.stop), side="right").tolist()
    frequency = np.zeros(table.index.size, np.int64)
    weight = np.zeros(table.index.size)
    total = np.zeros(len(table))  # weight of all identifiers of a block
    counted = 0
    for turn, (start, end) in enumerate(pairwise((0, *ends))):
        np.add.at(frequency, incidence.term[incidence.entries(start, end)], 1)
        if end >= RECOUNT_GROWTH * counted:
            counted, weight = end, np.log1p(end / np.maximum(frequency, 1))
            total[:start] = _weights(incidence, weight, 0, start)
        total[start:end] = _weights(incidence, weight, start, end)
        if turn in turns:
            use = _use(incidence, range(start, end), frequency, weight)
            later, earlier, mass = _support(incidence, range(start, end), weight)
            yield TurnObservation(
                turn,
                table.ids[:end],
                _share(use, total[:end]),
                later,
                earlier,
                _share(mass, total[later]),
            )


class _Incidence(NamedTuple):
    """Entries (block, identifier) in block order, and the same as postings of each identifier.

    Attributes:
        starts: int64 ``[blocks + 1]``: where the entries of a block begin.
        block, term: int64, int32 ``[nnz]``: what an entry stands for.
        wrote: bool ``[nnz]``: the agent itself wrote it.
        previous: int64 ``[nnz]``: the latest earlier block with the same identifier, -1 if none.
        posting_starts: int64 ``[m + 1]``: where the postings of an identifier begin.
        posting: int64 ``[nnz]``: blocks that hold an identifier, ascending.
    """

    starts: npt.NDArray[np.int64]
    block: npt.NDArray[np.int64]
    term: npt.NDArray[np.int32]
    wrote: npt.NDArray[np.bool_]
    previous: npt.NDArray[np.int64]
    posting_starts: npt.NDArray[np.int64]
    posting: npt.NDArray[np.int64]

    def entries(self, start: int, end: int) -> slice:
        """Return where the entries of blocks ``[start, end)`` lie."""
        return slice(int(self.starts[start]), int(self.starts[end]))


def _incidence(table: BlockTable) -> _Incidence:
    index = table.index
    block = np.repeat(np.arange(len(table)), np.diff(index.starts))
    order = np.argsort(index.terms, kind="stable")
    posting, term = block[order], index.terms[order]
    previous = np.full(len(block), -1)
    is_repeat = term[1:] == term[:-1]
    previous[order[1:][is_repeat]] = posting[:-1][is_repeat]
    posting_starts = np.searchsorted(term, np.arange(index.size + 1))
    return _Incidence(
        index.starts, block, index.terms, index.wrote, previous, posting_starts, posting
    )


def _weights(
    incidence: _Incidence, weight: npt.NDArray[np.float64], start: int, end: int
) -> npt.NDArray[np.float64]:
    """Return the weight of all identifiers of each block in ``[start, end)``."""
    entries = incidence.entries(start, end)
    block, term = incidence.block[entries] - start, incidence.term[entries]
    return _sums(block, weight[term], end - start)


def _use(
    incidence: _Incidence,
    turn: range,
    frequency: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return per block the weight of its identifiers that the agent wrote after it in the turn."""
    entries = incidence.entries(turn.start, turn.stop)
    wrote = np.flatnonzero(incidence.wrote[entries])[::-1] + entries.start
    term, first, _ = distinct(incidence.term[wrote])
    last_writer = incidence.block[wrote[first]]
    counts = frequency[term]
    holder = incidence.posting[_runs(incidence.posting_starts[term], counts)]
    is_before = holder < np.repeat(last_writer, counts)
    gain = np.repeat(weight[term], counts)
    return _sums(holder[is_before], gain[is_before], turn.stop)


def _support(
    incidence: _Incidence, turn: range, weight: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return (later, earlier, weight of the identifiers that later has from earlier)."""
    entries = incidence.entries(turn.start, turn.stop)
    previous = incidence.previous[entries]
    is_known = previous >= 0
    pair = incidence.block[entries][is_known] * turn.stop + previous[is_known]
    pairs, _, of_pair = distinct(pair)
    shared = _sums(of_pair, weight[incidence.term[entries][is_known]], len(pairs))
    later, earlier = np.divmod(pairs, turn.stop) if len(pairs) else (pairs, pairs)
    return later.astype(np.int32), earlier.astype(np.int32), shared


def _runs(starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return ``start, start + 1, ...`` for each start, ``size`` of them, one run after the other."""
    shifts = starts - (np.cumsum(sizes) - sizes)
    runs: npt.NDArray[np.int64] = np.arange(int(sizes.sum())) + np.repeat(shifts, sizes)
    return runs


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
