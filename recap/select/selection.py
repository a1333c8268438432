"""Selection: which blocks a request gets, why, and at what cost; and the one function making it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

RULES = (
    "dropped",  # competed and did not make it: the budget was spent on better ones
    "did-not-fit",  # was visited, but its cost did not fit what was left
    "stale",  # an edge led to it, but it is superseded
    "protected:user",
    "protected:edit",
    "protected:pin",
    "ranked",  # the recipe's ranking filled it in
    "recent",  # the recency half of coverage
    "coverage",  # the marginal-gain half of coverage
    "expanded",  # pulled in by a support edge
)
"""Rules of the decision log; ``Selection.rule`` holds indices into this tuple."""


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
    """One row of the decision log."""

    index: int
    id: str
    kind: str
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
        policy: Name of the recipe.
        retention: beta, exact.
        active_chars: c(V).
        budget_chars: B = floor(beta * c(V)).
        limit_chars: floor((1 + delta) * B), what expansion may use.
        protected_chars: cost(P).
        core_chars: cost(C0), before expansion; <= max(B, cost(P)).
        cost_chars: cost of all kept blocks; <= max(limit_chars, cost(P)).
        is_kept: bool ``[blocks]``.
        rule: int8 ``[blocks]``: index into RULES.
        score, importance, relevance: float64 ``[blocks]``: what the ranking saw (score is 0 for
            recipes without one).
        is_stale: bool ``[blocks]``.
        pulled_by: int32 ``[blocks]``: block whose edge pulled this one in, -1 if none.
        edge_mass: float64 ``[blocks]``: mass of that edge.
    """

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
