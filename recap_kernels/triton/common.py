"""Device functions every attention kernel shares: the product of a tile, and its base-2 logits.

``tl.dot`` stands here and nowhere else. The interpreter keeps bfloat16 as integers and multiplies
their bits, so there ``UPCAST`` widens both sides to float32 first, which loses nothing.
"""

from __future__ import annotations

import math

import triton
import triton.language as tl

LOG2E = math.log2(math.e)


def is_interpreted() -> bool:
    """Return whether kernels run in Triton's interpreter, on a CPU."""
    return bool(triton.knobs.runtime.interpret)


@triton.jit
def dots(a, b, UPCAST: tl.constexpr):
    """Return ``a @ b.T`` in float32, for ``a [M, D]`` and ``b [N, D]``; 8-bit keys are widened."""
    if UPCAST:
        a, b = a.to(tl.float32), b.to(tl.float32)
    elif a.dtype.primitive_bitwidth < b.dtype.primitive_bitwidth:
        a = a.to(b.dtype)
    elif b.dtype.primitive_bitwidth < a.dtype.primitive_bitwidth:
        b = b.to(a.dtype)
    return tl.dot(a, tl.trans(b), input_precision="ieee")


@triton.jit
def logits2(products, slope, cap, SOFTCAP: tl.constexpr):
    """Return logits times log2(e), so that exp2 gives their exponential.

    Without a soft cap ``slope * products``. With one ``cap * tanh``, written with exp2 because the
    interpreter knows no tanh: ``tanh(x) = (e - 1) / (e + 1)`` with ``e = exp2(2 log2(e) x)``, where
    ``slope * products`` is that exponent. ``e - 1`` is exact near 0, where it would lose digits.
    """
    exponents = products * slope
    if SOFTCAP:
        e = tl.exp2(tl.minimum(exponents, 64.0))  # tanh is 1 there; exp2 would overflow later
        exponents = cap * ((e - 1.0) / (e + 1.0))
    return exponents


@triton.jit
def load_keys(
    k_ptr, kv_ptr, offs_n, mask_n, head, slot_stride, head_stride,
    D: tl.constexpr, BLOCK_D: tl.constexpr, PAGED: tl.constexpr,
):  # fmt: skip
    """Return keys ``[BLOCK_N, BLOCK_D]`` of one head; rows out of ``mask_n`` and padding are 0."""
    if PAGED:
        slots = tl.load(kv_ptr + offs_n, mask=mask_n, other=0).to(tl.int64)
    else:
        slots = offs_n.to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D)
    mask = mask_n[:, None]
    if BLOCK_D != D:
        mask = mask & (offs_d < D)[None, :]
    rows = k_ptr + tl.cast(head, tl.int64) * head_stride + slots * slot_stride
    return tl.load(rows[:, None] + offs_d[None, :], mask=mask, other=0.0)


@triton.jit
def load_queries(
    q_ptr, rows, heads, mask_m, row_stride, head_stride, D: tl.constexpr, BLOCK_D: tl.constexpr
):
    """Return queries ``[BLOCK_M, BLOCK_D]``; rows out of ``mask_m`` and padding are 0."""
    offs_d = tl.arange(0, BLOCK_D)
    mask = mask_m[:, None]
    if BLOCK_D != D:
        mask = mask & (offs_d < D)[None, :]
    start = q_ptr + rows.to(tl.int64) * row_stride + heads.to(tl.int64) * head_stride
    return tl.load(start[:, None] + offs_d[None, :], mask=mask, other=0.0)
