"""From summed attention to block means: importance, its quantile by radix selection, means.

Every step is deterministic: counts are integers, sums are ordered, nothing is added to memory that
another program writes. The clip value has the same bits as on every other backend.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from recap_kernels.plan import BlockStats, Quantile

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import FinalizeCall

TOKENS = 2048
"""Tokens of one program; each counts its own histogram."""

MEAN_BLOCK = 1024
BINS = 256
_BINS = tl.constexpr(BINS)
_STEP = tl.constexpr(16)


@triton.jit
def _rows_below(pos_ptr, order_ptr, rows, positions, STEPS: tl.constexpr):
    """Return how many sampled rows lie below each position: a search in the sorted rows."""
    low = tl.zeros_like(positions)
    high = low + rows
    for _ in tl.static_range(STEPS):
        middle = (low + high) // 2
        searching = low < high
        row = tl.load(order_ptr + middle, mask=searching, other=0)
        below = searching & (tl.load(pos_ptr + row, mask=searching, other=0) < positions)
        low = tl.where(below, middle + 1, low)
        high = tl.where(below, high, tl.where(searching, middle, high))
    return low


@triton.jit
def importance_kernel(
    rho_ptr, exclude_ptr, pos_ptr, order_ptr, key_ptr, row_count_ptr,
    kv_len, rows, window, divisor, drop_first,
    STEPS: tl.constexpr, WINDOW: tl.constexpr, EXCLUDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write ``row_count[j]``, and the bits of ``rho[j] / (divisor * row_count[j])`` as ``key[j]``.

    Importance is never negative, so its bits are ordered as it is. A token that does not count has
    key -1. ``divisor`` is layers * heads.
    """
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < kv_len
    positions = offs.to(tl.int64)
    above = rows
    if WINDOW:
        above = _rows_below(pos_ptr, order_ptr, rows, positions + window, STEPS)
    row_count = (above - _rows_below(pos_ptr, order_ptr, rows, positions, STEPS)).to(tl.int32)
    counts = mask & (row_count > 0) & (offs >= drop_first)
    if EXCLUDE:
        counts = counts & (tl.load(exclude_ptr + offs, mask=mask, other=1) == 0)
    rho = tl.load(rho_ptr + offs, mask=mask, other=0.0)
    share = (tl.cast(divisor, tl.int64) * tl.maximum(row_count, 1)).to(tl.float32)
    key = tl.div_rn(rho, share).to(tl.int32, bitcast=True)
    tl.store(key_ptr + offs, tl.where(counts, key, -1), mask=mask)
    tl.store(row_count_ptr + offs, row_count, mask=mask)


@triton.jit
def _selected(histogram_ptr, state_ptr, parts, quantile_bits, FIRST: tl.constexpr):
    """Return prefix, rank within it and count, after the digit counted in ``histogram [parts, 256]``.

    The digit is the first whose running count reaches the rank. The rank of the first digit is
    ``max(1, ceil(q * n))`` in float64, q given by its bits.
    """
    bins = tl.arange(0, _BINS)
    several = tl.zeros((_STEP, _BINS), tl.int32)
    for first in tl.range(0, parts, _STEP):
        part = first + tl.arange(0, _STEP)
        at = histogram_ptr + part[:, None] * _BINS + bins[None, :]
        several += tl.load(at, mask=(part < parts)[:, None], other=0)
    counts = tl.sum(several, axis=0)
    counted = tl.sum(counts, axis=0)
    if FIRST:
        q = tl.cast(quantile_bits, tl.int64).to(tl.float64, bitcast=True)
        rank = tl.maximum(tl.ceil(q * counted.to(tl.float64)).to(tl.int32), 1)
        prefix = rank * 0
    else:
        prefix, rank, counted = tl.load(state_ptr), tl.load(state_ptr + 1), tl.load(state_ptr + 2)
    below = tl.cumsum(counts, axis=0) < rank
    digit = tl.sum(below.to(tl.int32), axis=0)
    rank -= tl.sum(tl.where(below, counts, 0), axis=0)
    return prefix * _BINS + digit, rank, counted


