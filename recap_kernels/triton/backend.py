"""Triton as a backend of ``recap_kernels.backends``: on a GPU, or interpreted on a CPU for tests."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch

from recap_kernels.triton import capture
from recap_kernels.triton import finalize as finish
from recap_kernels.triton.colstats import add_columns
from recap_kernels.triton.common import is_interpreted
from recap_kernels.triton.configs import MAX_WIDTH, column_shape, lse_shape
from recap_kernels.triton.layer import packed_rows
from recap_kernels.triton.lse import log_sum_exp
from recap_kernels.triton.workspace import workspace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from torch import Tensor

    from recap_kernels.backends import AttnCall, FinalizeCall
    from recap_kernels.plan import BlockStats


def unavailable(device: str) -> str:
    """Return why this cannot run on tensors of that device type; "" when it can."""
    if device == "cpu":
        wanted = "set TRITON_INTERPRET=1 before the first import to run it interpreted"
        return "" if is_interpreted() else f"needs a GPU; {wanted}"
    if device != "cuda":
        return f"works on a GPU, not on {device!r}"
    return "" if torch.cuda.is_available() else "finds no GPU: torch.cuda.is_available() is False"


def _current(tensor: Tensor) -> AbstractContextManager[object]:
    """Return a context in which the tensor's GPU is the current one: Triton launches there."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def attn_stats(call: AttnCall) -> Tensor:
    """Write or add the sums of one layer, return the LSE. Column sums need it, so it comes first."""
    size, width = call.q.element_size(), call.q.shape[2]
    widest = MAX_WIDTH[size]
    if width > widest:
        wanted = f"of head_dim {widest} at most as {call.q.dtype} for backend 'triton'"
        raise ValueError(f"q must be {wanted}; got {width}")
    shape, space, lse = column_shape(size, call.plan.tile), workspace(call), call.lse
    with _current(call.q):
        if lse is None:
            paged = call.kv_indices is not None
            rows = lse_shape(size, packed_rows(call), paged=paged)
            lse = log_sum_exp(call, rows, space.chunk)
        add_columns(call, lse, shape, space)
    return lse


def finalize(call: FinalizeCall) -> BlockStats:
    """Return block means, mean mass, clip value and row counts."""
    with _current(call.rho):
        return finish.finalize(call)


def capture_rows(
    q_ring: Tensor, lse_ring: Tensor | None, q: Tensor, lse: Tensor | None, slot: Tensor
) -> None:
    """Copy rows as ``api.capture_rows_`` says."""
    with _current(q):
        capture.capture_rows(q_ring, lse_ring, q, lse, slot)
