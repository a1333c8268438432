"""CUDA backend: row capture and finalize in the C++ module ``recap_kernels._cuda``.

It is built when the package is installed where nvcc is; Triton does the same without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import torch

from recap_kernels.native import address, finalize_arguments
from recap_kernels.plan import BlockStats

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import FinalizeCall

_cuda: Any = None
_WHY = ""
try:
    _cuda = importlib.import_module("recap_kernels._cuda")
except ImportError as err:
    _WHY = str(err)


def unavailable(device: str) -> str:
    """Return why this cannot run on tensors of that device type; "" when it can."""
    if _cuda is None:
        return f"is not built ({_WHY}): install again where nvcc is"
    if device != "cuda":
        return f"works on a GPU, not on {device!r}"
    return "" if _cuda.device_count() else "finds no GPU or no driver for it"


def finalize(call: FinalizeCall) -> BlockStats:
    """Clip and average on the stream that is current; nothing is waited for."""
    plan, rho = call.plan, call.rho
    parts = -(-plan.kv_len // _cuda.PART_TOKENS)
    keys, row_count = rho.new_empty((2, plan.kv_len), dtype=torch.int32)
    histograms = keys.new_empty((4, parts, 256))
    states = keys.new_empty((4, 3))
    block_mean, clip_value = rho.new_empty(plan.blocks), rho.new_empty(1)
    block_mass = None if call.mass is None else torch.empty_like(call.mass)
    done = BlockStats(block_mean, block_mass, clip_value, row_count)
    arguments = {
        **finalize_arguments(call, done),
        "keys": keys.data_ptr(),
        "histograms": histograms.data_ptr(),
        "states": states.data_ptr(),
    }
    _cuda.finalize(arguments, rho.device.index, _stream(rho))
    return done


def capture_rows(
    q_ring: Tensor, lse_ring: Tensor | None, q: Tensor, lse: Tensor | None, slot: Tensor
) -> None:
    """Copy rows as ``api.capture_rows_`` says; neither allocates nor waits.

    Raises:
        ValueError: The heads of a row do not lie one after another.
    """
    for name, rows in (("q", q), ("q_ring", q_ring), ("lse", lse), ("lse_ring", lse_ring)):
        if rows is not None and len(rows) and not rows[0].is_contiguous():
            raise ValueError(f"{name} must have contiguous rows; got strides {rows.stride()}")
    if not slot.is_contiguous():
        raise ValueError(f"slot must be contiguous; got strides {slot.stride()}")
    size = q.element_size()
    _cuda.capture_rows(
        q.data_ptr(),
        q_ring.data_ptr(),
        address(lse),
        address(lse_ring),
        slot.data_ptr(),
        len(slot),
        q.shape[1] * q.shape[2] * size,
        0 if lse is None else lse.shape[1] * 4,
        q.stride(0) * size,
        q_ring.stride(0) * size,
        0 if lse is None else lse.stride(0) * 4,
        0 if lse_ring is None else lse_ring.stride(0) * 4,
        q.device.index,
        _stream(q),
    )


def _stream(tensor: Tensor) -> int:
    """Return the handle of the stream that is current on the tensor's device."""
    return torch.cuda.current_stream(tensor.device).cuda_stream
