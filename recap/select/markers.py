"""Omission markers: where blocks were left out, said in a few characters.

A finished request whose answer was dropped stays recognisable as finished. Markers stand outside the
budget and are bounded by a share of it (ours).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.transcript.authors import OMISSION_PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.blocks.segment import Block

MARKER_CHARS = 48
"""No marker is longer."""

MARKER_SHARE = 20
"""All markers together take at most 1/20 of the budget."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A run of dropped blocks.

    Attributes:
        first: Index of its first block; the marker stands where that block stood.
        blocks: Blocks left out, those of gaps merged into this one included.
        first_turn: 0-based turn of the first one.
        last_turn: 0-based turn of the last one.
    """

    first: int
    blocks: int
    first_turn: int
    last_turn: int


def gaps(blocks: Sequence[Block], kept: Sequence[int]) -> list[Gap]:
    """Return the runs of blocks between the ascending indices ``kept``."""
    found = []
    start = 0
    for index in (*kept, len(blocks)):
        if index > start:
            dropped = blocks[start].turn, blocks[index - 1].turn
            found.append(Gap(start, index - start, *dropped))
        start = index + 1
    return found


def merge(found: Sequence[Gap], budget_chars: int) -> list[Gap]:
    """Return at most as many gaps as markers are affordable: small ones join the next kept one.

    The largest gaps keep their place; what follows the last of them joins it.
    """
    affordable = budget_chars // MARKER_SHARE // MARKER_CHARS
    if len(found) <= affordable:
        return list(found)
    if not affordable:
        return []
    largest = sorted(found, key=lambda gap: (-gap.blocks, gap.first))[:affordable]
    keepers = {gap.first for gap in largest}
    merged: list[Gap] = []
    waiting: list[Gap] = []
    for gap in found:
        waiting.append(gap)
        if gap.first in keepers:
            merged.append(_joined(waiting, gap.first))
            waiting = []
    if waiting:
        last = merged.pop()
        merged.append(_joined([last, *waiting], last.first))
    return merged


def _joined(group: Sequence[Gap], first: int) -> Gap:
    return Gap(
        first,
        sum(gap.blocks for gap in group),
        min(gap.first_turn for gap in group),
        max(gap.last_turn for gap in group),
    )


def marker_text(gap: Gap) -> str:
    """Return the marker of a gap; turns are numbered from 1 for people."""
    count = f"{gap.blocks} block{'s' if gap.blocks != 1 else ''}"
    first, last = gap.first_turn + 1, gap.last_turn + 1
    turns = f"turn {first}" if first == last else f"turns {first}-{last}"
    text = f"{OMISSION_PREFIX}{count} of {turns} omitted]"
    return text if len(text) <= MARKER_CHARS else f"{OMISSION_PREFIX}{count} omitted]"
