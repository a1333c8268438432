"""Selection: which blocks a request gets, why, and at what cost; and the one function making it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from recap.blocks.protected import protect
from recap.config import Settings
from recap.graph.state import ContextGraph, align
from recap.select.expand import expand
from recap.select.pack import Room
from recap.select.policies import Recipe, recipe_of
from recap.select.relevance import known_terms, relevance
from recap.select.score import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.blocks.segment import BlockKind
    from recap.blocks.table import BlockTable, BoolArray, FloatArray, IntArray

RULES = (
    "dropped",  # competed and did not make it: the budget was spent on better ones
    "did-not-fit",  # ranked above one that was kept, but its cost did not fit what was left
    "stale",  # a support edge led to it, but it is superseded
    "protected:user",
    "protected:edit",
    "protected:pin",
    "ranked",  # the recipe's ranking filled it in
    "recent",  # the recency half of coverage
    "coverage",  # the marginal-gain half of coverage
    "expanded",  # pulled in by a support edge
    "since",  # came after the selection that is served on: its prefix is still in the cache
)
"""Rules of the decision log; ``Selection.rule`` holds indices into this tuple."""

CODE = {rule: code for code, rule in enumerate(RULES)}
FIRST_KEPT = CODE["protected:user"]
"""Code of the first rule that keeps a block; so do all after it."""


@dataclass(frozen=True, slots=True)
class Request:
    """The arriving request as selection sees it.

    Attributes:
        text: The person's words; identifiers are taken from them.
        seed: Hash of (session key, turn key), see ``recap.turns``; b"" when there is none.
    """

    text: str
    seed: bytes = b""


@dataclass(frozen=True, slots=True)
class Decision:
    """One row of the decision log.

    Attributes:
        index: Position of the block in the table.
        id: Its id.
        kind: ``user``, ``tools``, ``reply`` or ``machine``.
        turn: 0-based turn.
        cost_chars: What it costs, kept or not.
        is_kept: It is in the context.
        rule: One of RULES.
        importance, relevance, score, is_stale: See ``Selection``.
        pulled_by: For rule ``expanded``, index of the block whose edge pulled it in.
        edge_mass: Mass of that edge.
    """

    index: int
    id: str
    kind: BlockKind
    turn: int
    cost_chars: int
    is_kept: bool
    rule: str
    importance: float
    relevance: float
    score: float
    is_stale: bool
    pulled_by: int | None
    edge_mass: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The outcome of ``select``.

    Attributes:
        table: The blocks it was made from, n of them.
        policy: Name of the recipe.
        retention: beta, exact.
        active_chars: c(V), characters of the blocks of the live context.
        budget_chars: B = floor(beta * c(V)).
        limit_chars: floor((1 + delta) * B), what expansion may use; B for recipes that do not
            expand.
        protected_chars: cost(P).
        core_chars: cost(C0), before expansion; <= max(B, cost(P)).
        cost_chars: Cost of all kept blocks; <= max(limit_chars, cost(P)).
        is_kept: bool ``[n]``.
        rule: int8 ``[n]``: index into RULES.
        score: float64 ``[n]``: what the packer compared blocks by; 0 for protected ones.
        importance: float64 ``[n]``: u; 0 for recipes without a graph.
        relevance: float64 ``[n]``: r.
        is_stale: bool ``[n]``: superseded, as far as the recipe looks at the graph.
        pulled_by: int32 ``[n]``: block whose edge pulled this one in, -1 if none.
        edge_mass: float64 ``[n]``: mass of that edge, 0 if none.
    """

    table: BlockTable
    policy: str
    retention: Fraction
    active_chars: int
    budget_chars: int
    limit_chars: int
    protected_chars: int
    core_chars: int
    cost_chars: int
    is_kept: npt.NDArray[np.bool_]
    rule: npt.NDArray[np.int8]
    score: npt.NDArray[np.float64]
    importance: npt.NDArray[np.float64]
    relevance: npt.NDArray[np.float64]
    is_stale: npt.NDArray[np.bool_]
    pulled_by: npt.NDArray[np.int32]
    edge_mass: npt.NDArray[np.float64]

    def count(self, rule: str) -> int:
        """Return how many blocks a rule of RULES decided."""
        return int((self.rule == CODE[rule]).sum())

    def decisions(self) -> list[Decision]:
        """Return the decision log, one row a block in chronological order; made when asked for."""
        columns = zip(
            self.table.blocks,
            self.is_kept.tolist(),
            self.rule.tolist(),
            self.importance.tolist(),
            self.relevance.tolist(),
            self.score.tolist(),
            self.is_stale.tolist(),
            self.pulled_by.tolist(),
            self.edge_mass.tolist(),
            strict=True,
        )
        return [
            Decision(
                index,
                block.id,
                block.kind,
                block.turn,
                block.cost_chars,
                is_kept,
                RULES[rule],
                importance,
                relevance,
                score,
                is_stale,
                None if pulled_by < 0 else pulled_by,
                None if pulled_by < 0 else edge_mass,
            )
            for index, (
                block, is_kept, rule, importance, relevance, score, is_stale, pulled_by, edge_mass,
            ) in enumerate(columns)
        ]  # fmt: skip


