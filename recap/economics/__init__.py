"""What a compaction costs and saves: token counts, prices, break-even, verdict. Pure, no numpy.

``usage`` tells apart what vendors report, ``prices`` is the one dated table, ``verdict`` weighs a
compaction against the cached prefix it loses, ``tokens`` turns characters into tokens, ``paper`` is
the published cost model, kept for comparison only.
"""

from __future__ import annotations

from recap.economics.prices import PRICES, Prices, price_table, prices_of
from recap.economics.tokens import calibrated, tokens_of
from recap.economics.usage import CacheLife, Usage, cache_life, usage_of
from recap.economics.verdict import (
    Advice,
    Change,
    CostVerdict,
    break_even,
    cost_of,
    describe,
    expected_break_even,
    extra_turns,
    request_usage,
    verdict_of,
    warm_share,
)

__all__ = [
    "PRICES",
    "Advice",
    "CacheLife",
    "Change",
    "CostVerdict",
    "Prices",
    "Usage",
    "break_even",
    "cache_life",
    "calibrated",
    "cost_of",
    "describe",
    "expected_break_even",
    "extra_turns",
    "price_table",
    "prices_of",
    "request_usage",
    "tokens_of",
    "usage_of",
    "verdict_of",
    "warm_share",
]
