"""The public functions: they fill in defaults and hand over to the operators of ``ops.py``.

The operators check every argument (``check.py``) and pick a backend (``backends.py``, which documents
what a backend offers). ``reference.py`` is the definition all of them are tested against.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import torch

from recap_kernels import check, ops
from recap_kernels.plan import BlockStats, Clip, Quantile, Stats, StatsPlan, TimesMedian

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import BackendName


def attn_stats(
    q: Tensor,
    k: Tensor,
    plan: StatsPlan,
    *,
    kv_indices: Tensor | None = None,
    scale: float | None = None,
    k_scale: float = 1.0,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    lse: Tensor | None = None,
    lse_base: Literal["e", "2"] = "e",
    lse_has_sink: bool = True,
    rho: Tensor | None = None,
    accumulate: bool = True,
    mass: Tensor | None = None,
    backend: BackendName = "auto",
) -> Stats:
    """Return the attention sums of one layer, without the probability matrix. Differentiates nothing.

    The formulas stand in ``reference``. Sums add up over layers (pass ``rho`` on) and over head
    shards (all-reduce before ``finalize``). Repeated calls give the same bits.

    Args:
        q: ``[W, Hq, D]`` bfloat16, float16 or float32: sampled query rows, after RoPE.
        k: ``[S, Hkv, D]`` of the same dtype, on a GPU also float8 e4m3fn or e5m2: keys, after RoPE.
            D contiguous, other strides any; Hq is a multiple of Hkv.
        plan: Positions, blocks and window of the turn.
        kv_indices: int32 or int64 ``[N]``: row of ``k`` that holds history token j; None for row j.
            On a GPU an index outside ``[0, S)`` is undefined behaviour unless checked (Raises).
        scale: Factor of the logits; None for 1 / sqrt(D).
        k_scale: Further factor, the scale of quantised keys.
        softcap: Logits become ``softcap * tanh(logit / softcap)``; 0 for none.
        sinks: ``[Hq]``: logit of an extra key without value, per head.
        lse: float32 ``[W, Hq]``: log of the softmax denominator, as an attention kernel returns it;
            None to compute it. Saves half the work.
        lse_base: Base of ``lse``: "e" for FlashAttention, "2" for FlashInfer.
        lse_has_sink: Whether ``lse`` includes the sinks.
        rho: float32 ``[N]``, written in place; None for a new tensor.
        accumulate: Add to ``rho`` and ``mass``; False overwrites them.
        mass: float32 ``[B, B]``, written in place; None for no block-to-block mass.
        backend: "auto" takes the CPU kernels on a CPU (the reference where they are not built) and
            Triton on a GPU.

    Returns:
        ``rho`` and ``mass``, the tensors given, and a new natural-log ``lse`` with the sink.

    Raises:
        ValueError: A shape, dtype, stride, device or value does not fit, or the backend cannot run;
            names the argument, what came and what was wanted, and nothing has been written. Values
            (finite numbers, indices in range) are read on a CPU, and on a GPU only with
            ``RECAP_KERNELS_DEBUG=1``.
    """
    if scale is None:
        scale = 1 / math.sqrt(max(1, q.shape[-1])) if q.dim() else 1.0
    check.numbers(scale, k_scale, softcap, lse_base)
    if rho is None:
        rho = torch.zeros(plan.kv_len, dtype=torch.float32, device=q.device)
    out = ops.attn_stats_(
        rho,
        mass,
        q,
        k,
        plan.tensors(),
        plan.kv_len,
        plan.window,
        plan.tile,
        kv_indices,
        scale * k_scale,
        softcap,
        sinks,
        lse,
        lse_base,
        lse_has_sink,
        accumulate,
        backend,
    )
    return Stats(rho, mass, out)


def finalize(
    rho: Tensor,
    plan: StatsPlan,
    *,
    layers: int,
    heads: int,
    mass: Tensor | None = None,
    clip: Clip = Quantile(0.95),
    drop_first: int = 4,
    exclude: Tensor | None = None,
    backend: BackendName = "auto",
) -> BlockStats:
    """Return block means of the clipped token importance, and mean inter-block mass.

    ``finalize_reference`` says how. Clipping comes after the mean over heads and layers: reduce sums
    of head shards first.

    Args:
        rho: float32 ``[N]``: sums of ``attn_stats``.
        plan: The plan they were made with.
        layers: Layers summed in ``rho``.
        heads: Query heads of a layer, of all shards.
        mass: float32 ``[B, B]``: sums of one layer; None for none.
        clip: ``Quantile(q)``, ``TimesMedian(k)`` or None.
        drop_first: First positions that never count: attention sinks.
        exclude: bool ``[N]``: tokens that never count; None for none.
        backend: As for ``attn_stats``; "cuda" takes the CUDA kernels.

    Raises:
        ValueError: As for ``attn_stats``.
    """
    block_mean, block_mass, clip_value, row_count = ops.finalize(
        rho,
        mass,
        plan.tensors(),
        plan.kv_len,
        plan.window,
        plan.tile,
        layers,
        heads,
        clip.q if isinstance(clip, Quantile) else 0.0,
        clip.factor if isinstance(clip, TimesMedian) else 0.0,
        drop_first,
        exclude,
        backend,
    )
    return BlockStats(block_mean, None if mass is None else block_mass, clip_value, row_count)


def capture_rows_(
    q_ring: Tensor, lse_ring: Tensor | None, q: Tensor, lse: Tensor | None, slot: Tensor
) -> None:
    """Copy sampled rows into rings, in place: ``ring[slot[t]] = row[t]`` where ``slot[t] >= 0``.

    Stands in every layer of a model; on a GPU it neither allocates nor synchronises, so it can be
    part of a CUDA graph.

    Args:
        q_ring: ``[R, Hq, D]``: where query rows are kept.
        lse_ring: float32 ``[R, Hq]``; None when ``lse`` is.
        q: ``[T, Hq, D]``, dtype of ``q_ring``: rows of this step, after RoPE.
        lse: float32 ``[T, Hq]`` or None.
        slot: int32 ``[T]``: where row t goes, -1 for nowhere; no slot twice.

    Raises:
        ValueError: A shape, dtype or device does not fit; on a CPU also a slot out of range.
    """
    torch.ops.recap.capture_rows_(q_ring, lse_ring, q, lse, slot)
