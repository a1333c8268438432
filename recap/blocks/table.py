"""The immutable table of blocks with its integer index of identifiers: what selection works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recap.blocks.pairing import PartRef
from recap.blocks.segment import Block, Exclusion
from recap.transcript.model import Message

IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class IdentifierIndex:
    """Block x identifier incidence in compressed rows.

    Attributes:
        vocabulary: identifier -> integer id, in order of first occurrence. Shared between tables
            that grew from one another; ids >= ``size`` belong to a longer table.
        size: Number of identifiers of this table, m.
        starts: int64 ``[blocks + 1]``: row b is ``terms[starts[b]:starts[b + 1]]``.
        terms: int32 ``[nnz]``: distinct identifier ids of each block, ascending within the row.
        wrote: bool ``[nnz]``: the agent itself wrote the identifier in that block (text or call).
        document_frequency: int32 ``[m]``: blocks that hold the identifier.
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
        index: Identifier index.
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
    index: IdentifierIndex

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def active_chars(self) -> int:
        """c(V): characters of the blocks of the live context, the base of the budget."""
        return int(self.cost_chars[self.is_active].sum())
