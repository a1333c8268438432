"""CPU backend: the C++ module ``recap_kernels._cpu``, built when the package is installed.

``RECAP_KERNELS_ISA`` (base, avx2, avx512) takes the place of the best instruction set found.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import torch

from recap_kernels.native import address, finalize_arguments, plan_arguments
from recap_kernels.plan import BlockStats

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import AttnCall, FinalizeCall

CHECKS_FINITE = True
"""NaN and inf in ``q`` and ``k`` are found where they are read, and refused before any output."""

_cpu: Any = None
_WHY = ""
try:
    _cpu = importlib.import_module("recap_kernels._cpu")
except ImportError as err:
    _WHY = str(err)

_TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}


def unavailable(device: str) -> str:
    """Return why this cannot run on tensors of that device type; "" when it can."""
    if device != "cpu":
        return f"works on a CPU, not on {device!r}"
    if _cpu is None:
        return f"is not built ({_WHY}): install again where a C++ compiler is"
    return ""


def isas() -> tuple[str, ...]:
    """Return the instruction sets that were built and that this processor has, best last."""
    return tuple(_cpu.isas())


def isa() -> str:
    """Return the instruction set in use."""
    return os.environ.get("RECAP_KERNELS_ISA") or isas()[-1]


def attn_stats(call: AttnCall) -> Tensor:
    """Run the kernel on as many threads as torch uses; the number changes no bit of the result."""
    q, k = call.q, call.k
    lse = call.lse if call.lse is not None else q.new_empty(q.shape[:2], dtype=torch.float32)
    arguments = {
        **plan_arguments(call.plan),
        "q": q.data_ptr(),
        "k": k.data_ptr(),
        "type": _TYPES[q.dtype],
        "q_token_stride": q.stride(0),
        "q_head_stride": q.stride(1),
        "k_token_stride": k.stride(0),
        "k_head_stride": k.stride(1),
        "heads": q.shape[1],
        "kv_heads": k.shape[1],
        "width": q.shape[2],
        "kv_indices": address(call.kv_indices),
        "wide_indices": call.kv_indices is not None and call.kv_indices.dtype == torch.int64,
        "scale": call.scale,
        "softcap": call.softcap,
        "sinks": address(call.sinks),
        "lse": address(call.lse),
        "lse_out": lse.data_ptr(),
        "rho": call.rho.data_ptr(),
        "mass": address(call.mass),
        "accumulate": call.accumulate,
        "threads": torch.get_num_threads(),
    }
    _cpu.attn_stats(arguments, os.environ.get("RECAP_KERNELS_ISA", ""))
    return lse


def finalize(call: FinalizeCall) -> BlockStats:
    """Clip and average, on one thread."""
    plan, rho = call.plan, call.rho
    block_mean = rho.new_empty(plan.blocks)
    block_mass = None if call.mass is None else torch.empty_like(call.mass)
    clip_value = rho.new_empty(1)
    row_count = rho.new_empty(plan.kv_len, dtype=torch.int32)
    done = BlockStats(block_mean, block_mass, clip_value, row_count)
    _cpu.finalize(finalize_arguments(call, done))
    return done
