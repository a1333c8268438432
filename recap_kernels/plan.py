"""Values of the attention statistics: the plan of one turn, the sums, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class StatsPlan:
    """What every layer of one turn shares; made by ``plan``.

    Attributes:
        q_pos: int64 ``[W]``: absolute position of each sampled row.
        kv_len: N, number of history tokens.
        block_offsets: int64 ``[B + 1]``: block b spans tokens ``[offsets[b], offsets[b + 1])``.
        window: Sliding window in tokens; 0 for full attention.
    """

    q_pos: Tensor
    kv_len: int
    block_offsets: Tensor
    window: int = 0

    @property
    def blocks(self) -> int:
        """B, number of blocks."""
        return self.block_offsets.numel() - 1

    def visible(self) -> Tensor:
        """Return bool ``[W, N]``: row r sees token j, ``0 <= q_pos[r] - j`` and ``< window``."""
        distance = self.q_pos[:, None] - torch.arange(self.kv_len)
        return (distance >= 0) & (distance < (self.window or torch.inf))

    def block_of(self, positions: Tensor) -> Tensor:
        """Return int64: the block each position lies in, -1 for none. Any shape."""
        block = torch.searchsorted(self.block_offsets, positions, right=True) - 1
        return block.where(positions < self.block_offsets[-1], -1)


@dataclass(frozen=True, slots=True, eq=False)
class Stats:
    """Sums over sampled rows and heads of one layer; they add up over layers and head shards.

    Attributes:
        rho: float64 ``[N]``: attention received by each token.
        mass: float64 ``[B, B]``: attention of the rows in block b (first index) to the tokens of
            block a. Nothing lies above the diagonal, which holds a block's attention to itself.
        lse: float64 ``[W, Hq]``: natural log of the softmax denominator, sink included; -inf for a
            row that sees no token and has no sink.
    """

    rho: Tensor
    mass: Tensor
    lse: Tensor


@dataclass(frozen=True, slots=True)
class Quantile:
    """Winsorise at this quantile of the observed tokens, in (0, 1]; nearest rank, no mean of two."""

    q: float

    def __post_init__(self) -> None:
        if not 0 < self.q <= 1:
            raise ValueError(f"quantile must be above 0 and at most 1; got {self.q!r}")


@dataclass(frozen=True, slots=True)
class TimesMedian:
    """Winsorise at a multiple of the median of the observed tokens."""

    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.factor < float("inf"):
            raise ValueError(f"factor must be above 0 and finite; got {self.factor!r}")


Clip = Quantile | TimesMedian | None
"""How token importance is winsorised; None for not at all."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockStats:
    """What a turn's statistics say about blocks.

    Attributes:
        block_mean: float64 ``[B]``: mean importance (rho-bar) of the block's counted tokens; 0 for
            a block without any.
        mass: float64 ``[B, B]``: mean attention mass M[b, a] of a row in block b; 0 for a block
            without rows.
        clip_value: float64 ``[1]``: where importance was cut; inf for nowhere.
        row_count: int64 ``[N]``: sampled rows that can see each token.
    """

    block_mean: Tensor
    mass: Tensor
    clip_value: Tensor
    row_count: Tensor


def plan(
    q_pos: Tensor, kv_len: int, block_offsets: Tensor | None = None, *, window: int = 0
) -> StatsPlan:
    """Return the plan of a turn.

    Args:
        q_pos: Integer ``[W]``: absolute positions of the sampled rows, any order, repeats allowed.
        kv_len: N, number of history tokens.
        block_offsets: Integer ``[B + 1]``, not decreasing, within ``[0, kv_len]``; None for no
            blocks.
        window: Sliding window in tokens, 0 for full attention.

    Raises:
        ValueError: A shape or value is none of these.
        TypeError: Positions or offsets are no integers.
    """
    offsets = torch.zeros(1, dtype=torch.int64) if block_offsets is None else block_offsets
    for name, values in (("q_pos", q_pos), ("block_offsets", offsets)):
        if values.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"{name} must be int32 or int64; got {values.dtype}")
        if values.dim() != 1:
            raise ValueError(f"{name} must have one dimension; got shape {tuple(values.shape)}")
    if kv_len < 0 or window < 0:
        raise ValueError(f"kv_len and window must be at least 0; got {kv_len!r} and {window!r}")
    offsets = offsets.long().cpu()
    if offsets.numel() == 0:
        raise ValueError("block_offsets must hold one number more than there are blocks; got none")
    if (offsets.diff() < 0).any() or offsets[0] < 0 or offsets[-1] > kv_len:
        raise ValueError(f"block_offsets must not decrease and lie in [0, {kv_len}]")
    return StatsPlan(q_pos.long().cpu(), kv_len, offsets, window)