def decision_to_json(decision: Decision) -> dict[str, str | int | float | bool | None]:
    """Return the decision as a JSON object: fields in order, numbers to six decimals."""
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in asdict(decision).items()
    }


def select(
    graph: ContextGraph | None,
    blocks: BlockTable,
    request: str | Request,
    settings: Settings | None = None,
    *,
    policy: str | Recipe | None = None,
    pins: Sequence[str] = (),
) -> Selection:
    """Return which blocks the request gets, with the rule that decided on each.

    The same arguments give the same selection in every process.

    Args:
        graph: What earlier turns used; None for nothing measured yet.
        blocks: History, without the request and what follows it.
        request: The arriving request.
        settings: Coefficients; None for the defaults.
        policy: Name of a recipe, or a recipe of the caller's own; None for the one in settings.
        pins: Block ids, or unique beginnings, to keep whatever they cost.

    Raises:
        UsageError: No recipe has that name, or a pin names no block or several.
    """
    settings = Settings() if settings is None else settings
    recipe = recipe_of(settings.policy if policy is None else policy)
    arriving = Request(request) if isinstance(request, str) else request
    seen = graph if graph is not None and recipe.uses_graph else ContextGraph.empty("")
    terms = known_terms(recipe.terms(arriving.text), blocks.index)
    evidence = Evidence(
        table=blocks,
        graph=align(seen, blocks.ids),
        terms=terms,
        relevance=relevance(blocks.index, terms),
        seed=arriving.seed,
        settings=settings,
    )
    rule = np.zeros(len(blocks), np.int8)
    cap = settings.edit_cap if recipe.caps_edits else None
    for index, why in protect(blocks.blocks, cap, pins).items():
        rule[index] = CODE[why]
    return _selected(recipe, evidence, rule)


def limit_of(recipe: Recipe, settings: Settings, budget_chars: int) -> int:
    """Return what expansion may use: floor((1 + delta) B), or B for a recipe that does not expand."""
    return floor((1 + settings.delta) * budget_chars) if recipe.expands else budget_chars


def _selected(recipe: Recipe, evidence: Evidence, rule: npt.NDArray[np.int8]) -> Selection:
    """Pack and expand around the protected set; fills in ``rule``."""
    table, settings = evidence.table, evidence.settings
    budget = floor(settings.beta * table.active_chars)
    limit = limit_of(recipe, settings, budget)
    protected = _kept_chars(table, rule)
    score = _pack(recipe, evidence, rule, budget - protected)
    core = _kept_chars(table, rule)
    pulled_by = np.full(len(table), -1, np.int32)
    edge_mass = np.zeros(len(table))
    if recipe.expands:
        room = limit - core
        gain = score if recipe.expands_by_gain else None
        by_edges = floor(Fraction(str(settings.edge_share)) * max(room, 0))
        grown = expand(evidence.graph, rule >= FIRST_KEPT, table.cost_chars, room, gain, by_edges)
        rule[grown.passed] = CODE["did-not-fit"]
        rule[grown.stale] = CODE["stale"]
        rule[grown.added] = CODE["expanded"]
        pulled_by[grown.added] = grown.pulled_by
        edge_mass[grown.added] = grown.mass
    return Selection(
        table=table,
        policy=recipe.name,
        retention=settings.beta,
        active_chars=table.active_chars,
        budget_chars=budget,
        limit_chars=limit,
        protected_chars=protected,
        core_chars=core,
        cost_chars=_kept_chars(table, rule),
        is_kept=rule >= FIRST_KEPT,
        rule=rule,
        score=score,
        importance=evidence.graph.importance,
        relevance=evidence.relevance,
        is_stale=evidence.graph.is_stale,
        pulled_by=pulled_by,
        edge_mass=edge_mass,
    )


def _pack(recipe: Recipe, evidence: Evidence, rule: npt.NDArray[np.int8], chars: int) -> FloatArray:
    """Pack the competing blocks into ``chars``; fills in ``rule``, returns their scores."""
    ranking = recipe.rank(evidence)
    score = np.zeros(len(rule))
    for candidates in _rounds(evidence.table, rule < FIRST_KEPT, chars):
        packing = recipe.pack(evidence, ranking, Room(rule >= FIRST_KEPT, candidates, chars))
        for name, chosen in packing.kept:
            rule[chosen] = CODE[name]
            chars -= int(evidence.table.cost_chars[chosen].sum())
        rule[packing.passed] = CODE["did-not-fit"]
        score[candidates] = packing.score[candidates]
    return score


def _rounds(table: BlockTable, competes: BoolArray, chars: int) -> tuple[IntArray, ...]:
    """Return groups of candidates: all in one, but the live context first when all of it fits.

    So nothing from before a native compaction displaces a live block at retention 1.
    """
    live = competes & table.is_active
    if int(table.cost_chars[live].sum()) > chars:
        return (np.flatnonzero(competes),)
    return np.flatnonzero(live), np.flatnonzero(competes & ~live)


def _kept_chars(table: BlockTable, rule: npt.NDArray[np.int8]) -> int:
    return int(table.cost_chars[rule >= FIRST_KEPT].sum())
