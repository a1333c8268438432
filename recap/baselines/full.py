"""The two ends: the whole history, what a session costs and keeps when nothing is left out; and none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.baselines.method import Local, of_blocks

if TYPE_CHECKING:
    from recap.baselines.method import Context, Task


@dataclass(frozen=True, slots=True)
class AllOrNothing(Local):
    """Keeps every block, or not one, whatever the budget."""

    name: str
    help: str
    keeps_all: bool

    def shorten(self, task: Task) -> Context:
        """Return all blocks, or an empty context: without P as well."""
        return of_blocks(task, range(len(task.table)) if self.keeps_all else ())


FULL_HISTORY = AllOrNothing("full-history", "every block of the session; no budget", keeps_all=True)
NO_HISTORY = AllOrNothing(
    "none", "nothing of the history, not even what is protected", keeps_all=False
)
"""What a context is worth is measured from here. It breaks the promise of methods to keep P."""
