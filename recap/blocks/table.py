"""The immutable table of blocks with its indices of identifiers and lines: what selection works on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from recap.blocks.fingerprints import common_prefix, fingerprints
from recap.blocks.growth import common_messages, segment_grown
from recap.blocks.part_terms import part_terms
from recap.blocks.segment import Segmentation, segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from recap.blocks.index_codec import CachedIndex
    from recap.blocks.pairing import PartRef
    from recap.blocks.segment import Block, Exclusion
    from recap.transcript.model import Message

T = TypeVar("T")
IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Row: TypeAlias = "list[tuple[bool, tuple[str, ...]]]"
"""Terms of each part of a block, each once and new ones in order, and whether the agent wrote it."""


@dataclass(frozen=True, slots=True, eq=False)
class TermIndex:
    """Block x term incidence in compressed rows; terms are identifiers, or lines.

    Attributes:
        vocabulary: term -> integer id, in order of first occurrence. Never changed once
            built; a prefix shares the whole table's, so that its ids >= ``size`` are not its own.
        size: Number of terms of this table, m.
        starts: int64 ``[blocks + 1]``: row b is ``terms[starts[b]:starts[b + 1]]``.
        terms: int32 ``[nnz]``: distinct term ids of each block, ascending within the row.
        wrote: bool ``[nnz]``: the agent itself wrote the term in that block (text or call).
        document_frequency: int32 ``[m]``: blocks that hold the term.
        last_use: int32 ``[m]``: last block that holds it.
        acts: int32 ``[m]``: blocks in which the agent itself wrote it.
    """

    vocabulary: dict[str, int]
    size: int
    starts: IntArray
    terms: Int32Array
    wrote: BoolArray
    document_frequency: Int32Array
    last_use: Int32Array
    acts: Int32Array

    def prefix(self, blocks: int) -> TermIndex:
        """Return the index of the first ``blocks`` rows, counted anew, sharing the rest."""
        if blocks == len(self.starts) - 1:
            return self
        starts = self.starts[: blocks + 1]
        terms, wrote = self.terms[: starts[-1]], self.wrote[: starts[-1]]
        # Ids are numbered by first occurrence: those of a prefix are the first ones, all of them.
        size = int(terms.max()) + 1 if len(terms) else 0
        return counted_index(self.vocabulary, size, starts, terms, wrote)

    def extend(self, rows: Iterable[Row]) -> TermIndex:
        """Return the index with further rows."""
        is_shared = len(self.vocabulary) > self.size
        vocabulary = dict(
            islice(self.vocabulary.items(), self.size) if is_shared else self.vocabulary
        )
        lengths: list[int] = []
        terms: list[int] = []
        wrote: list[bool] = []
        for row in rows:
            own, every = _numbered(row, vocabulary)
            lengths.append(len(every))
            terms += every
            wrote += map(own.__contains__, every)
        starts = np.concatenate((self.starts, self.starts[-1] + np.cumsum(lengths, dtype=np.int64)))
        return counted_index(
            vocabulary,
            len(vocabulary),
            starts,
            np.concatenate((self.terms, np.array(terms, np.int32))),
            np.concatenate((self.wrote, np.array(wrote, np.bool_))),
        )


@dataclass(frozen=True, slots=True, eq=False)
class BlockTable:
    """Blocks of one session in chronological order, with everything selection needs as arrays.

    Attributes:
        messages: The transcript's messages that the blocks' refs point into.
        blocks: The blocks.
        fixed: Parts always kept, outside the budget.
        excluded: Parts that cannot go out.
        ids: Block ids, in order.
        cost_chars: int64 ``[blocks]``.
        turn: int32 ``[blocks]``.
        is_active: bool ``[blocks]``.
        is_user: bool ``[blocks]``: human words, always protected.
        index: Identifiers of the blocks.
        lines: Their lines, see ``part_terms``.
    """

    messages: tuple[Message, ...]
    blocks: tuple[Block, ...]
    fixed: tuple[PartRef, ...]
    excluded: tuple[Exclusion, ...]
    ids: tuple[str, ...]
    cost_chars: IntArray
    turn: Int32Array
    is_active: BoolArray
    is_user: BoolArray
    index: TermIndex
    lines: TermIndex

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def active_chars(self) -> int:
        """c(V): characters of the blocks of the live context, the base of the budget."""
        return int(self.cost_chars[self.is_active].sum())

    def prefix(self, blocks: int) -> BlockTable:
        """Return the table of the first ``blocks`` blocks, between 0 and ``len(self)``.

        Messages stay as they are. Parts outside blocks belong to it as far as they stand before the
        first block left out.
        """
        if blocks == len(self):
            return self
        end = self.blocks[blocks].refs[0].message
        return replace(
            self,
            blocks=self.blocks[:blocks],
            fixed=tuple(ref for ref in self.fixed if ref.message < end),
            excluded=tuple(x for x in self.excluded if x.ref.message < end),
            ids=self.ids[:blocks],
            cost_chars=self.cost_chars[:blocks],
            turn=self.turn[:blocks],
            is_active=self.is_active[:blocks],
            is_user=self.is_user[:blocks],
            index=self.index.prefix(blocks),
            lines=self.lines.prefix(blocks),
        )

    def extend(
        self, messages: Sequence[Message], segmentation: Segmentation | None = None
    ) -> BlockTable:
        """Return the table of a list that begins like this table's messages and goes on.

        It equals ``build_table(messages)``. Texts are read from the first block on that is not
        the same as before, which may be an old one whose results have arrived.
        """
        same = common_messages(self.messages, messages)
        if segmentation is None:
            before = Segmentation(self.blocks, self.fixed, self.excluded)
            segmentation = segment_grown(self.messages, before, messages, same)
        known = _common(
            lambda old, new: (old is new or old == new) and max(new.refs).message < same,
            self.blocks,
            segmentation.blocks,
        )
        indices = self.index.prefix(known), self.lines.prefix(known)
        return _table(messages, segmentation, indices, known)


def build_table(
    messages: Sequence[Message],
    segmentation: Segmentation | None = None,
    cached: CachedIndex | None = None,
) -> BlockTable:
    """Return the table of ``messages``.

    Args:
        messages: Messages of a transcript, in order.
        segmentation: Their blocks, or the first of them; found by ``segment`` if None.
        cached: Index of an earlier table, from any process. The first blocks that are the same as
            then are not read again; the result is the same as without it.
    """
    if segmentation is None:
        segmentation = segment(messages)
    blocks = segmentation.blocks
    known, indices = 0, (_EMPTY, _EMPTY)
    if cached is not None:
        known = common_prefix(cached.fingerprints, fingerprints(messages, blocks))
        indices = cached.index.prefix(known), cached.lines.prefix(known)
    return _table(messages, segmentation, indices, known)


def _table(
    messages: Sequence[Message],
    segmentation: Segmentation,
    indices: tuple[TermIndex, TermIndex],
    known: int,
) -> BlockTable:
    """Return the table; of its blocks the first ``known`` are in the indices already."""
    blocks = segmentation.blocks
    names, lines = _rows(messages, blocks[known:])
    return BlockTable(
        messages=tuple(messages),
        blocks=blocks,
        fixed=segmentation.fixed,
        excluded=segmentation.excluded,
        ids=tuple(block.id for block in blocks),
        cost_chars=np.array([block.cost_chars for block in blocks], np.int64),
        turn=np.array([block.turn for block in blocks], np.int32),
        is_active=np.array([block.is_active for block in blocks], np.bool_),
        is_user=np.array([block.has_words for block in blocks], np.bool_),
        index=indices[0].extend(names),
        lines=indices[1].extend(lines),
    )


def _rows(messages: Sequence[Message], blocks: Sequence[Block]) -> tuple[list[Row], list[Row]]:
    """Return for each block what its parts hold: identifiers, and lines."""
    names: list[Row] = []
    lines: list[Row] = []
    for block in blocks:
        parts = [messages[ref.message].parts[ref.part] for ref in block.refs]
        read = [(part.author == "agent", part_terms(part)) for part in parts]
        names.append([(is_own, terms.names) for is_own, terms in read])
        lines.append([(is_own, terms.lines) for is_own, terms in read])
    return names, lines


def _numbered(row: Row, vocabulary: dict[str, int]) -> tuple[set[int], list[int]]:
    """Return ids the agent wrote in a block, and all ids ascending; new ones get the next number."""
    own: set[int] = set()
    every: set[int] = set()
    for is_own, terms in row:
        new = [term for term in terms if term not in vocabulary]
        vocabulary.update(zip(new, range(len(vocabulary), len(vocabulary) + len(new)), strict=True))
        ids = [vocabulary[term] for term in terms]
        every.update(ids)
        if is_own:
            own.update(ids)
    return own, sorted(every)


def counted_index(
    vocabulary: dict[str, int],
    size: int,
    starts: IntArray,
    terms: Int32Array,
    wrote: BoolArray,
) -> TermIndex:
    """Return the index with its counts, of its columns as ``TermIndex`` describes them."""
    block = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    last_use = np.zeros(size, np.int32)
    last_use[terms] = block  # of equal indices the last one counts, and blocks ascend
    return TermIndex(
        vocabulary=vocabulary,
        size=size,
        starts=starts,
        terms=terms,
        wrote=wrote,
        document_frequency=np.bincount(terms, minlength=size).astype(np.int32),
        last_use=last_use,
        acts=np.bincount(terms[np.flatnonzero(wrote)], minlength=size).astype(np.int32),
    )


def _common(is_same: Callable[[T, T], bool], before: Sequence[T], after: Sequence[T]) -> int:
    """Return how many items two sequences share from their beginning."""
    pairs = zip(before, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: is_same(*pair), pairs))


_EMPTY = counted_index({}, 0, np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.bool_))
