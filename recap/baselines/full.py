"""The whole history: what a session costs, and keeps, when nothing is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.baselines.method import of_blocks

if TYPE_CHECKING:
    from recap.baselines.method import Context, Task


@dataclass(frozen=True, slots=True)
class FullHistory:
    """Keeps every block, whatever the budget."""

    name: str = "full-history"
    help: str = "every block of the session; no budget"

    def missing(self) -> str:
        """Return "": it always runs."""
        return ""

    def shorten(self, task: Task) -> Context:
        """Return all blocks."""
        return of_blocks(task, range(len(task.table)))
