"""Column sums of the attention of the sampled rows: what each token received, per key head."""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from recap_kernels.triton.common import LOG2E, dots, load_keys, load_queries, logits2
from recap_kernels.triton.layer import constants, factors, strides
from recap_kernels.triton.mass import add_mass, add_received
from recap_kernels.triton.reduce import add_heads

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import AttnCall
    from recap_kernels.triton.configs import Shape
    from recap_kernels.triton.workspace import Workspace

_LOG2E = tl.constexpr(LOG2E)


@triton.jit
def _add_rows(
    sums, keys, offs_n, mask_n, head, begin, end,
    q_ptr, lse_ptr, rowsum_ptr, order_ptr, pos_ptr,
    q_row_stride, q_head_stride, kv_heads, window, slope, cap,
    G: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
    WINDOW: tl.constexpr, SOFTCAP: tl.constexpr, MASS: tl.constexpr, MASKED: tl.constexpr,
    UPCAST: tl.constexpr,
):  # fmt: skip
    """Return ``sums[BLOCK_N, BLOCK_M]`` with the weights of packed rows begin..end added.

    Packed row m is query head ``m % G`` of the group at sorted row ``m // G``. A lane out of range
    has log-sum-exp +inf and so weight 0. ``MASKED`` also drops what a row cannot see. With ``MASS``
    what each row gave is written to ``rowsum``: over its query heads where whole rows fill a step.
    """
    for first in tl.range(begin, end, BLOCK_M):
        offs_m = first + tl.arange(0, BLOCK_M)
        mask_m = offs_m < end
        at = offs_m // G
        row = tl.load(order_ptr + at, mask=mask_m, other=0).to(tl.int32)
        heads = head * G + offs_m % G
        queries = load_queries(q_ptr, row, heads, mask_m, q_row_stride, q_head_stride, D, BLOCK_D)
        lse = tl.load(lse_ptr + row * (kv_heads * G) + heads, mask=mask_m, other=float("inf"))
        exponents = logits2(dots(keys, queries, UPCAST), slope, cap, SOFTCAP)
        weights = tl.exp2(exponents - (lse * _LOG2E)[None, :])
        if MASKED:
            distance = tl.load(pos_ptr + row, mask=mask_m, other=-1)[None, :] - offs_n[:, None]
            seen = distance >= 0
            if WINDOW:
                seen = seen & (distance < window)
            weights = tl.where(seen, weights, 0.0)
        sums += weights
        if MASS:
            given = tl.sum(tl.where(mask_n[:, None], weights, 0.0), axis=0)
            if BLOCK_M % G == 0:
                given = tl.sum(tl.reshape(given, (BLOCK_M // G, G)), axis=1)
                whole = first // G + tl.arange(0, BLOCK_M // G)
                tl.store(rowsum_ptr + whole, given, mask=whole < end // G)
            else:
                tl.store(rowsum_ptr + offs_m, given, mask=mask_m)
    return sums


@triton.jit(do_not_specialize=["first_tile", "first_head"])
def column_kernel(
    q_ptr, k_ptr, lse_ptr, part_ptr, rowsum_ptr, kv_ptr, order_ptr, pos_ptr,
    start_ptr, end_ptr, lo_ptr, mid_ptr, hi_ptr,
    q_row_stride, q_head_stride, k_slot_stride, k_head_stride,
    first_tile, first_head, rows, kv_len, kv_heads, window, slope, cap,
    G: tl.constexpr, D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
    PAGED: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr, MASS: tl.constexpr,
    UPCAST: tl.constexpr,
):  # fmt: skip
    """Write ``part[h, j] = sum_m exp(z[m, j] - lse[m])`` for one tile of tokens and one key head.

    The program owns its tile: keys stay, the packed rows that see some of it stream by. Weights add
    up elementwise in float32 ``[BLOCK_N, BLOCK_M]`` and are summed across lanes once, at the end.
    With ``MASS`` it also writes ``rowsum[tile, h, w]``, what each of those rows gave to the tile;
    entries of rows that see none of it are not written. Nothing is added to memory another program
    writes, so the result does not depend on the order programs run in. Tiles and key heads begin at
    ``first_tile`` and ``first_head``; ``part`` and ``rowsum`` hold those of one launch.
    """
    tile = first_tile + tl.program_id(0)
    head = first_head + tl.program_id(1)
    start, end = tl.load(start_ptr + tile), tl.load(end_ptr + tile)
    lo, mid, hi = tl.load(lo_ptr + tile), tl.load(mid_ptr + tile), tl.load(hi_ptr + tile)
    offs_n = start + tl.arange(0, BLOCK_N)
    mask_n = offs_n < end
    keys = load_keys(
        k_ptr, kv_ptr, offs_n, mask_n, head, k_slot_stride, k_head_stride, D, BLOCK_D, PAGED
    )
    if MASS:
        pair = tl.program_id(0).to(tl.int64) * tl.num_programs(1) + tl.program_id(1)
        rowsum_ptr += pair * (rows if BLOCK_M % G == 0 else rows * G)
    sums = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    sums = _add_rows(
        sums, keys, offs_n, mask_n, head, lo * G, mid * G,
        q_ptr, lse_ptr, rowsum_ptr, order_ptr, pos_ptr,
        q_row_stride, q_head_stride, kv_heads, window, slope, cap,
        G, D, BLOCK_M, BLOCK_D, WINDOW, SOFTCAP, MASS, True, UPCAST,
    )  # fmt: skip
    if not WINDOW:
        sums = _add_rows(
            sums, keys, offs_n, mask_n, head, mid * G, hi * G,
            q_ptr, lse_ptr, rowsum_ptr, order_ptr, pos_ptr,
            q_row_stride, q_head_stride, kv_heads, window, slope, cap,
            G, D, BLOCK_M, BLOCK_D, WINDOW, SOFTCAP, MASS, False, UPCAST,
        )  # fmt: skip
    to = part_ptr + tl.program_id(1).to(tl.int64) * kv_len
    tl.store(to + offs_n, tl.sum(sums, axis=1), mask=mask_n)


def add_columns(call: AttnCall, lse: Tensor, shape: Shape, space: Workspace) -> None:
    """Write or add what each token received to ``call.rho``, and block mass to ``call.mass``.

    Args:
        call: Queries, keys, rows and where to add.
        lse: float32 ``[W, Hq]``, contiguous, natural log.
        shape: Shape of a program; its tokens are the size of a tile.
        space: How many tiles and key heads one launch takes.
    """
    plan, kv_heads, mass = call.plan, call.k.shape[1], call.mass
    tiles = plan.tiles if mass is None else plan.block_tiles
    count = tiles.start.numel()
    pieces, blocks = (0, 0) if mass is None else (space.tiles, plan.blocks)
    part = lse.new_empty(space.heads, plan.kv_len)
    rowsum = lse.new_empty(pieces, space.heads, plan.rows * space.entries)
    received = lse.new_zeros(plan.rows, blocks)
    for head in range(0, kv_heads, space.heads):
        heads = min(space.heads, kv_heads - head)
        for first in range(0, count, space.tiles):
            past = min(first + space.tiles, count)
            column_kernel[(past - first, heads)](
                call.q, call.k, lse, part, rowsum,
                plan.order if call.kv_indices is None else call.kv_indices, plan.order, plan.q_pos,
                tiles.start, tiles.end, tiles.lo, tiles.mid, tiles.hi,
                *strides(call), first, head,
                plan.rows, plan.kv_len, kv_heads, plan.window, *factors(call),
                **constants(call), BLOCK_N=shape.tokens, BLOCK_M=shape.rows, MASS=mass is not None,
                num_warps=shape.warps, num_stages=shape.stages, enable_fp_fusion=True,
            )  # fmt: skip
            if mass is not None:
                add_received(rowsum, received, plan, (first, past), (heads, space.entries))
        add_heads(part[:heads], call.rho, add=call.accumulate or head > 0)
    if mass is not None:
        add_mass(received, mass, plan, add=call.accumulate)
