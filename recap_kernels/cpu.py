"""CPU backend: the C++ module ``recap_kernels._cpu``, built when the package is installed.

``RECAP_KERNELS_ISA`` (base, avx2, avx512) takes the place of the best instruction set found.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

import torch

from recap_kernels.plan import BlockStats, Quantile, TimesMedian

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import AttnCall, FinalizeCall
    from recap_kernels.plan import StatsPlan

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
        **_plan_arguments(call.plan),
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
        "kv_indices": _address(call.kv_indices),
        "wide_indices": call.kv_indices is not None and call.kv_indices.dtype == torch.int64,
        "scale": call.scale,
        "softcap": call.softcap,
        "sinks": _address(call.sinks),
        "lse": _address(call.lse),
        "lse_out": lse.data_ptr(),
        "rho": call.rho.data_ptr(),
        "mass": _address(call.mass),
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
    arguments = {
        **_plan_arguments(plan),
        "rho": rho.data_ptr(),
        "mass": _address(call.mass),
        "layers": call.layers,
        "heads": call.heads,
        "drop_first": call.drop_first,
        "quantile": call.clip.q if isinstance(call.clip, Quantile) else 0.0,
        "times_median": call.clip.factor if isinstance(call.clip, TimesMedian) else 0.0,
        "exclude": _address(call.exclude),
        "block_mean": block_mean.data_ptr(),
        "block_mass": _address(block_mass),
        "clip_value": clip_value.data_ptr(),
        "row_count": row_count.data_ptr(),
    }
    _cpu.finalize(arguments)
    return BlockStats(block_mean, block_mass, clip_value, row_count)


def _address(tensor: Tensor | None) -> int:
    """Return where the numbers are, 0 for None."""
    return 0 if tensor is None else tensor.data_ptr()


def _plan_arguments(plan: StatsPlan) -> dict[str, int]:
    return {
        "q_pos": plan.q_pos.data_ptr(),
        "order": plan.order.data_ptr(),
        "row_range": plan.row_range.data_ptr(),
        "block_offsets": plan.block_offsets.data_ptr(),
        "rows": plan.rows,
        "kv_len": plan.kv_len,
        "blocks": plan.blocks,
        "window": plan.window,
    }
