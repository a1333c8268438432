"""Recap: short, valid contexts for coding agents, from a graph of what was really used.

The names below are loaded on first use, so ``import recap`` costs neither numpy nor a reader. The
selector stands beside its policies: ``from recap.select import select``.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing has it, which is not loaded for this: it would double the time
if TYPE_CHECKING:
    from recap.config import Settings
    from recap.errors import (
        CaptureError,
        ConflictError,
        GraphFormatError,
        InputError,
        InvalidContextError,
        MethodError,
        NotInstalledError,
        RecapError,
        SettingsError,
        StoreError,
        UnknownFormatError,
        UsageError,
    )
    from recap.graph.state import ContextGraph
    from recap.select.selection import Selection
    from recap.session import Compaction, Session, compact
    from recap.sglang import enable
    from recap.transcript.check import check
    from recap.transcript.formats import open_log
    from recap.transcript.lists import read_messages
    from recap.transcript.model import Finding, Transcript
    from recap.transcript.repair import Repair, Repaired, repair

__version__ = "0.0.1"

__all__ = [
    "CaptureError",
    "Compaction",
    "ConflictError",
    "ContextGraph",
    "Finding",
    "GraphFormatError",
    "InputError",
    "InvalidContextError",
    "MethodError",
    "NotInstalledError",
    "RecapError",
    "Repair",
    "Repaired",
    "Selection",
    "Session",
    "Settings",
    "SettingsError",
    "StoreError",
    "Transcript",
    "UnknownFormatError",
    "UsageError",
    "check",
    "compact",
    "enable",
    "open_log",
    "read_messages",
    "repair",
]

_HOMES = {
    "recap.config": ("Settings",),
    "recap.errors": (
        "CaptureError",
        "ConflictError",
        "GraphFormatError",
        "InputError",
        "InvalidContextError",
        "MethodError",
        "NotInstalledError",
        "RecapError",
        "SettingsError",
        "StoreError",
        "UnknownFormatError",
        "UsageError",
    ),
    "recap.graph.state": ("ContextGraph",),
    "recap.select.selection": ("Selection",),
    "recap.session": ("Compaction", "Session", "compact"),
    "recap.sglang": ("enable",),
    "recap.transcript.check": ("check",),
    "recap.transcript.formats": ("open_log",),
    "recap.transcript.lists": ("read_messages",),
    "recap.transcript.model": ("Finding", "Transcript"),
    "recap.transcript.repair": ("Repair", "Repaired", "repair"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would take any attribute for defined

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module 'recap' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
