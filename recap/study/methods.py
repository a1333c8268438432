"""Recipes of the product and oracles that know the next turn, as methods of the study.

All keep the same P inside the same B. A recipe that expands by support edges may reach (1 + delta) B,
as in the product; the report shows what a method really used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from recap.baselines.method import Local, of_blocks
from recap.graph.codec import encode
from recap.select.policies import RECIPES, Recipe
from recap.select.selection import Request, select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from recap.baselines.method import Context, Task


@dataclass(frozen=True, slots=True)
class RecipeMethod(Local):
    """A recipe of ``recap.select`` as a method; its P is that of every method.

    Attributes:
        name: What the user calls it.
        recipe: The recipe.
        overrides: Settings it runs with.
    """

    name: str
    recipe: Recipe
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def help(self) -> str:
        """One line for the user."""
        return self.recipe.help

    def shorten(self, task: Task) -> Context:
        """Return the blocks the recipe selects."""
        settings = replace(task.settings, **self.overrides) if self.overrides else task.settings
        recipe = replace(self.recipe, caps_edits=True)
        request = Request(task.request, task.seed)
        selection = select(task.graph, task.table, request, settings, policy=recipe)
        memory = len(encode(task.graph)) if recipe.uses_graph else 0
        return of_blocks(task, np.flatnonzero(selection.is_kept).tolist(), memory)


def recipe_methods() -> list[RecipeMethod]:
    """Return a method for each recipe of the product."""
    return [RecipeMethod(name, recipe) for name, recipe in RECIPES.items()]


def greedy_oracle(
    task: Task, needed: Mapping[str, float], held: Sequence[AbstractSet[str]]
) -> Context:
    """Return the blocks a method would keep that knew what the next turn needs.

    Greedy by needed weight not yet covered per character, then the newest that still fit. It has at
    least 1 - e^-(1 - s) of what the best set adds to P, s being the dearest block's share of what P
    leaves (after Khuller et al. 1999, lemma 2): near the best with small blocks, and no bound above.

    Args:
        task: The history.
        needed: Weights of what the turn needs.
        held: What each block holds.
    """
    costs = task.table.cost_chars.tolist()
    kept = set(np.flatnonzero(task.is_protected).tolist())
    covered: set[str] = set().union(*(needed.keys() & held[block] for block in kept), set())
    open_items = {
        block: needed.keys() & held[block] for block in range(len(costs)) if block not in kept
    }
    left = task.free_chars
    while True:
        best, best_gain = -1, 0.0
        for block, items in open_items.items():
            items -= covered
            if items and costs[block] <= left:
                gain = sum(needed[item] for item in items) / max(costs[block], 1)
                if gain > best_gain or (gain == best_gain and block > best):
                    best, best_gain = block, gain
        if best < 0:
            break
        kept.add(best)
        covered |= open_items.pop(best)
        left -= costs[best]
    for block in sorted(open_items, reverse=True):
        if costs[block] <= left:
            kept.add(block)
            left -= costs[block]
    return of_blocks(task, kept)
