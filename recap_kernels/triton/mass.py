"""Block-to-block mass from what each row gave to each tile: two ordered sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.plan import StatsPlan

ROW_BLOCK = 128
BLOCK_BLOCK = 128


@triton.jit
def received_kernel(
    rowsum_ptr, received_ptr, tile_range_ptr, lo_ptr, hi_ptr, rows, kv_heads, blocks,
    G: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write ``received[m, a]``: what packed row m gave to block a, tiles and key heads in order.

    One program owns ``BLOCK`` packed rows and one block, whose tiles lie in no other. Rows that see
    none of a tile were not written there and are not read.
    """
    block = tl.program_id(1)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for tile in tl.range(tl.load(tile_range_ptr + block), tl.load(tile_range_ptr + block + 1)):
        sees = (offs >= tl.load(lo_ptr + tile) * G) & (offs < tl.load(hi_ptr + tile) * G)
        for head in tl.range(0, kv_heads):
            given = rowsum_ptr + (tl.cast(tile, tl.int64) * kv_heads + head) * (rows * G)
            total += tl.load(given + offs, mask=sees, other=0.0)
    tl.store(received_ptr + offs.to(tl.int64) * blocks + block, total, mask=offs < rows * G)


@triton.jit
def mass_kernel(
    received_ptr, mass_ptr, row_range_ptr, blocks,
    G: tl.constexpr, ADD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write ``mass[b, a] = sum of received[m, a] over rows of b``; with ``ADD`` onto what is there.

    One program owns one b and ``BLOCK`` blocks a; rows are added in order.
    """
    of_block = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < blocks
    total = tl.zeros((BLOCK,), tl.float32)
    first, past = tl.load(row_range_ptr + of_block), tl.load(row_range_ptr + of_block + 1)
    for row in tl.range(first * G, past * G):
        total += tl.load(
            received_ptr + tl.cast(row, tl.int64) * blocks + offs, mask=mask, other=0.0
        )
    to = mass_ptr + of_block.to(tl.int64) * blocks + offs
    if ADD:
        total += tl.load(to, mask=mask, other=0.0)
    tl.store(to, total, mask=mask)


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
    received_kernel[(triton.cdiv(packed, ROW_BLOCK), blocks)](
        rowsum, received, plan.tile_range, plan.block_tiles.lo, plan.block_tiles.hi,
        plan.rows, kv_heads, blocks, G=group, BLOCK=ROW_BLOCK, num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
    mass_kernel[(blocks, triton.cdiv(blocks, BLOCK_BLOCK))](
        received, mass, plan.row_range, blocks,
        G=group, ADD=add, BLOCK=BLOCK_BLOCK, num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
