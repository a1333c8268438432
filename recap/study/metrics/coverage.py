"""How much of what a turn needed a context held: coverage, weighted by rarity."""

from __future__ import annotations

from collections import Counter
from math import log1p
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet


def need(history: Sequence[AbstractSet[str]], wanted: AbstractSet[str]) -> dict[str, float]:
    """Return what a turn wanted and the history held, with weights log(1 + N / df) (ours).

    Args:
        history: What each of the history's N blocks holds.
        wanted: What the turn wrote or read.
    """
    frequency = Counter(item for held in history for item in held & wanted)
    return {item: log1p(len(history) / count) for item, count in sorted(frequency.items())}


def coverage(needed: Mapping[str, float], kept: Iterable[AbstractSet[str]]) -> float | None:
    """Return the share of the needed weight that is in what was kept, in [0, 1].

    None where nothing was needed: such a turn says nothing about a method.
    """
    total = sum(needed.values())
    if not total:
        return None
    left = set(needed)
    for held in kept:
        left -= held
    return 1 - sum(needed[item] for item in sorted(left)) / total
