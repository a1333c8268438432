"""The published cost model of session trimming, exactly, for comparison only.

What is wrong with it stands in docs/policy.md: a tenth of the prefix is charged as written at every
turn, every branch is taken for warm, break-evens beyond 60 turns are cut to 60, and bytes that are
no context count as context. ``recap.economics.verdict`` is the model to decide by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

HIT_RATE = 0.9
STATIC_TOKENS = 20_000
CONTEXT_LIMIT = 200_000
NEVER = 999
"""Break-even of a trim that saves nothing."""

SCAN_CAP = 60
PROJECTED_TURNS = (5, 10, 20, 50)
Tier = Literal["heavy", "mixed", "conversational"]


class PaperPrices(NamedTuple):
    """USD per million tokens; the paper has one kind of cache and counts no output."""

    input: float
    cache_write: float
    cache_read: float


PAPER_PRICES: Mapping[str, PaperPrices] = MappingProxyType(
    {
        "sonnet": PaperPrices(3.0, 3.75, 0.3),
        "opus": PaperPrices(5.0, 6.25, 0.5),
        "opus-4": PaperPrices(15.0, 18.75, 1.5),
        "haiku": PaperPrices(1.0, 1.25, 0.1),
    }
)


class Projection(NamedTuple):
    """Cost of ``turns`` turns in USD without and with the trim, and the share saved in percent."""

    turns: int
    without: float
    trimmed: float
    percent: int


@dataclass(frozen=True, slots=True)
class PaperReport:
    """What the paper prints of one session; USD and percent."""

    tokens_after: int
    reduction_percent: int
    context_used_percent: int
    turn_before: float
    first_turn_after: float
    turn_after: float
    penalty: float
    saving_per_turn: float
    break_even_turns: int
    break_even_scan: int
    projections: tuple[Projection, ...]


def rounded(number: float) -> int:
    """Return the number rounded, halves up."""
    return math.floor(number + 0.5)


def turn_cost(tokens: float, prices: PaperPrices, hit_rate: float = HIT_RATE) -> float:
    """Return the cost of one turn: the rest of the prefix is charged as written."""
    return tokens * (hit_rate * prices.cache_read + (1 - hit_rate) * prices.cache_write) / 1e6


def cold_cost(tokens: float, prices: PaperPrices) -> float:
    """Return the cost of a turn that writes its whole prefix."""
    return tokens * prices.cache_write / 1e6


def trimmed_tokens(tokens: int, original_bytes: int, trimmed_bytes: int) -> int:
    """Return the tokens after a real trim, by the bytes of the whole file."""
    ratio = 1 - trimmed_bytes / original_bytes if original_bytes else 0.0
    return min(tokens, _after(tokens, ratio))


def estimated_tokens(
    tokens: int, active_bytes: int, by_kind: Mapping[str, int], results: int
) -> int:
    """Return the tokens after a trim that was not made, by the bytes of each kind.

    Args:
        tokens: Before.
        active_bytes: Bytes of the session.
        by_kind: Bytes of ``fileHistory``, ``thinkingSignatures``, ``toolResults``,
            ``toolUseRequests``.
        results: Number of tool results.
    """
    removed = (
        by_kind["fileHistory"]
        + by_kind["thinkingSignatures"]
        + 0.7 * by_kind["toolResults"]
        - 35 * results
        + 0.3 * by_kind["toolUseRequests"]
    )
    ratio = removed / active_bytes if active_bytes else 0.0
    return _after(tokens, min(0.95, max(0.0, ratio)))


def tier_of(tool_result_percent: int) -> Tier:
    """Return the tier of a session by the rounded share of its tool results."""
    if tool_result_percent > 40:
        return "heavy"
    return "mixed" if tool_result_percent > 15 else "conversational"


def percent(part: float, whole: float) -> int:
    """Return a share in whole percent; 0 of nothing."""
    return rounded(100 * part / whole) if whole else 0


def report(
    tokens: int, tokens_after: int, prices: PaperPrices, hit_rate: float = HIT_RATE
) -> PaperReport:
    """Return what the paper prints for a trim from ``tokens`` to ``tokens_after``."""
    before = turn_cost(tokens, prices, hit_rate)
    after = turn_cost(tokens_after, prices, hit_rate)
    first = cold_cost(tokens_after, prices)
    penalty, saving = first - before, before - after
    turns = math.ceil(penalty / saving) + 1 if saving > 0 else NEVER
    return PaperReport(
        tokens_after=tokens_after,
        reduction_percent=percent(tokens - tokens_after, tokens),
        context_used_percent=percent(tokens, CONTEXT_LIMIT),
        turn_before=before,
        first_turn_after=first,
        turn_after=after,
        penalty=penalty,
        saving_per_turn=saving,
        break_even_turns=turns,
        break_even_scan=_scan(before, first, after),
        projections=tuple(_projection(k, before, first, after) for k in PROJECTED_TURNS),
    )


def _after(tokens: int, ratio: float) -> int:
    return rounded(max(0, tokens - STATIC_TOKENS) * (1 - ratio)) + STATIC_TOKENS


def _scan(before: float, first: float, after: float) -> int:
    turns = range(1, SCAN_CAP + 1)
    return next((k for k in turns if k * before >= first + (k - 1) * after), SCAN_CAP)


def _projection(turns: int, before: float, first: float, after: float) -> Projection:
    without, trimmed = turns * before, first + (turns - 1) * after
    return Projection(turns, without, trimmed, percent(without - trimmed, without))
