"""Values of the attention statistics: the plan of one turn, the sums, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

TILE = 128
INT32_MAX = 2**31 - 1
MOST_TOKENS = 2**31 - 2**16


@dataclass(frozen=True, slots=True, eq=False)
class Tiles:
    """Token ranges that a kernel works on, and the rows each concerns; int32 ``[T]`` each.

    Attributes:
        start: First token.
        end: One past the last token.
        lo: First sorted row (``StatsPlan.order``) that can see a token of the tile.
        mid: Rows from here to ``hi`` see the whole tile; equal to ``hi`` with a window.
        hi: One past the last sorted row that can see a token of the tile.
    """

    start: Tensor
    end: Tensor
    lo: Tensor
    mid: Tensor
    hi: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class StatsPlan:
    """What every layer of one turn shares; made by ``plan``, on the device of its ``q_pos``.

    Attributes:
        q_pos: int32 ``[W]``: absolute position of each sampled row, in the caller's order.
        block_offsets: int32 ``[B + 1]``: block b spans tokens ``[offsets[b], offsets[b + 1])``.
        order: int64 ``[W]``: rows by rising position, ties in the caller's order.
        row_range: int32 ``[B + 1]``: sorted rows ``[row_range[b], row_range[b + 1])`` lie in b.
        tile_range: int32 ``[B + 1]``: ``block_tiles`` of b, in the same way.
        tiles: Tiles of equal size from token 0 on.
        block_tiles: Tiles of which none crosses the edge of a block; they cover all tokens.
        kv_len: N, number of history tokens.
        window: Sliding window in tokens; 0 for full attention.
        tile: Size of a tile.
    """

    q_pos: Tensor
    block_offsets: Tensor
    order: Tensor
    row_range: Tensor
    tile_range: Tensor
    tiles: Tiles
    block_tiles: Tiles
    kv_len: int
    window: int
    tile: int

    @property
    def rows(self) -> int:
        """W, number of sampled rows."""
        return self.q_pos.numel()

    @property
    def blocks(self) -> int:
        """B, number of blocks."""
        return self.block_offsets.numel() - 1

    def visible(self) -> Tensor:
        """Return bool ``[W, N]``: row r sees token j, ``0 <= q_pos[r] - j`` and ``< window``."""
        distance = self.q_pos[:, None] - torch.arange(self.kv_len, device=self.q_pos.device)
        return (distance >= 0) & (distance < (self.window or torch.inf))

    def block_of(self, positions: Tensor) -> Tensor:
        """Return int64: the block each position lies in, -1 for none. Any shape."""
        block = torch.searchsorted(self.block_offsets.long(), positions.long(), right=True) - 1
        return block.where(positions < self.block_offsets[-1], -1)

    def to(self, device: torch.device | str) -> StatsPlan:
        """Return the plan with its tensors on ``device``."""
        moved = [tensor.to(device) for tensor in self.tensors()]
        return StatsPlan.of(moved, self.kv_len, self.window, self.tile)

    def tensors(self) -> list[Tensor]:
        """Return all tensors, in the order that ``of`` takes them."""
        own = [self.q_pos, self.block_offsets, self.order, self.row_range, self.tile_range]
        return [*own, *_tensors(self.tiles), *_tensors(self.block_tiles)]

    @staticmethod
    def of(tensors: list[Tensor], kv_len: int, window: int, tile: int) -> StatsPlan:
        """Return the plan whose ``tensors()`` these are; what a torch op is handed."""
        q_pos, block_offsets, order, row_range, tile_range = tensors[:5]
        return StatsPlan(
            q_pos,
            block_offsets,
            order,
            row_range,
            tile_range,
            Tiles(*tensors[5:10]),
            Tiles(*tensors[10:15]),
            kv_len,
            window,
            tile,
        )


def _tensors(tiles: Tiles) -> list[Tensor]:
    return [tiles.start, tiles.end, tiles.lo, tiles.mid, tiles.hi]


@dataclass(frozen=True, slots=True, eq=False)
class Stats:
    """Sums over sampled rows and heads of one layer; they add up over layers and head shards.

    float32 from ``attn_stats``, float64 from ``reference``.

    Attributes:
        rho: ``[N]``: attention received by each token.
        mass: ``[B, B]``: attention of the rows in block b (first index) to the tokens of block a.
            Nothing lies above the diagonal, which holds a block's attention to itself. None when
            it was not asked for.
        lse: ``[W, Hq]``: natural log of the softmax denominator, sink included; -inf for a row
            that sees no token and has no sink.
    """

    rho: Tensor
    mass: Tensor | None
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
    """What a turn's statistics say about blocks; float32 from ``finalize``.

    Attributes:
        block_mean: ``[B]``: mean importance (rho-bar) of the block's counted tokens; 0 for a block
            without any.
        mass: ``[B, B]``: mean attention mass M[b, a] of a row in block b; 0 for a block without
            rows. None when no sums were given.
        clip_value: ``[1]``: where importance was cut; inf for nowhere.
        row_count: int ``[N]``: sampled rows that can see each token; int32 from ``finalize``.
    """

    block_mean: Tensor
    mass: Tensor | None
    clip_value: Tensor
    row_count: Tensor


def plan(
    q_pos: Tensor,
    kv_len: int,
    block_offsets: Tensor | None = None,
    *,
    window: int = 0,
    tile: int | None = None,
) -> StatsPlan:
    """Return the plan of a turn. Reads values, so it synchronises: make it once, not per layer.

    Args:
        q_pos: int32 or int64 ``[W]``: absolute positions of the sampled rows, any order, repeats
            allowed. A row sees tokens up to its position; a negative one sees none.
        kv_len: N, number of history tokens.
        block_offsets: int32 or int64 ``[B + 1]``, not decreasing, within ``[0, kv_len]``; equal
            neighbours make an empty block; None for no blocks.
        window: Sliding window in tokens, 0 for full attention.
        tile: Tokens of a tile of the GPU kernels, a power of two from 16 on; None for 128.

    Raises:
        ValueError: A shape, dtype or value is none of these; W or N is 0.
    """
    offsets = torch.zeros(1, dtype=torch.int64) if block_offsets is None else block_offsets
    for name, values in (("q_pos", q_pos), ("block_offsets", offsets)):
        if values.dtype not in (torch.int32, torch.int64):
            raise ValueError(f"{name} must be int32 or int64; got {values.dtype}")
        if values.dim() != 1 or values.numel() == 0:
            raise ValueError(
                f"{name} must have one dimension and an element; got shape {tuple(values.shape)}"
            )
    tile = TILE if tile is None else tile
    _check_sizes(kv_len, window, tile)
    if int(q_pos.abs().max()) > INT32_MAX:
        raise ValueError("q_pos must fit 32 bits; got larger ones")
    offsets = offsets.long().cpu()
    if (offsets.diff() < 0).any() or offsets[0] < 0 or offsets[-1] > kv_len:
        raise ValueError(
            f"block_offsets must not decrease and lie in [0, {kv_len}]; "
            f"got {int(offsets.min())} to {int(offsets.max())}"
        )
    position = q_pos.cpu().int()
    order = position.argsort(stable=True)
    rising = position[order]
    starts, ends, _ = _cut(torch.tensor([0, kv_len]), tile)
    block_starts, block_ends, first = _cut(torch.tensor([0, *offsets.tolist(), kv_len]), tile)
    return StatsPlan(
        q_pos=position,
        block_offsets=offsets.int(),
        order=order,
        row_range=torch.searchsorted(rising, offsets.int(), out_int32=True),
        tile_range=first[1:].int(),
        tiles=_with_rows(starts, ends, rising, window),
        block_tiles=_with_rows(block_starts, block_ends, rising, window),
        kv_len=kv_len,
        window=window,
        tile=tile,
    ).to(q_pos.device)


def _check_sizes(kv_len: int, window: int, tile: int) -> None:
    if not 0 < kv_len <= MOST_TOKENS:
        raise ValueError(f"kv_len must be at least 1 and at most {MOST_TOKENS}; got {kv_len!r}")
    if not 0 <= window <= INT32_MAX:
        raise ValueError(f"window must be at least 0 and fit 32 bits; got {window!r}")
    if tile < 16 or tile & (tile - 1):
        raise ValueError(f"tile must be a power of two from 16 on; got {tile!r}")


def _cut(bounds: Tensor, tile: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return start and end of tiles within neighbouring bounds, and the first tile of each gap."""
    count = (bounds.diff() + tile - 1) // tile
    gap = torch.repeat_interleave(torch.arange(len(count)), count)
    first = count.cumsum(0) - count
    start = bounds[gap] + (torch.arange(len(gap)) - first[gap]) * tile
    return start, torch.minimum(start + tile, bounds[gap + 1]), first


def _with_rows(start: Tensor, end: Tensor, rising: Tensor, window: int) -> Tiles:
    """Return the tiles with the sorted rows that see them."""
    position = rising.long()
    lo = torch.searchsorted(position, start)
    if window:
        hi = torch.maximum(torch.searchsorted(position, end - 1 + window), lo)
        mid = hi
    else:
        hi = torch.full_like(lo, len(rising))
        mid = torch.searchsorted(position, end - 1)
    # Each gets storage of its own: a torch op takes no two arguments that are one tensor.
    return Tiles(*(values.int().clone() for values in (start, end, lo, mid, hi)))
