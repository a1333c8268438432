"""Attention statistics of a completed turn: which tokens and blocks the sampled rows attended to.

``plan`` once a turn, ``attn_stats`` once a layer, ``finalize`` at the end; ``reference`` is the
definition. torch is loaded when a name is first used, not on import. Knows nothing of ``recap``.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recap_kernels.api import attn_stats, capture_rows_, finalize
    from recap_kernels.backends import Info, info
    from recap_kernels.plan import BlockStats, Clip, Quantile, Stats, StatsPlan, TimesMedian, plan
    from recap_kernels.reference import finalize_reference, reference

__all__ = [
    "BlockStats",
    "Clip",
    "Info",
    "Quantile",
    "Stats",
    "StatsPlan",
    "TimesMedian",
    "attn_stats",
    "capture_rows_",
    "finalize",
    "finalize_reference",
    "info",
    "plan",
    "reference",
]

_HOME = {
    "attn_stats": "api",
    "capture_rows_": "api",
    "finalize": "api",
    "Info": "backends",
    "info": "backends",
    "finalize_reference": "reference",
    "reference": "reference",
}


class _Package(ModuleType):
    """Keeps the submodules ``plan`` and ``reference`` from hiding the functions of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = importlib.import_module(f"{__name__}.{_HOME.get(name, 'plan')}")
    except ModuleNotFoundError as err:
        if err.name != "torch":
            raise
        raise ModuleNotFoundError(
            'recap_kernels needs torch: pip install "recap-context[kernels]"', name="torch"
        ) from None
    value: object = getattr(home, name)
    globals()[name] = value
    return value
