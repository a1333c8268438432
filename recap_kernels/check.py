"""What the kernels refuse, said with the argument's name, what came and what was wanted.

Shapes, dtypes, strides and devices are read on every call and also while torch traces. Values are
read on a CPU always and on a GPU only with ``RECAP_KERNELS_DEBUG=1``, since that synchronises.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.plan import StatsPlan

ROW_TYPES = (torch.float32, torch.bfloat16, torch.float16)
FP8_TYPES = (torch.float8_e4m3fn, torch.float8_e5m2)
INTEGERS = (torch.int32, torch.int64)


def fail(name: str, wanted: str, got: object) -> None:
    """Raise the ``ValueError`` that every check here raises."""
    raise ValueError(f"{name} must be {wanted}; got {got}")


def _tensor(
    name: str,
    value: Tensor | None,
    shape: tuple[int, ...],
    dtypes: tuple[torch.dtype, ...],
    device: torch.device,
) -> None:
    """Check an optional tensor that has to be contiguous."""
    if value is None:
        return
    if tuple(value.shape) != shape:
        fail(name, f"of shape {list(shape)}", list(value.shape))
    if value.dtype not in dtypes:
        fail(name, " or ".join(map(str, dtypes)), value.dtype)
    if value.device != device:
        fail(name, f"on {device}", value.device)
    if not value.is_contiguous():
        fail(name, "contiguous", f"strides {value.stride()}")


def _heads(name: str, value: Tensor, dtypes: tuple[torch.dtype, ...]) -> None:
    """Check a ``[tokens, heads, head_dim]`` tensor whose vectors are contiguous."""
    if value.dim() != 3 or 0 in value.shape[1:]:
        fail(name, "[tokens, heads, head_dim] with no empty head", list(value.shape))
    if value.dtype not in dtypes:
        fail(name, " or ".join(map(str, dtypes)), value.dtype)
    if value.shape[2] > 1 and value.stride(2) != 1:
        fail(name, "contiguous in its last dimension", f"strides {value.stride()}")


def _inputs(q: Tensor, k: Tensor, plan: StatsPlan) -> None:
    _heads("q", q, ROW_TYPES)
    _heads("k", k, (q.dtype, *FP8_TYPES) if q.is_cuda else (q.dtype,))
    if q.shape[0] != plan.rows:
        fail("q", f"of {plan.rows} rows as the plan's q_pos", f"{q.shape[0]} rows")
    if k.shape[2] != q.shape[2]:
        fail("k", f"of head_dim {q.shape[2]} as q", k.shape[2])
    if q.shape[1] % k.shape[1]:
        fail("q", f"of a multiple of k's {k.shape[1]} heads", f"{q.shape[1]} heads")
    for name, device in (("k", k.device), ("plan", plan.q_pos.device)):
        if device != q.device:
            fail(name, f"on {q.device} as q", device)


def attn_stats(
    q: Tensor,
    k: Tensor,
    plan: StatsPlan,
    kv_indices: Tensor | None,
    sinks: Tensor | None,
    lse: Tensor | None,
    rho: Tensor,
    mass: Tensor | None,
) -> None:
    """Check shapes, dtypes, strides and devices; reads no value."""
    _inputs(q, k, plan)
    if kv_indices is None and k.shape[0] < plan.kv_len:
        fail("k", f"of at least {plan.kv_len} tokens as the plan", f"{k.shape[0]} tokens")
    rows, heads = q.shape[:2]
    _tensor("kv_indices", kv_indices, (plan.kv_len,), INTEGERS, q.device)
    _tensor("sinks", sinks, (heads,), (*ROW_TYPES, torch.float64), q.device)
    _tensor("lse", lse, (rows, heads), (torch.float32,), q.device)
    _tensor("rho", rho, (plan.kv_len,), (torch.float32,), q.device)
    _tensor("mass", mass, (plan.blocks, plan.blocks), (torch.float32,), q.device)


def numbers(scale: float, k_scale: float, softcap: float, lse_base: str) -> None:
    """Check the numbers of a call."""
    for name, value in (("scale", scale), ("k_scale", k_scale)):
        if not math.isfinite(value):
            fail(name, "finite", value)
    if not 0 <= softcap < math.inf:
        fail("softcap", "at least 0 and finite", softcap)
    if lse_base not in ("e", "2"):
        fail("lse_base", "'e' or '2'", repr(lse_base))


def reads_values(device: torch.device) -> bool:
    """Return whether values may be looked at: on a CPU, or in debug mode."""
    return device.type == "cpu" or os.environ.get("RECAP_KERNELS_DEBUG") == "1"


def small_values(
    k: Tensor, kv_indices: Tensor | None, sinks: Tensor | None, lse: Tensor | None
) -> None:
    """Check the values of indices, sinks and LSE."""
    for name, value in (("sinks", sinks), ("lse", lse)):
        if value is not None and not bool((value < math.inf).all()):
            fail(name, "finite or -inf", "NaN or inf")
    if kv_indices is not None:
        low, high = int(kv_indices.min()), int(kv_indices.max())
        if low < 0 or high >= k.shape[0]:
            fail("kv_indices", f"in [0, {k.shape[0]})", f"{low} to {high}")


def finite_inputs(q: Tensor, k: Tensor, plan: StatsPlan, kv_indices: Tensor | None) -> None:
    """Check that the rows and the history's keys are finite."""
    history = k[: plan.kv_len] if kv_indices is None else k[kv_indices.long()]
    for name, value in (("q", q), ("k", history)):
        if not value.float().isfinite().all():
            fail(name, "finite", "NaN or inf")


