"""The torch operators ``torch.ops.recap.*`` with their fakes; every check of a call happens here.

``capture_rows_`` goes through ``torch.library.Library.define``, which costs less a call: it stands in
every layer. The others run once a turn and are custom ops.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from recap_kernels import backends, check
from recap_kernels.plan import Clip, Quantile, StatsPlan, TimesMedian

LIBRARY = torch.library.Library("recap", "FRAGMENT")
LIBRARY.define(
    "capture_rows_(Tensor(a!) q_ring, Tensor(b!)? lse_ring, Tensor q, Tensor? lse, Tensor slot) -> ()"
)


@torch.library.custom_op("recap::attn_stats_", mutates_args=("rho", "mass"))
def attn_stats_(
    rho: Tensor,
    mass: Tensor | None,
    q: Tensor,
    k: Tensor,
    plan: list[Tensor],
    kv_len: int,
    window: int,
    tile: int,
    kv_indices: Tensor | None,
    scale: float,
    softcap: float,
    sinks: Tensor | None,
    lse: Tensor | None,
    lse_base: str,
    lse_has_sink: bool,
    accumulate: bool,
    backend: str,
) -> Tensor:
    """Add a layer's sums to ``rho`` and ``mass``; return the natural-log LSE. See ``api``."""
    turn = StatsPlan.of(plan, kv_len, window, tile)
    check.attn_stats(q, k, turn, kv_indices, sinks, lse, rho, mass)
    module = backends.choose(backend, "attn_stats", q.device.type)
    if check.reads_values(q.device):
        check.small_values(k, kv_indices, sinks, lse)
        if not getattr(module, "CHECKS_FINITE", False):
            check.finite_inputs(q, k, turn, kv_indices)
    call = backends.AttnCall(
        q=q,
        k=k,
        plan=turn,
        kv_indices=kv_indices,
        scale=scale,
        softcap=softcap,
        sinks=None if sinks is None else sinks.float(),
        lse=None if lse is None else _natural(lse, lse_base, None if lse_has_sink else sinks),
        rho=rho,
        mass=mass,
        accumulate=accumulate,
    )
    out: Tensor = module.attn_stats(call)
    return out.clone() if out is lse else out  # an op returns no alias of an input


@attn_stats_.register_fake
def _(
    rho: Tensor,
    mass: Tensor | None,
    q: Tensor,
    k: Tensor,
    plan: list[Tensor],
    kv_len: int,
    window: int,
    tile: int,
    kv_indices: Tensor | None,
    scale: float,
    softcap: float,
    sinks: Tensor | None,
    lse: Tensor | None,
    lse_base: str,
    lse_has_sink: bool,
    accumulate: bool,
    backend: str,
) -> Tensor:
    turn = StatsPlan.of(plan, kv_len, window, tile)
    check.attn_stats(q, k, turn, kv_indices, sinks, lse, rho, mass)
    return q.new_empty(q.shape[:2], dtype=torch.float32)


def _natural(lse: Tensor, base: str, sinks: Tensor | None) -> Tensor:
    """Return the LSE in natural log with these sinks folded in."""
    natural = lse * math.log(2) if base == "2" else lse
    return natural if sinks is None else torch.logaddexp(natural, sinks.float())


@torch.library.custom_op("recap::finalize", mutates_args=())
def finalize(
    rho: Tensor,
    mass: Tensor | None,
    plan: list[Tensor],
    kv_len: int,
    window: int,
    tile: int,
    layers: int,
    heads: int,
    quantile: float,
    times_median: float,
    drop_first: int,
    exclude: Tensor | None,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return block_mean, mass (``[0, 0]`` when none came), clip_value and row_count. See ``api``."""
    turn = StatsPlan.of(plan, kv_len, window, tile)
    check.finalize(rho, mass, turn, exclude, (layers, heads, drop_first))
    clip: Clip = Quantile(quantile) if quantile else None
    clip = TimesMedian(times_median) if times_median else clip
    call = backends.FinalizeCall(rho, mass, turn, layers, heads, clip, drop_first, exclude)
    done = backends.choose(backend, "finalize", rho.device.type).finalize(call)
    no_mass = rho.new_empty((0, 0))
    return done.block_mean, no_mass if mass is None else done.mass, done.clip_value, done.row_count


@finalize.register_fake
def _(
    rho: Tensor,
    mass: Tensor | None,
    plan: list[Tensor],
    kv_len: int,
    window: int,
    tile: int,
    layers: int,
    heads: int,
    quantile: float,
    times_median: float,
    drop_first: int,
    exclude: Tensor | None,
    backend: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    turn = StatsPlan.of(plan, kv_len, window, tile)
    check.finalize(rho, mass, turn, exclude, (layers, heads, drop_first))
    return (
        rho.new_empty(turn.blocks),
        rho.new_empty((0, 0) if mass is None else mass.shape),
        rho.new_empty(1),
        rho.new_empty(kv_len, dtype=torch.int32),
    )


def _capture_rows_cpu(
    q_ring: Tensor, lse_ring: Tensor | None, q: Tensor, lse: Tensor | None, slot: Tensor
) -> None:
    check.capture_rows(q_ring, lse_ring, q, lse, slot)
    if slot.numel() and not -1 <= int(slot.min()) <= int(slot.max()) < len(q_ring):
        wanted = f"in [-1, {len(q_ring)})"
        check.fail("slot", wanted, f"{int(slot.min())} to {int(slot.max())}")
    sampled = slot >= 0
    index = slot[sampled].long()
    q_ring[index] = q[sampled]
    if lse_ring is not None and lse is not None:
        lse_ring[index] = lse[sampled]


def _capture_rows_cuda(
    q_ring: Tensor, lse_ring: Tensor | None, q: Tensor, lse: Tensor | None, slot: Tensor
) -> None:
    check.capture_rows(q_ring, lse_ring, q, lse, slot)
    backends.capture_module().capture_rows(q_ring, lse_ring, q, lse, slot)


def _capture_rows_fake(
    q_ring: Tensor, lse_ring: Tensor | None, q: Tensor, lse: Tensor | None, slot: Tensor
) -> None:
    check.capture_rows(q_ring, lse_ring, q, lse, slot)


LIBRARY.impl("capture_rows_", _capture_rows_cpu, "CPU")
LIBRARY.impl("capture_rows_", _capture_rows_cuda, "CUDA")
torch.library.register_fake("recap::capture_rows_", _capture_rows_fake, lib=LIBRARY)
