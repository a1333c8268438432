"""Column sums of the attention of the sampled rows: what each token received, per key head."""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

from recap_kernels.triton.common import LOG2E, dots, load_keys, load_queries, logits2
from recap_kernels.triton.layer import constants, factors, packed_rows, strides

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import AttnCall
    from recap_kernels.plan import Tiles
    from recap_kernels.triton.configs import Shape

_LOG2E = tl.constexpr(LOG2E)


@triton.jit
def _add_rows(
    sums, keys, offs_n, mask_n, tile, head, begin, end,
    q_ptr, lse_ptr, rowsum_ptr, order_ptr, pos_ptr,
    q_row_stride, q_head_stride, rows, kv_heads, window, slope, cap,
    G: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
    WINDOW: tl.constexpr, SOFTCAP: tl.constexpr, MASS: tl.constexpr, MASKED: tl.constexpr,
    UPCAST: tl.constexpr,
):  # fmt: skip
    """Return ``sums[BLOCK_N, BLOCK_M]`` with the weights of packed rows begin..end added.

    Packed row m is query head ``m % G`` of the group at sorted row ``m // G``. A lane out of range
    has log-sum-exp +inf and so weight 0. ``MASKED`` also drops what a row cannot see.
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
            to = (tile.to(tl.int64) * kv_heads + head) * (rows * G)
            tl.store(rowsum_ptr + to + offs_m, given, mask=mask_m)
    return sums


@triton.jit
def column_kernel(
    q_ptr, k_ptr, lse_ptr, part_ptr, rowsum_ptr, kv_ptr, order_ptr, pos_ptr,
    start_ptr, end_ptr, lo_ptr, mid_ptr, hi_ptr,
    q_row_stride, q_head_stride, k_slot_stride, k_head_stride,
    rows, kv_len, kv_heads, window, slope, cap,
    G: tl.constexpr, D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
    PAGED: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr, MASS: tl.constexpr,
    UPCAST: tl.constexpr,
):  # fmt: skip
    """Write ``part[h, j] = sum_m exp(z[m, j] - lse[m])`` for one tile of tokens and one key head.

    The program owns its tile: keys stay, the packed rows that see some of it stream by. Weights add
    up elementwise in float32 ``[BLOCK_N, BLOCK_M]`` and are summed across lanes once, at the end.
    With ``MASS`` it also writes ``rowsum[tile, h, m]``, what each of those rows gave to the tile;
    entries of rows that see none of it are not written. Nothing is added to memory another program
    writes, so the result does not depend on the order programs run in.
    """
    tile = tl.program_id(0)
    head = tl.program_id(1)
    start, end = tl.load(start_ptr + tile), tl.load(end_ptr + tile)
    lo, mid, hi = tl.load(lo_ptr + tile), tl.load(mid_ptr + tile), tl.load(hi_ptr + tile)
    offs_n = start + tl.arange(0, BLOCK_N)
    mask_n = offs_n < end
    keys = load_keys(
        k_ptr, kv_ptr, offs_n, mask_n, head, k_slot_stride, k_head_stride, D, BLOCK_D, PAGED
    )
    sums = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
    sums = _add_rows(
        sums, keys, offs_n, mask_n, tile, head, lo * G, mid * G,
        q_ptr, lse_ptr, rowsum_ptr, order_ptr, pos_ptr,
        q_row_stride, q_head_stride, rows, kv_heads, window, slope, cap,
        G, D, BLOCK_M, BLOCK_D, WINDOW, SOFTCAP, MASS, True, UPCAST,
    )  # fmt: skip
    if not WINDOW:
        sums = _add_rows(
            sums, keys, offs_n, mask_n, tile, head, mid * G, hi * G,
            q_ptr, lse_ptr, rowsum_ptr, order_ptr, pos_ptr,
            q_row_stride, q_head_stride, rows, kv_heads, window, slope, cap,
            G, D, BLOCK_M, BLOCK_D, WINDOW, SOFTCAP, MASS, False, UPCAST,
        )  # fmt: skip
    to = part_ptr + head.to(tl.int64) * kv_len
    tl.store(to + offs_n, tl.sum(sums, axis=1), mask=mask_n)


def column_sums(
    call: AttnCall, lse: Tensor, tiles: Tiles, shape: Shape, *, mass: bool
) -> tuple[Tensor, Tensor | None]:
    """Return what each token received per key head and, for ``mass``, what each row gave to a tile.

    Args:
        call: Queries, keys and rows.
        lse: float32 ``[W, Hq]``, contiguous, natural log.
        tiles: The plan's; for ``mass`` those that cross no edge of a block.
        shape: Shape of a program; its tokens are the size of a tile.
        mass: Whether to return the second.

    Returns:
        float32 ``[Hkv, N]``; float32 ``[T, Hkv, W * G]`` (unwritten where a row sees none of a
        tile) or None.
    """
    kv_heads, count, plan = call.k.shape[1], tiles.start.numel(), call.plan
    part = lse.new_empty(kv_heads, plan.kv_len)
    rowsum = lse.new_empty(count if mass else 0, kv_heads, packed_rows(call))
    column_kernel[(count, kv_heads)](
        call.q, call.k, lse, part, rowsum,
        plan.order if call.kv_indices is None else call.kv_indices, plan.order, plan.q_pos,
        tiles.start, tiles.end, tiles.lo, tiles.mid, tiles.hi,
        *strides(call), plan.rows, plan.kv_len, kv_heads, plan.window, *factors(call),
        **constants(call), BLOCK_N=shape.tokens, BLOCK_M=shape.rows, MASS=mass,
        num_warps=shape.warps, num_stages=shape.stages, enable_fp_fusion=True,
    )  # fmt: skip
    return part, rowsum if mass else None
