"""The definition of the attention statistics in eager torch, float64 on a CPU.

Backends are compared with it and never import it. Formulas: ReCAP section 4.1, with normalisation
by visible rows and a winsorised clip (ours).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from recap_kernels.plan import BlockStats, Clip, Quantile, Stats, StatsPlan


def reference(
    q: Tensor,
    k: Tensor,
    plan: StatsPlan,
    *,
    kv_indices: Tensor | None = None,
    scale: float | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    lse: Tensor | None = None,
) -> Stats:
    """Return the attention sums of one layer.

    ``z[r, h, j] = scale <q[r, h], k[j, h // G]>`` with G = Hq / Hkv, then ``c tanh(z / c)`` with a
    soft cap c; ``lse[r, h] = log(sum over visible j of exp z + exp sinks[h])``;
    ``p = exp(z - lse)`` for visible j, else 0. ``rho[j]`` sums p over rows and heads, ``mass[b, a]``
    over the rows of block b, heads and the tokens of block a.

    Args:
        q: ``[W, Hq, D]``: sampled query rows, after RoPE; any float type.
        k: ``[S, Hkv, D]``: keys, after RoPE; any float type. Hq is a multiple of Hkv.
        plan: Positions, blocks and window of the turn.
        kv_indices: Integer ``[N]``: row of ``k`` that holds history token j; None for row j.
        scale: Factor of the logits, a key scale included; None for 1 / sqrt(D).
        softcap: c, 0 for none.
        sinks: ``[Hq]``: logit of an extra key without value, per head.
        lse: ``[W, Hq]``: natural log with sinks, taken for the one above; None to compute it.

    Raises:
        ValueError: Shapes do not fit each other or the plan.
    """
    _check_shapes(q, k, plan, kv_indices, sinks)
    plan = plan.to("cpu")
    rows, heads, width = q.shape
    group = heads // k.shape[1]
    history = k[: plan.kv_len] if kv_indices is None else k[kv_indices.long()]
    q64, k64 = q.double().cpu(), history.double().cpu()
    scale = 1 / math.sqrt(width) if scale is None else scale
    visible = plan.visible()  # [W, N]
    received = torch.zeros(rows, plan.kv_len, dtype=torch.float64)
    out = torch.empty(rows, heads, dtype=torch.float64)
    for head in range(heads):  # one at a time: [W, N] instead of [W, Hq, N]
        z = q64[:, head] @ k64[:, head // group].T * scale
        if softcap:
            z = softcap * torch.tanh(z / softcap)
        z = z.where(visible, -torch.inf)
        if sinks is not None:
            z = torch.cat((z, sinks[head].double().cpu().expand(rows, 1)), dim=1)
        out[:, head] = torch.logsumexp(z, dim=1) if lse is None else lse[:, head].double().cpu()
        weight = torch.exp(z[:, : plan.kv_len] - out[:, head, None])
        received += weight.where(visible, 0.0)  # a row that sees nothing has lse = -inf
    return Stats(received.sum(0), _mass(received, plan), out)


def _mass(received: Tensor, plan: StatsPlan) -> Tensor:
    """Return ``[B, B]``: what the rows of block b gave to the tokens of block a."""
    token_block = plan.block_of(torch.arange(plan.kv_len))
    row_block = plan.block_of(plan.q_pos)
    has_block, in_block = row_block >= 0, token_block >= 0
    per_row = torch.zeros(len(received), plan.blocks, dtype=torch.float64)
    per_row.index_add_(1, token_block[in_block], received[:, in_block])
    mass = torch.zeros(plan.blocks, plan.blocks, dtype=torch.float64)
    return mass.index_add_(0, row_block[has_block], per_row[has_block])


def finalize_reference(
    stats: Stats,
    plan: StatsPlan,
    *,
    layers: int,
    heads: int,
    clip: Clip = Quantile(0.95),
    drop_first: int = 4,
    exclude: Tensor | None = None,
) -> BlockStats:
    """Return block means of the clipped token importance, and mean inter-block mass.

    ``rho[j] = sum / (layers * heads * row_count[j])``. A token counts when a row can see it, it is
    not among the first ``drop_first`` (attention sinks) and not excluded. Importance is cut at the
    clip value over the tokens that count, and only they enter a block's mean. Dividing by the
    number of rows that see a token, not by W, keeps late tokens from being under-scored (ours).

    Args:
        stats: Sums; ``rho`` over ``layers`` layers, ``mass`` of one layer.
        plan: The plan they were made with.
        layers: Layers summed in ``stats.rho``.
        heads: Query heads of a layer.
        clip: How to winsorise.
        drop_first: First positions that never count.
        exclude: bool ``[N]``: tokens that never count; None for none.
    """
    plan = plan.to("cpu")
    row_count = plan.visible().sum(0)
    counts = row_count > 0
    counts[:drop_first] = False
    if exclude is not None:
        counts &= ~exclude.cpu()
    rho = stats.rho / (layers * heads * row_count.clamp(min=1))
    clip_value = _clip_value(rho[counts], clip)
    token_block = plan.block_of(torch.arange(plan.kv_len))
    counts &= token_block >= 0
    total = _segment_sum(rho.clamp(max=clip_value)[counts], token_block[counts], plan.blocks)
    tokens = torch.bincount(token_block[counts], minlength=plan.blocks)
    row_block = plan.block_of(plan.q_pos)
    block_rows = torch.bincount(row_block[row_block >= 0], minlength=plan.blocks)
    divisor = heads * block_rows.clamp(min=1)[:, None]
    return BlockStats(
        block_mean=total / tokens.clamp(min=1),
        mass=None if stats.mass is None else stats.mass / divisor,
        clip_value=clip_value,
        row_count=row_count,
    )


def _clip_value(rho: Tensor, clip: Clip) -> Tensor:
    """Return float64 ``[1]``: where to cut these tokens."""
    if clip is None or rho.numel() == 0:
        return torch.tensor([torch.inf], dtype=torch.float64)
    if isinstance(clip, Quantile):
        return _nearest_rank(rho, clip.q)
    return clip.factor * _nearest_rank(rho, 0.5)


def _nearest_rank(values: Tensor, q: float) -> Tensor:
    """Return float64 ``[1]``: the smallest value with a share of at least q at or below it."""
    return values.kthvalue(max(1, math.ceil(q * values.numel()))).values[None]


def _segment_sum(values: Tensor, segment: Tensor, segments: int) -> Tensor:
    return torch.zeros(segments, dtype=torch.float64).index_add_(0, segment, values.double())


def _check_shapes(
    q: Tensor, k: Tensor, plan: StatsPlan, kv_indices: Tensor | None, sinks: Tensor | None
) -> None:
    rows = plan.rows
    if q.dim() != 3 or k.dim() != 3 or q.shape[0] != rows or q.shape[2] != k.shape[2]:
        raise ValueError(
            f"q must be [{rows}, Hq, D] and k [S, Hkv, D]; got {tuple(q.shape)}, {tuple(k.shape)}"
        )
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise ValueError(f"query heads {q.shape[1]} must be a multiple of key heads {k.shape[1]}")
    if kv_indices is None and k.shape[0] < plan.kv_len:
        raise ValueError(f"k holds {k.shape[0]} tokens, the plan has {plan.kv_len}")
    if kv_indices is not None and kv_indices.shape != (plan.kv_len,):
        raise ValueError(f"kv_indices must be [{plan.kv_len}]; got {tuple(kv_indices.shape)}")
    if sinks is not None and sinks.shape != (q.shape[1],):
        raise ValueError(f"sinks must be [{q.shape[1]}]; got {tuple(sinks.shape)}")
