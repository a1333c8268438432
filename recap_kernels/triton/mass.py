"""Block-to-block mass from what each row gave to each tile: two ordered sums."""

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


@triton.jit
def received_kernel(
    rowsum_ptr, received_ptr, tile_range_ptr, lo_ptr, hi_ptr, rows, kv_heads, blocks,
    G: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write ``received[m, a]``: what packed row m gave to block a, over its tiles and key heads.

    One program owns ``BLOCK`` packed rows and one block, whose tiles lie in no other. Rows that see
    none of a tile were not written there and are not read.
    """
    block = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((STEP, BLOCK), tl.float32)
    end = tl.load(tile_range_ptr + block + 1) * kv_heads
    for first in tl.range(tl.load(tile_range_ptr + block) * kv_heads, end, STEP):
        pair = first + tl.arange(0, STEP)  # of tile and key head
        tile = pair // kv_heads
        lo = tl.load(lo_ptr + tile, mask=pair < end, other=0) * G
        hi = tl.load(hi_ptr + tile, mask=pair < end, other=0) * G
        sees = (offs[None, :] >= lo[:, None]) & (offs[None, :] < hi[:, None])
        given = rowsum_ptr + pair.to(tl.int64)[:, None] * (rows * G) + offs[None, :]
        total += tl.load(given, mask=sees, other=0.0)
    to = received_ptr + offs.to(tl.int64) * blocks + block
    tl.store(to, tl.sum(total, axis=0), mask=offs < rows * G)


@triton.jit
def mass_kernel(
    received_ptr, mass_ptr, row_range_ptr, blocks,
    G: tl.constexpr, ADD: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write ``mass[b, a] = sum of received[m, a] over rows of b``; with ``ADD`` onto what is there.

    One program owns one b and ``BLOCK`` blocks a.
    """
    of_block = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < blocks
    total = tl.zeros((STEP, BLOCK), tl.float32)
    end = tl.load(row_range_ptr + of_block + 1) * G
    for first in tl.range(tl.load(row_range_ptr + of_block) * G, end, STEP):
        row = first + tl.arange(0, STEP)
        given = received_ptr + row.to(tl.int64)[:, None] * blocks + offs[None, :]
        total += tl.load(given, mask=(row < end)[:, None] & mask[None, :], other=0.0)
    summed = tl.sum(total, axis=0)
    to = mass_ptr + of_block.to(tl.int64) * blocks + offs
    if ADD:
        summed += tl.load(to, mask=mask, other=0.0)
    tl.store(to, summed, mask=mask)


def add_mass(rowsum: Tensor, mass: Tensor, plan: StatsPlan, *, add: bool) -> None:
    """Write the mass between blocks to ``mass [B, B]``, or add it; float32.

    Args:
        rowsum: ``[T, Hkv, W * G]`` from ``column_sums`` with the plan's ``block_tiles``.
        mass: Changed in place.
        plan: Tiles and rows of each block.
        add: Onto what is there.
    """
    _, kv_heads, packed = rowsum.shape
    blocks, group = plan.blocks, packed // plan.rows
    if not blocks:
        return
    received = rowsum.new_empty(packed, blocks)
    received_kernel[(triton.cdiv(packed, BLOCK), blocks)](
        rowsum, received, plan.tile_range, plan.block_tiles.lo, plan.block_tiles.hi,
        plan.rows, kv_heads, blocks, G=group, BLOCK=BLOCK, STEP=STEP,
        num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
    mass_kernel[(blocks, triton.cdiv(blocks, BLOCK))](
        received, mass, plan.row_range, blocks,
        G=group, ADD=add, BLOCK=BLOCK, STEP=STEP, num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
