"""Block-to-block mass from what each row gave to each tile: ordered sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.plan import StatsPlan

BLOCK = 128
"""Rows, or blocks, of one program."""

STEP = 16
"""Values loaded at once for each of them: loads that wait one for another would set the time."""


@triton.jit(do_not_specialize=["first", "past"])
def received_kernel(
    rowsum_ptr, received_ptr, tile_range_ptr, lo_ptr, hi_ptr, first, past, rows, heads, blocks,
    ENTRIES: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Add to ``received[w, a]`` what row w gave to tiles first..past of block a, over key heads.

    One program owns ``BLOCK`` rows and one block, whose tiles lie in no other. Rows that see none of
    a tile were not written there and are not read.
    """
    block = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.maximum(tl.load(tile_range_ptr + block), first)
    end = tl.minimum(tl.load(tile_range_ptr + block + 1), past)
    if begin < end:
        total = tl.zeros((STEP, BLOCK), tl.float32)
        pieces = heads * ENTRIES  # of a tile
        last = (end - first) * pieces
        for at in tl.range((begin - first) * pieces, last, STEP):
            piece = at + tl.arange(0, STEP)
            tile = first + piece // pieces
            lo = tl.load(lo_ptr + tile, mask=piece < last, other=0)
            hi = tl.load(hi_ptr + tile, mask=piece < last, other=0)
            sees = (offs[None, :] >= lo[:, None]) & (offs[None, :] < hi[:, None])
            pair = (piece // ENTRIES).to(tl.int64) * rows  # of tile and key head
            given = (pair[:, None] + offs[None, :]) * ENTRIES + (piece % ENTRIES)[:, None]
            total += tl.load(rowsum_ptr + given, mask=sees, other=0.0)
        to = received_ptr + offs.to(tl.int64) * blocks + block
        before = tl.load(to, mask=offs < rows, other=0.0)
        tl.store(to, before + tl.sum(total, axis=0), mask=offs < rows)


@triton.jit
def mass_kernel(
    received_ptr, mass_ptr, row_range_ptr, blocks,
    ADD: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write ``mass[b, a] = sum of received[w, a] over rows of b``; with ``ADD`` onto what is there.

    One program owns one b and ``BLOCK`` blocks a.
    """
    of_block = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < blocks
    total = tl.zeros((STEP, BLOCK), tl.float32)
    end = tl.load(row_range_ptr + of_block + 1)
    for first in tl.range(tl.load(row_range_ptr + of_block), end, STEP):
        row = first + tl.arange(0, STEP)
        given = received_ptr + row.to(tl.int64)[:, None] * blocks + offs[None, :]
        total += tl.load(given, mask=(row < end)[:, None] & mask[None, :], other=0.0)
    summed = tl.sum(total, axis=0)
    to = mass_ptr + of_block.to(tl.int64) * blocks + offs
    if ADD:
        summed += tl.load(to, mask=mask, other=0.0)
    tl.store(to, summed, mask=mask)


def add_received(
    rowsum: Tensor,
    received: Tensor,
    plan: StatsPlan,
    tiles: tuple[int, int],
    heads: tuple[int, int],
) -> None:
    """Add what rows gave to some of the plan's ``block_tiles`` to ``received [W, B]``; float32.

    Args:
        rowsum: What ``column_kernel`` wrote: ``[past - first, key heads, W, entries]``.
        received: Changed in place.
        plan: Tiles of each block.
        tiles: First tile, and one past the last.
        heads: Key heads, and entries of a row for each of them.
    """
    count, entries = heads
    if plan.blocks:
        received_kernel[(triton.cdiv(plan.rows, BLOCK), plan.blocks)](
            rowsum, received, plan.tile_range, plan.block_tiles.lo, plan.block_tiles.hi,
            *tiles, plan.rows, count, plan.blocks, ENTRIES=entries, BLOCK=BLOCK, STEP=STEP,
            num_warps=4, enable_fp_fusion=True,
        )  # fmt: skip


def add_mass(received: Tensor, mass: Tensor, plan: StatsPlan, *, add: bool) -> None:
    """Write the mass between blocks to ``mass [B, B]``, or add it; from ``received [W, B]``."""
    blocks = plan.blocks
    if blocks:
        mass_kernel[(blocks, triton.cdiv(blocks, BLOCK))](
            received, mass, plan.row_range, blocks,
            ADD=add, BLOCK=BLOCK, STEP=STEP, num_warps=4, enable_fp_fusion=True,
        )  # fmt: skip
