"""Ordered sum over key heads: from column sums per head to the attention each token received."""

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 1024


@triton.jit
def head_sum_kernel(part_ptr, rho_ptr, kv_len, kv_heads, ADD: tl.constexpr, BLOCK: tl.constexpr):
    """Write ``rho[j] = sum_h part[h, j]``, heads in order; with ``ADD`` onto what stands there."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < kv_len
    total = tl.zeros((BLOCK,), tl.float32)
    for head in tl.range(0, kv_heads):
        total += tl.load(part_ptr + tl.cast(head, tl.int64) * kv_len + offs, mask=mask, other=0.0)
    if ADD:
        total += tl.load(rho_ptr + offs, mask=mask, other=0.0)
    tl.store(rho_ptr + offs, total, mask=mask)


def add_heads(part: Tensor, rho: Tensor, *, add: bool) -> None:
    """Write the sum over heads of ``part [Hkv, N]`` to ``rho [N]``, or add it; both float32."""
    kv_heads, kv_len = part.shape
    head_sum_kernel[(triton.cdiv(kv_len, BLOCK),)](
        part, rho, kv_len, kv_heads, ADD=add, BLOCK=BLOCK, num_warps=4, enable_fp_fusion=True
    )
