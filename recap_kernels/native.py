"""What Python hands to the C++ modules: addresses, sizes and strides by the names of ``csrc/args.h``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap_kernels.plan import Quantile, TimesMedian

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.backends import FinalizeCall
    from recap_kernels.plan import BlockStats, StatsPlan


def address(tensor: Tensor | None) -> int:
    """Return where the numbers are, 0 for None."""
    return 0 if tensor is None else tensor.data_ptr()


def plan_arguments(plan: StatsPlan) -> dict[str, int]:
    """Return the arguments that come from the plan of a turn."""
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


def finalize_arguments(call: FinalizeCall, out: BlockStats) -> dict[str, int | float]:
    """Return the arguments of ``finalize``, which writes into ``out``."""
    return {
        **plan_arguments(call.plan),
        "rho": call.rho.data_ptr(),
        "mass": address(call.mass),
        "layers": call.layers,
        "heads": call.heads,
        "drop_first": call.drop_first,
        "quantile": call.clip.q if isinstance(call.clip, Quantile) else 0.0,
        "times_median": call.clip.factor if isinstance(call.clip, TimesMedian) else 0.0,
        "exclude": address(call.exclude),
        "block_mean": out.block_mean.data_ptr(),
        "block_mass": address(out.mass),
        "clip_value": out.clip_value.data_ptr(),
        "row_count": out.row_count.data_ptr(),
    }
