"""Log-sum-exp of the sampled rows: partial sums over chunks of tokens, then one ordered merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from recap_kernels.triton.common import LOG2E, dots, load_keys, load_queries, logits2
from recap_kernels.triton.layer import constants, factors, packed_rows, strides

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import AttnCall
    from recap_kernels.triton.configs import Shape

MERGE_BLOCK = 64
MERGE_STEP = 16
_LOG2E = tl.constexpr(LOG2E)


@triton.jit
def _add_tokens(
    peak, total, queries, head, pos, begin, end,
    k_ptr, kv_ptr, k_slot_stride, k_head_stride, window, slope, cap,
    D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    PAGED: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr, MASKED: tl.constexpr,
    UPCAST: tl.constexpr,
):  # fmt: skip
    """Return the running maximum and sum ``[BLOCK_M]`` with tokens begin..end added."""
    for first in tl.range(begin, end, BLOCK_N):
        offs_n = first + tl.arange(0, BLOCK_N)
        mask_n = offs_n < end
        keys = load_keys(
            k_ptr, kv_ptr, offs_n, mask_n, head, k_slot_stride, k_head_stride, D, BLOCK_D, PAGED
        )
        exponents = logits2(dots(queries, keys, UPCAST), slope, cap, SOFTCAP)
        seen = mask_n[None, :]
        if MASKED:
            distance = pos[:, None] - offs_n[None, :]
            seen = seen & (distance >= 0)
            if WINDOW:
                seen = seen & (distance < window)
        exponents = tl.where(seen, exponents, float("-inf"))
        higher = tl.maximum(peak, tl.max(exponents, axis=1))
        base = tl.where(higher == float("-inf"), 0.0, higher)  # nothing seen yet: no inf - inf
        total = total * tl.exp2(peak - base) + tl.sum(tl.exp2(exponents - base[:, None]), axis=1)
        peak = higher
    return peak, total


@triton.jit
def lse_partial_kernel(
    q_ptr, k_ptr, peak_ptr, total_ptr, kv_ptr, order_ptr, pos_ptr,
    q_row_stride, q_head_stride, k_slot_stride, k_head_stride,
    rows, kv_len, kv_heads, chunk, window, slope, cap,
    G: tl.constexpr, D: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
    PAGED: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr, UPCAST: tl.constexpr,
):  # fmt: skip
    """Write maximum and sum of ``exp2(z - maximum)`` of one chunk of tokens, ``[chunk, h, m]``.

    The program owns ``BLOCK_M`` packed rows of a key head and streams the chunk's tokens by; the
    part every one of its rows sees takes no mask. A row that sees none of the chunk writes -inf, 0.
    """
    part = tl.program_id(0)
    head = tl.program_id(2)
    offs_m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    mask_m = offs_m < rows * G
    at = tl.minimum(offs_m // G, rows - 1)  # lanes out of range repeat the last row
    row = tl.load(order_ptr + at).to(tl.int32)
    pos = tl.load(pos_ptr + row)
    queries = load_queries(
        q_ptr, row, head * G + offs_m % G, mask_m, q_row_stride, q_head_stride, D, BLOCK_D
    )
    begin = part * chunk
    last = tl.minimum(tl.minimum(begin + chunk, kv_len), tl.max(pos) + 1)
    if WINDOW:  # both edges cut: everything is masked
        begin = tl.maximum(begin, tl.min(pos) - window + 1)
        whole = begin
    else:
        whole = tl.maximum(begin, tl.minimum(last, tl.min(pos) + 1))
    peak = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    if not WINDOW:
        peak, total = _add_tokens(
            peak, total, queries, head, pos, begin, whole,
            k_ptr, kv_ptr, k_slot_stride, k_head_stride, window, slope, cap,
            D, BLOCK_N, BLOCK_D, PAGED, WINDOW, SOFTCAP, False, UPCAST,
        )  # fmt: skip
    peak, total = _add_tokens(
        peak, total, queries, head, pos, whole, last,
        k_ptr, kv_ptr, k_slot_stride, k_head_stride, window, slope, cap,
        D, BLOCK_N, BLOCK_D, PAGED, WINDOW, SOFTCAP, True, UPCAST,
    )  # fmt: skip
    to = (part.to(tl.int64) * kv_heads + head) * (rows * G) + offs_m
    tl.store(peak_ptr + to, peak, mask=mask_m)
    tl.store(total_ptr + to, total, mask=mask_m)


@triton.jit
def lse_merge_kernel(
    peak_ptr, total_ptr, sink_ptr, order_ptr, lse_ptr, rows, kv_heads, parts,
    G: tl.constexpr, SINK: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """Write ``lse[row, head]``, natural log: chunks merged in order, then the head's sink.

    ``STEP`` chunks are loaded at once. A row that sees nothing and has no sink gets -inf.
    """
    head = tl.program_id(1)
    packed = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = packed < rows * G
    heads = head * G + packed % G
    peak = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in tl.range(0, parts, STEP):
        part = first + tl.arange(0, STEP)
        at = (part.to(tl.int64) * kv_heads + head)[:, None] * (rows * G) + packed[None, :]
        here = (part < parts)[:, None] & mask[None, :]
        peaks = tl.load(peak_ptr + at, mask=here, other=float("-inf"))
        totals = tl.load(total_ptr + at, mask=here, other=0.0)
        highest = tl.max(peaks, axis=0)
        base = tl.where(highest == float("-inf"), 0.0, highest)
        added = tl.sum(totals * tl.exp2(peaks - base[None, :]), axis=0)
        peak, total = _merge(peak, total, highest, added)
    if SINK:
        sink = tl.load(sink_ptr + heads, mask=mask, other=float("-inf")).to(tl.float32) * _LOG2E
        has_sink = tl.where(sink == float("-inf"), 0.0, 1.0)
        peak, total = _merge(peak, total, sink, has_sink)
    lse = tl.where(total > 0, (peak + tl.log2(tl.where(total > 0, total, 1.0))) / _LOG2E, peak)
    row = tl.load(order_ptr + packed // G, mask=mask, other=0)
    tl.store(lse_ptr + row * (kv_heads * G) + heads, lse, mask=mask)


@triton.jit
def _merge(peak, total, other, added):
    """Return maximum and sum of two parts of one row."""
    higher = tl.maximum(peak, other)
    base = tl.where(higher == float("-inf"), 0.0, higher)
    return higher, total * tl.exp2(peak - base) + added * tl.exp2(other - base)


def log_sum_exp(call: AttnCall, shape: Shape, chunk: int) -> Tensor:
    """Return float32 ``[W, Hq]``: natural log of each row's softmax denominator, sink included.

    Args:
        call: Queries, keys, rows and sinks.
        shape: Shape of a program.
        chunk: Tokens of a partial sum, a multiple of ``shape.tokens``.
    """
    rows, heads, _ = call.q.shape
    kv_heads, plan, packed = call.k.shape[1], call.plan, packed_rows(call)
    parts = triton.cdiv(plan.kv_len, chunk)
    lse = torch.empty(rows, heads, dtype=torch.float32, device=call.q.device)
    peak, total = lse.new_empty(2, parts, kv_heads, packed)
    lse_partial_kernel[(parts, triton.cdiv(packed, shape.rows), kv_heads)](
        call.q, call.k, peak, total,
        plan.order if call.kv_indices is None else call.kv_indices, plan.order, plan.q_pos,
        *strides(call), rows, plan.kv_len, kv_heads, chunk, plan.window, *factors(call),
        **constants(call), BLOCK_N=shape.tokens, BLOCK_M=shape.rows,
        num_warps=shape.warps, num_stages=shape.stages, enable_fp_fusion=True,
    )  # fmt: skip
    lse_merge_kernel[(triton.cdiv(packed, MERGE_BLOCK), kv_heads)](
        peak, total, lse if call.sinks is None else call.sinks, plan.order, lse,
        rows, kv_heads, parts, G=heads // kv_heads, SINK=call.sinks is not None,
        BLOCK=MERGE_BLOCK, STEP=MERGE_STEP, num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
    return lse
