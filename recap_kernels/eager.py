"""The reference as a backend: slow, float64 inside, on any device. For tests and lone machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap_kernels.plan import BlockStats, Stats
from recap_kernels.reference import finalize_reference, reference

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import AttnCall, FinalizeCall


def unavailable(device: str) -> str:
    """Return "": wherever torch is, this runs."""
    return ""


def attn_stats(call: AttnCall) -> Tensor:
    """Write what ``reference`` returns, rounded to float32."""
    stats = reference(
        call.q,
        call.k,
        call.plan,
        kv_indices=call.kv_indices,
        scale=call.scale,
        softcap=call.softcap,
        sinks=call.sinks,
        lse=call.lse,
    )
    for out, value in ((call.rho, stats.rho), (call.mass, stats.mass)):
        if out is not None and value is not None:
            rounded = value.float().to(out.device)
            out.add_(rounded) if call.accumulate else out.copy_(rounded)
    return stats.lse.float().to(call.q.device) if call.lse is None else call.lse


def finalize(call: FinalizeCall) -> BlockStats:
    """Return what ``finalize_reference`` returns for sums that are rounded to float32."""
    device = call.rho.device
    mass = None if call.mass is None else call.mass.cpu()
    stats = Stats(call.rho.cpu(), mass, lse=call.rho.new_empty(0))
    done = finalize_reference(
        stats,
        call.plan,
        layers=call.layers,
        heads=call.heads,
        clip=call.clip,
        drop_first=call.drop_first,
        exclude=call.exclude,
    )
    return BlockStats(
        done.block_mean.float().to(device),
        None if done.mass is None else done.mass.float().to(device),
        done.clip_value.float().to(device),
        done.row_count.int().to(device),
    )