def finalize(
    rho: Tensor,
    mass: Tensor | None,
    plan: StatsPlan,
    exclude: Tensor | None,
    sizes: tuple[int, int, int],
) -> None:
    """Check the arguments of ``finalize``; ``sizes`` are layers, heads and drop_first."""
    device = plan.q_pos.device
    _tensor("rho", rho, (plan.kv_len,), (torch.float32,), device)
    _tensor("mass", mass, (plan.blocks, plan.blocks), (torch.float32,), device)
    _tensor("exclude", exclude, (plan.kv_len,), (torch.bool,), device)
    for name, value, least in zip(("layers", "heads", "drop_first"), sizes, (1, 1, 0), strict=True):
        if value < least:
            fail(name, f"at least {least}", value)


def capture_rows(
    q_ring: Tensor, lse_ring: Tensor | None, q: Tensor, lse: Tensor | None, slot: Tensor
) -> None:
    """Check the arguments of ``capture_rows_``; reads no value."""
    if q_ring.dim() != 3 or q.dim() != 3 or q.shape[1:] != q_ring.shape[1:]:
        fail("q", f"[T, Hq, D] as q_ring {list(q_ring.shape)}", list(q.shape))
    if q.dtype != q_ring.dtype:
        fail("q", str(q_ring.dtype), q.dtype)
    if (lse is None) != (lse_ring is None):
        fail("lse", "given exactly when lse_ring is", "None" if lse is None else "a tensor")
    if lse is not None and lse_ring is not None:
        if lse.shape != q.shape[:2] or lse_ring.shape != q_ring.shape[:2]:
            fail("lse", "[T, Hq] and lse_ring [R, Hq]", (list(lse.shape), list(lse_ring.shape)))
        if lse.dtype != torch.float32 or lse_ring.dtype != torch.float32:
            fail("lse", "float32, lse_ring too", (lse.dtype, lse_ring.dtype))
    if slot.dtype != torch.int32 or slot.shape != q.shape[:1]:
        fail("slot", f"int32 [{q.shape[0]}]", f"{slot.dtype} {list(slot.shape)}")
    for name, value in (("q_ring", q_ring), ("slot", slot)):
        if value.device != q.device:
            fail(name, f"on {q.device} as q", value.device)
