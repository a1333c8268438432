"""Triton as a backend of ``recap_kernels.backends``: on a GPU, or interpreted on a CPU for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from recap_kernels.triton.capture import capture_rows
from recap_kernels.triton.colstats import column_sums
from recap_kernels.triton.common import is_interpreted
from recap_kernels.triton.configs import column_shape, lse_shape
from recap_kernels.triton.finalize import finalize
from recap_kernels.triton.layer import MAX_WIDTH, packed_rows
from recap_kernels.triton.lse import log_sum_exp
from recap_kernels.triton.mass import add_mass
from recap_kernels.triton.reduce import add_heads

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import AttnCall

__all__ = ["attn_stats", "capture_rows", "finalize", "unavailable"]


def unavailable(device: str) -> str:
    """Return why this cannot run on tensors of that device type; "" when it can."""
    if device == "cpu":
        wanted = "set TRITON_INTERPRET=1 before the first import to run it interpreted"
        return "" if is_interpreted() else f"needs a GPU; {wanted}"
    if device != "cuda":
        return f"works on a GPU, not on {device!r}"
    return "" if torch.cuda.is_available() else "finds no GPU: torch.cuda.is_available() is False"


def attn_stats(call: AttnCall) -> Tensor:
    """Write or add the sums of one layer, return the LSE. Column sums need it, so it comes first."""
    width, mass = call.q.shape[2], call.mass
    if width > MAX_WIDTH:
        raise ValueError(
            f"q must be of head_dim {MAX_WIDTH} at most for backend 'triton'; got {width}"
        )
    plan, size = call.plan, call.q.element_size()
    shape = column_shape(size, plan.tile)
    lse = call.lse
    if lse is None:
        lse = log_sum_exp(call, lse_shape(size, packed_rows(call)))
    tiles = plan.tiles if mass is None else plan.block_tiles
    part, rowsum = column_sums(call, lse, tiles, shape, mass=mass is not None)
    add_heads(part, call.rho, add=call.accumulate)
    if mass is not None and rowsum is not None:
        add_mass(rowsum, mass, plan, add=call.accumulate)
    return lse
