"""The table of policies. A policy is one recipe; nothing else in Recap asks for a policy's name."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from recap.blocks.identifiers import identifiers, request_terms
from recap.errors import UsageError
from recap.select.coverage import pack_coverage
from recap.select.pack import Packer, pack_ranked
from recap.select.score import Evidence, bm25, context_score, newest_first, shuffled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from recap.blocks.table import FloatArray


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one policy selects.

    Attributes:
        name: What the user calls it.
        help: One line for the user.
        rank: Evidence to a score per block, greater is better.
        pack: Packs the budget that the protected set leaves, by that score.
        terms: What of the request's text counts: identifiers alone, or its plain words as well.
        uses_graph: False: importance, marks and edges of the graph are not looked at.
        expands: Support edges of what was kept pull in predecessors, up to (1 + delta) B.
        expands_by_gain: Those that would add most by the packer's score fill what the setting
            ``edge_share`` leaves of that room, else all of it goes by the edges' mass.
        caps_edits: The latest edit of a file is protected only up to the setting ``edit_cap``.
        markers: Omission markers may stand where blocks were left out.
    """

    name: str
    help: str
    rank: Callable[[Evidence], FloatArray]
    pack: Packer = pack_ranked
    terms: Callable[[str], frozenset[str]] = request_terms
    uses_graph: bool = False
    expands: bool = False
    expands_by_gain: bool = False
    caps_edits: bool = True
    markers: bool = True


RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in (
            Recipe(
                "coverage",
                "blocks that add most of what the next turn may need, per character (ours)",
                rank=newest_first,
                pack=pack_coverage,
                uses_graph=True,
                expands=True,
                expands_by_gain=True,
            ),
            Recipe(
                "paper",
                "importance and request relevance, as ReCAP section 4.3 has it",
                rank=context_score,
                terms=identifiers,
                uses_graph=True,
                expands=True,
                caps_edits=False,
                markers=False,
            ),
            Recipe(
                "no-graph",
                "paper without the graph: request relevance alone",
                rank=context_score,
                terms=identifiers,
                caps_edits=False,
                markers=False,
            ),
            Recipe("recency", "newest blocks first", rank=newest_first),
            Recipe("bm25", "request relevance by BM25", rank=bm25),
            Recipe("random", "a seeded shuffle", rank=shuffled),
        )
    }
)


def recipe_of(policy: str | Recipe) -> Recipe:
    """Return the recipe of that name, or the recipe given.

    Raises UsageError, which lists the names, for an unknown one.
    """
    recipe = RECIPES.get(policy) if isinstance(policy, str) else policy
    if not isinstance(recipe, Recipe):
        raise UsageError(f"unknown policy {policy!r:.60}; policies: {', '.join(RECIPES)}")
    return recipe
