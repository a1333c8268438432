"""Copies sampled rows of queries and their log-sum-exp into rings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor


@triton.jit
def capture_kernel(
    q_ptr, ring_ptr, lse_ptr, lse_ring_ptr, slot_ptr,
    q_row, q_head, q_dim, ring_row, ring_head, ring_dim, lse_row, lse_head, kept_row, kept_head,
    heads, width, LSE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy row t to ``ring[slot[t]]``; a row without a slot ends its program at once."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_ptr + token).to(tl.int64)
    if slot >= 0:
        for first in tl.range(0, heads * width, BLOCK):
            offs = first + tl.arange(0, BLOCK)
            mask = offs < heads * width
            head, dim = (offs // width).to(tl.int64), (offs % width).to(tl.int64)
            from_ = q_ptr + token * q_row + head * q_head + dim * q_dim
            to = ring_ptr + slot * ring_row + head * ring_head + dim * ring_dim
            tl.store(to, tl.load(from_, mask=mask), mask=mask)
        if LSE:
            for first in tl.range(0, heads, BLOCK):
                head = first + tl.arange(0, BLOCK).to(tl.int64)
                mask = head < heads
                value = tl.load(lse_ptr + token * lse_row + head * lse_head, mask=mask)
                tl.store(lse_ring_ptr + slot * kept_row + head * kept_head, value, mask=mask)


BLOCK = 1024


def capture_rows(
    q_ring: Tensor, lse_ring: Tensor | None, q: Tensor, lse: Tensor | None, slot: Tensor
) -> None:
    """Copy rows as ``api.capture_rows_`` says; neither allocates nor synchronises."""
    tokens, heads, width = q.shape
    if not tokens:
        return
    has_lse = lse is not None and lse_ring is not None
    capture_kernel[(tokens,)](
        q, q_ring, lse if has_lse else slot, lse_ring if has_lse else slot, slot,
        *q.stride(), *q_ring.stride(),
        *(lse.stride() if lse is not None else (0, 0)),
        *(lse_ring.stride() if lse_ring is not None else (0, 0)),
        heads, width, LSE=has_lse, BLOCK=BLOCK, num_warps=4, enable_fp_fusion=True,
    )  # fmt: skip
