"""Attention statistics of a completed turn: which tokens and blocks the sampled rows attended to.

Only the definition exists so far: ``reference`` and ``finalize_reference``, float64 on a CPU, which
later backends are tested against. Needs torch. Knows nothing of ``recap``.
"""

from __future__ import annotations

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
