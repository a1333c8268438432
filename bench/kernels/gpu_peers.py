"""What the kernels are compared with on a GPU: eager torch, SDPA, FlashAttention, keys_values' method.

``score_sums`` is our own writing of the method of awslabs/keys_values (``_score_sum_kernel``, read at
its source): keys stay, the whole packed query tile streams by, a known log-sum-exp, column sums taken
across lanes at every step; its inputs are copied to be contiguous per head, and tiles are those tuned
there for an A100. It is a baseline of the benchmark and no part of the package.
"""
# ruff: noqa: N803, PLR0913 - compile-time arguments are upper case, pointer lists long

from __future__ import annotations

import importlib.util
import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from recap_kernels.triton.common import LOG2E, is_interpreted


def eager(q: Tensor, k: Tensor, q_pos: Tensor) -> Tensor:
    """Return column sums by way of the whole probability matrix, as kvpress SnapKV scores."""
    _, heads, width = q.shape
    tokens, kv_heads, _ = k.shape
    keys = k.transpose(0, 1).repeat_interleave(heads // kv_heads, 0)
    logits = (q.transpose(0, 1) @ keys.transpose(1, 2)).float() / math.sqrt(width)
    seen = q_pos[:, None] >= torch.arange(tokens, device=q.device)
    weights = torch.softmax(logits.masked_fill(~seen, -torch.inf), dim=-1)
    return weights.sum((0, 1))


def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the attention output of the same rows, without a mask: a forward pass over K and V."""
    out: Tensor = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None], enable_gqa=True
    )
    return out


def has_flash_attention() -> bool:
    """Return whether the package flash_attn is installed."""
    return importlib.util.find_spec("flash_attn") is not None


def flash_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return FlashAttention's output of the same rows."""
    from flash_attn import flash_attn_func

    out: Tensor = flash_attn_func(q[None], k[None], v[None])
    return out


@triton.jit
def _score_sum(
    q_ptr, k_ptr, lse_ptr, sum_ptr, packed, tokens, shift, slope,
    G: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr,
    UPCAST: tl.constexpr,
):  # fmt: skip
    """One program: a tile of tokens of one key head against all its packed rows."""
    head = tl.program_id(1).to(tl.int64)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    mask_n = offs_n < tokens
    at = k_ptr + head * tokens * D + offs_n[:, None] * D + offs_d[None, :]
    keys = tl.load(at, mask=mask_n[:, None], other=0.0)
    received = tl.zeros((BLOCK_N,), tl.float32)
    for first in range(0, packed, BLOCK_M):
        offs_m = first + tl.arange(0, BLOCK_M)
        mask_m = offs_m < packed
        at = q_ptr + head * packed * D + offs_m[:, None] * D + offs_d[None, :]
        queries = tl.load(at, mask=mask_m[:, None], other=0.0)
        lse = tl.load(lse_ptr + head * packed + offs_m, mask=mask_m, other=0.0)
        if UPCAST:
            logits = tl.dot(queries.to(tl.float32), tl.trans(keys.to(tl.float32)))
        else:
            logits = tl.dot(queries, tl.trans(keys))
        weights = tl.exp2(logits * slope - lse[:, None])
        seen = offs_n[None, :] <= shift + (offs_m // G)[:, None]
        received += tl.sum(tl.where(seen & mask_m[:, None], weights, 0.0), axis=0)
    tl.store(sum_ptr + head * tokens + offs_n, received, mask=mask_n)


def score_sums(q: Tensor, k: Tensor, lse: Tensor) -> Tensor:
    """Return ``[Hkv, N]`` column sums of rows that end the history, their LSE known.

    Args:
        q: ``[W, Hq, D]``: the last W rows.
        k: ``[N, Hkv, D]``.
        lse: float32 ``[W, Hq]``, natural log.
    """
    rows, heads, width = q.shape
    tokens, kv_heads, _ = k.shape
    group = heads // kv_heads
    packed_q = q.view(rows, kv_heads, group, width).permute(1, 0, 2, 3).contiguous()
    packed_k = k.permute(1, 0, 2).contiguous()
    packed_lse = lse.view(rows, kv_heads, group).permute(1, 0, 2).contiguous() * LOG2E
    sums = torch.empty(kv_heads, tokens, dtype=torch.float32, device=q.device)
    block_n, block_m = (256, 64) if width <= 64 else (128, 32)
    _score_sum[(triton.cdiv(tokens, block_n), kv_heads)](
        packed_q, packed_k, packed_lse, sums, rows * group, tokens, tokens - rows,
        LOG2E / math.sqrt(width), G=group, D=width, BLOCK_N=block_n, BLOCK_M=block_m,
        UPCAST=is_interpreted(), num_warps=4, num_stages=2,
    )  # fmt: skip
    return sums