@triton.jit
def digit_kernel(
    key_ptr, before_ptr, histogram_ptr, state_ptr, next_ptr, kv_len, parts, quantile_bits,
    DIGIT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the histogram of the 8 bits ``DIGIT`` (0 is highest) of keys that match the prefix so far.

    Each program derives the prefix itself from the histograms before, the first keeps it.
    """
    part = tl.program_id(0)
    offs = part * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + offs, mask=offs < kv_len, other=-1)
    matches = key >= 0
    if DIGIT > 0:
        prefix, rank, counted = _selected(before_ptr, state_ptr, parts, quantile_bits, DIGIT == 1)
        if part == 0:
            tl.store(next_ptr, prefix)
            tl.store(next_ptr + 1, rank)
            tl.store(next_ptr + 2, counted)
        matches = matches & ((key >> (32 - 8 * DIGIT)) == prefix)
    digit = (key >> (24 - 8 * DIGIT)) & 255
    counts = tl.histogram(tl.where(matches, digit, 0), _BINS, mask=matches)
    tl.store(histogram_ptr + part * _BINS + tl.arange(0, _BINS), counts)


@triton.jit
def clip_kernel(histogram_ptr, state_ptr, clip_ptr, parts, quantile_bits, factor):
    """Write the clip value: ``factor`` times the selected importance; inf when no token counts."""
    key, _, counted = _selected(histogram_ptr, state_ptr, parts, quantile_bits, False)
    value = key.to(tl.float32, bitcast=True) * factor
    tl.store(clip_ptr, tl.where(counted > 0, value, float("inf")))


@triton.jit
def block_kernel(
    key_ptr, clip_ptr, offsets_ptr, row_range_ptr, mass_ptr, mean_ptr, mass_mean_ptr, blocks, heads,
    MASS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write ``mean[b]`` of the clipped importance of b's counted tokens, and row b of the mean mass.

    One program owns one block. Importance is added in float64.
    """
    block = tl.program_id(0)
    clip = tl.load(clip_ptr)
    total = tl.zeros((BLOCK,), tl.float64)
    tokens = tl.zeros((BLOCK,), tl.int32)
    end = tl.load(offsets_ptr + block + 1)
    for first in tl.range(tl.load(offsets_ptr + block), end, BLOCK):
        offs = first + tl.arange(0, BLOCK)
        key = tl.load(key_ptr + offs, mask=offs < end, other=-1)
        value = tl.minimum(key.to(tl.float32, bitcast=True), clip)
        total += tl.where(key >= 0, value, 0.0).to(tl.float64)
        tokens += (key >= 0).to(tl.int32)
    counted = tl.maximum(tl.sum(tokens, axis=0), 1).to(tl.float64)
    tl.store(mean_ptr + block, (tl.sum(total, axis=0) / counted).to(tl.float32))
    if MASS:
        rows = tl.load(row_range_ptr + block + 1) - tl.load(row_range_ptr + block)
        share = (tl.maximum(rows, 1).to(tl.int64) * heads).to(tl.float32)
        row = block.to(tl.int64) * blocks
        for first in tl.range(0, blocks, BLOCK):
            offs = first + tl.arange(0, BLOCK)
            given = tl.load(mass_ptr + row + offs, mask=offs < blocks, other=0.0)
            tl.store(mass_mean_ptr + row + offs, tl.div_rn(given, share), mask=offs < blocks)


def finalize(call: FinalizeCall) -> BlockStats:
    """Return block means, mean mass, clip value and row counts; see ``api.finalize``."""
    plan, device = call.plan, call.rho.device
    key, row_count = torch.empty(2, plan.kv_len, dtype=torch.int32, device=device)
    importance_kernel[(triton.cdiv(plan.kv_len, TOKENS),)](
        call.rho, call.rho if call.exclude is None else call.exclude.view(torch.int8),
        plan.q_pos, plan.order, key, row_count,
        plan.kv_len, plan.rows, plan.window, call.layers * call.heads, call.drop_first,
        STEPS=plan.rows.bit_length(), WINDOW=plan.window > 0, EXCLUDE=call.exclude is not None,
        BLOCK=TOKENS, num_warps=8, enable_fp_fusion=True,
    )  # fmt: skip
    clip_value = _clip_value(key, call)
    mean = call.rho.new_empty(plan.blocks)
    mass = None if call.mass is None else torch.empty_like(call.mass)
    if plan.blocks:
        block_kernel[(plan.blocks,)](
            key, clip_value, plan.block_offsets, plan.row_range,
            call.rho if call.mass is None else call.mass, mean, mean if mass is None else mass,
            plan.blocks, call.heads, MASS=mass is not None, BLOCK=MEAN_BLOCK,
            num_warps=4, enable_fp_fusion=True,
        )  # fmt: skip
    return BlockStats(mean, mass, clip_value, row_count)


def _clip_value(key: Tensor, call: FinalizeCall) -> Tensor:
    """Return float32 ``[1]``: where to cut these keys."""
    clip_value = torch.full((1,), torch.inf, dtype=torch.float32, device=key.device)
    if call.clip is None:
        return clip_value
    q, factor = (call.clip.q, 1.0) if isinstance(call.clip, Quantile) else (0.5, call.clip.factor)
    (bits,) = struct.unpack("<q", struct.pack("<d", q))  # a float argument would lose half of it
    parts = triton.cdiv(key.numel(), TOKENS)
    histograms = key.new_empty(4, parts, BINS)
    states = key.new_empty(4, 3)
    for digit in range(4):
        before = max(0, digit - 1)
        digit_kernel[(parts,)](
            key, histograms[before], histograms[digit], states[before], states[digit],
            key.numel(), parts, bits, DIGIT=digit, BLOCK=TOKENS,
            num_warps=8, enable_fp_fusion=True,
        )  # fmt: skip
    clip_kernel[(1,)](
        histograms[3], states[3], clip_value, parts, bits, factor,
        num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
    return clip_value
