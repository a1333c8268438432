"""Attention statistics of a completed turn: which tokens and blocks the sampled rows attended to.

Only the definition exists so far: ``reference`` and ``finalize_reference``, float64 on a CPU, which
later backends are tested against. Needs torch. Knows nothing of ``recap``.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as err:
    raise ModuleNotFoundError(
        'recap_kernels needs torch: pip install "recap-context[kernels]"', name=err.name
    ) from err

from recap_kernels.plan import BlockStats, Clip, Quantile, Stats, StatsPlan, TimesMedian, plan
from recap_kernels.reference import finalize_reference, reference

__all__ = [
    "BlockStats",
    "Clip",
    "Quantile",
    "Stats",
    "StatsPlan",
    "TimesMedian",
    "finalize_reference",
    "plan",
    "reference",
]
