"""Packing a budget: fill by a fixed order, which the paper's policy and the plain baselines use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from recap.blocks.table import BoolArray, FloatArray, IntArray
from recap.select.score import Evidence

PackRule = Literal["ranked", "recent", "coverage"]


class Fill(NamedTuple):
    """What ``fill`` took.

    Attributes:
        chosen: Block indices in the order they were taken.
        passed: Blocks that came before the last chosen one and did not fit.
        spent_chars: Cost of the chosen ones.
    """

    chosen: IntArray
    passed: IntArray
    spent_chars: int


class Packing(NamedTuple):
    """What a packer kept.

    Attributes:
        kept: Blocks kept, with the rule that kept them.
        passed: Blocks better than the last one kept that did not fit what was left.
        score: float64 ``[blocks]``: what blocks were compared by.
    """

    kept: tuple[tuple[PackRule, IntArray], ...]
    passed: IntArray
    score: FloatArray


class Room(NamedTuple):
    """What a packer may fill.

    Attributes:
        is_kept: bool ``[blocks]``: blocks that are in already.
        candidates: Blocks that compete, chronological.
        chars: What they may cost together; negative when the protected set exceeds the budget.
    """

    is_kept: BoolArray
    candidates: IntArray
    chars: int


Packer: TypeAlias = Callable[[Evidence, FloatArray, Room], Packing]


def pack_ranked(evidence: Evidence, score: FloatArray, room: Room) -> Packing:
    """Keep candidates by descending score, ties chronologically, each that fits (ReCAP 4.3)."""
    filled = fill(ranked(score, room.candidates), evidence.table.cost_chars, room.chars)
    return Packing((("ranked", filled.chosen),), filled.passed, score)


def ranked(score: FloatArray, candidates: IntArray) -> IntArray:
    """Return the candidates by descending score, ties in the order given."""
    return candidates[np.argsort(-score[candidates], kind="stable")]


def fill(order: IntArray, cost_chars: IntArray, chars: int) -> Fill:
    """Visit blocks in order and take each that still fits; go on past those that do not.

    For a fixed order the cost of what is taken never falls when ``chars`` grows: raise it by one,
    and at the first block where the two runs differ the richer one takes a block that overran the
    poorer one's budget, so it has spent its whole, larger budget.

    Args:
        order: Block indices in visiting order.
        cost_chars: Cost of every block of the table.
        chars: What the chosen blocks may cost together.
    """
    costs = cost_chars[order]
    cheapest = np.minimum.accumulate(costs[::-1])[::-1].tolist()  # of each block and those after it
    left = chars
    taken = []
    for at, cost in enumerate(costs.tolist()):
        if cheapest[at] > left:
            break
        if cost <= left:
            left -= cost
            taken.append(at)
    is_passed = np.zeros(len(order), np.bool_)
    is_passed[: taken[-1] if taken else 0] = True
    is_passed[taken] = False
    return Fill(order[taken], order[is_passed], chars - left)
