"""What the launches over one layer's queries and keys have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recap_kernels.triton.common import LOG2E, is_interpreted

if TYPE_CHECKING:
    from recap_kernels.backends import AttnCall


def packed_rows(call: AttnCall) -> int:
    """Return W * G: the rows of the product with one key head."""
    rows, heads, _ = call.q.shape
    return rows * (heads // call.k.shape[1])


def block_width(width: int) -> int:
    """Return the power of two, 16 at least, that head_dim is padded to."""
    return max(16, 1 << (width - 1).bit_length())


def factors(call: AttnCall) -> tuple[float, float]:
    """Return slope and cap as ``common.logits2`` takes them: both for base 2."""
    if call.softcap:
        return 2 * LOG2E * call.scale / call.softcap, LOG2E * call.softcap
    return LOG2E * call.scale, 0.0


def strides(call: AttnCall) -> tuple[int, int, int, int]:
    """Return the strides of rows and heads of queries, of slots and heads of keys."""
    return call.q.stride(0), call.q.stride(1), call.k.stride(0), call.k.stride(1)


def constants(call: AttnCall) -> dict[str, int | bool]:
    """Return the compile-time arguments that the kernels over queries and keys share."""
    return {
        "G": call.q.shape[1] // call.k.shape[1],
        "D": call.q.shape[2],
        "BLOCK_D": block_width(call.q.shape[2]),
        "PAGED": call.kv_indices is not None,
        "WINDOW": call.plan.window > 0,
        "SOFTCAP": call.softcap > 0,
        "UPCAST": is_interpreted() and call.q.dtype != torch.float16,
    }
