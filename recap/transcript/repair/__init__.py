"""Read-side repair: what a client or provider would lose, invent or refuse is mended in a copy.

The original is only read. Nothing is invented: what cannot stay is taken out, byte for byte, and every
change is listed. Lines without a fault keep their bytes. A repair that would lose a text that can be
read is refused. The names below are loaded on first use: edits of lines need no reader.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recap.transcript.repair.documents import LISTS
    from recap.transcript.repair.mending import LOG, Repaired, repair, repair_source
    from recap.transcript.repair.patch import Repair

__all__ = ["LISTS", "LOG", "Repair", "Repaired", "repair", "repair_source"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("recap.transcript.repair.mending"), name)
