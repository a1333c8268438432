"""Small layers for the Triton tests: made from a description, on a GPU or for the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from recap_kernels import StatsPlan, attn_stats, plan

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Layer:
    """What ``attn_stats`` and ``reference`` are both called with."""

    q: torch.Tensor
    k: torch.Tensor
    plan: StatsPlan
    options: dict[str, Any] = field(default_factory=dict)


def make_layer(
    *,
    tokens: int = 150,
    positions: tuple[int, ...] = (149, 70, 12, 149, 100),
    offsets: tuple[int, ...] = (0, 40, 41, 41, 130),
    kv_heads: int = 2,
    group: int = 3,
    width: int = 64,
    dtype: torch.dtype = torch.float32,
    paged: torch.dtype | None = None,
    window: int = 0,
    tile: int = 64,
    sinks: bool = False,
    magnitude: float = 1.0,
    seed: int = 0,
    **options: Any,
) -> Layer:
    """Return a layer of random queries and keys; ``paged`` is the dtype of shuffled slots."""
    source = torch.Generator().manual_seed(seed)
    heads = kv_heads * group
    q = torch.randn(len(positions), heads, width, generator=source) * magnitude
    slots = tokens if paged is None else tokens + 37
    k = torch.randn(slots, kv_heads, width, generator=source)
    if paged is not None:
        order = torch.randperm(slots, generator=source)[:tokens]
        options["kv_indices"] = order.to(paged).to(DEVICE)
        unused = torch.ones(slots, dtype=torch.bool)
        unused[order] = False
        k[unused] = torch.nan
    if sinks:
        options["sinks"] = torch.randn(heads, generator=source).to(DEVICE)
    turn = plan(
        torch.tensor(positions, device=DEVICE),
        tokens,
        torch.tensor(offsets, device=DEVICE),
        window=window,
        tile=tile,
    )
    return Layer(q.to(dtype).to(DEVICE), k.to(dtype).to(DEVICE), turn, options)


def measure(layer: Layer, *, blocks: bool = True, **options: Any) -> Any:
    """Return the layer's sums by Triton, written over NaN."""
    nan = torch.full((layer.plan.kv_len,), torch.nan, device=DEVICE)
    shape = (layer.plan.blocks, layer.plan.blocks)
    between = torch.full(shape, torch.nan, device=DEVICE) if blocks else None
    return attn_stats(
        layer.q,
        layer.k,
        layer.plan,
        backend="triton",
        **{"rho": nan, "mass": between, "accumulate": False, **layer.options, **options},
    )


def relative(value: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the error in the 2-norm, relative to the exact value's."""
    return float((value.double().cpu() - exact.double().cpu()).norm() / exact.norm())
