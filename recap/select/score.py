"""Rankings: functions from the evidence about one request to a score per block."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from recap.select import relevance as lexical

if TYPE_CHECKING:
    from recap.blocks.table import BlockTable, BoolArray, FloatArray, IntArray
    from recap.config import Settings
    from recap.graph.state import AlignedGraph


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Everything a ranking or a packer may look at.

    Attributes:
        table: The blocks, n of them.
        graph: What earlier turns used, in the table's order; empty for recipes without a graph.
        terms: Ids of the request's identifiers, int64, ascending.
        relevance: r, float64 ``[n]``.
        seed: What draws are keyed by: the request's seed.
        settings: Coefficients.
    """

    table: BlockTable
    graph: AlignedGraph
    terms: IntArray
    relevance: FloatArray
    seed: bytes
    settings: Settings


def context_score(evidence: Evidence) -> FloatArray:
    """Return s = z(u) + lambda z(r) + [v not in O] xi - [v in S] kappa (ReCAP section 4.3).

    xi is uniform in [exploration_low, exploration_high], drawn per block. Float64 ``[n]``.
    """
    graph, settings = evidence.graph, evidence.settings
    low, high = settings.exploration_low, settings.exploration_high
    score = standardised(graph.importance) + settings.query_weight * standardised(
        evidence.relevance
    )
    unobserved = ~graph.is_observed
    score[unobserved] += low + (high - low) * draws(evidence, unobserved)
    score[graph.is_stale] -= settings.stale_penalty
    return score


def newest_first(evidence: Evidence) -> FloatArray:
    """Return the position of each block, float64 ``[n]``."""
    return np.arange(len(evidence.table), dtype=np.float64)


def bm25(evidence: Evidence) -> FloatArray:
    """Return the BM25 score of each block for the request, float64 ``[n]``."""
    return lexical.bm25(evidence.table.index, evidence.terms)


def shuffled(evidence: Evidence) -> FloatArray:
    """Return a draw per block, float64 ``[n]`` in [0, 1)."""
    return draws(evidence, np.ones(len(evidence.table), np.bool_))


def standardised(channel: FloatArray) -> FloatArray:
    """Return the channel with mean 0 and population deviation 1; a constant channel gives 0."""
    if not channel.size or channel.min() == channel.max():
        return np.zeros(channel.size)
    mean = float(channel.mean())
    return (channel - mean) / float(channel.std())


def draws(evidence: Evidence, mask: BoolArray) -> FloatArray:
    """Return a number in [0, 1) for each masked block, from the seed and the block's id alone.

    A block keeps its draw when others come or go before it, in every process.
    """
    keyed = blake2b(evidence.seed, digest_size=8)
    digests = []
    ids = evidence.table.ids
    for index in np.flatnonzero(mask).tolist():
        hasher = keyed.copy()
        hasher.update(ids[index].encode())
        digests.append(hasher.digest())
    bits = np.frombuffer(b"".join(digests), "<u8") >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53
