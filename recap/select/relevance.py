"""Relevance of blocks to a request: identifiers they share, weighted by how rare those are.

Identifier weights are whole multiples of 1 / ``UNIT``. Sums of them are exact in any order, and the
last bit of one processor's logarithm cannot change what another selects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recap.blocks.table import BoolArray, FloatArray, IntArray, TermIndex

UNIT = 2**20
"""Whole numbers in float64: sums below 2**53 are exact."""

K1 = 1.2
"""BM25: how fast repetition saturates (Robertson and Zaragoza 2009, section 3.2)."""
B = 0.75
"""BM25: how much a long document is discounted (the same)."""


def known_terms(names: Iterable[str], index: TermIndex) -> IntArray:
    """Return the ids of the identifiers that the table holds: int64, ascending."""
    known = (index.vocabulary.get(name, index.size) for name in names)
    return np.array(sorted(term for term in known if term < index.size), np.int64)


def idf(index: TermIndex) -> FloatArray:
    """Return log(1 + N / df) of every identifier, float64 ``[m]`` (ReCAP section 4.3)."""
    blocks = len(index.starts) - 1
    of_frequency = np.log1p(blocks / np.maximum(np.arange(blocks + 1), 1))
    return of_frequency.take(index.document_frequency)


def units(weight: FloatArray) -> FloatArray:
    """Return weights in whole units, float64."""
    return np.rint(weight * UNIT)


def row_sums(starts: IntArray, entries: FloatArray | BoolArray) -> FloatArray:
    """Return the sum of each row of a compressed matrix of whole numbers: float64 ``[rows]``."""
    sums = np.zeros(len(starts) - 1)
    is_filled = starts[1:] > starts[:-1]
    if is_filled.any():
        sums[is_filled] = np.add.reduceat(entries, starts[:-1][is_filled], dtype=np.float64)
    return sums


def relevance(index: TermIndex, terms: IntArray) -> FloatArray:
    """Return r(v), the summed idf of the request's identifiers in each block (ReCAP section 4.3).

    Args:
        index: Identifier index of n blocks.
        terms: Ids of the request's identifiers.

    Returns:
        float64 ``[n]``, >= 0.
    """
    return _matched(index, terms, idf(index)[terms])


def bm25(index: TermIndex, terms: IntArray) -> FloatArray:
    """Return the BM25 score of each block, float64 ``[n]`` (Robertson and Zaragoza 2009, eq. 3.15).

    A block is a document of distinct identifiers: every term frequency is 1, the length is the
    number of identifiers. The idf is the one that cannot go negative,
    log(1 + (N - df + 0.5) / (df + 0.5)).
    """
    length = np.diff(index.starts)
    frequency = index.document_frequency[terms]
    rarity = np.log1p((len(length) - frequency + 0.5) / (frequency + 0.5))
    mean = length.mean() if length.any() else 1.0
    saturation = (K1 + 1) / (1 + K1 * (1 - B + B * length / mean))
    return saturation * _matched(index, terms, rarity)


def _matched(index: TermIndex, terms: IntArray, weight: FloatArray) -> FloatArray:
    """Return each block's sum over the given terms, float64 ``[n]``."""
    of_term = np.zeros(index.size)
    of_term[terms] = units(weight)
    entries = np.flatnonzero((of_term > 0).take(index.terms))
    rows = np.searchsorted(index.starts, entries, side="right") - 1
    blocks = len(index.starts) - 1
    return np.bincount(rows, of_term[index.terms[entries]], minlength=blocks) / UNIT
