"""What a compaction costs now, what it saves later, and whether it pays.

A compaction changes the prefix of the prompt, so that the cache behind the first change is lost and
the shorter context has to be written once. Each later request then reads fewer tokens. Model (ours):
with T, T' tokens before and after, C of T in the cache, c = what of it both have in common, r and w
the prices of reading and writing, q the share of removed tokens that are read again::

    R       = q (T - T') w + m_out p_out
    penalty = w (T' - c) + r c - w (T - C) - r C + R       first request, compacted or not
    saving  = r (T - T') (1 - q)                           each later request
    N*      = 1 + max(0, ceil(penalty / saving))

A warm cache holds all of T, an expired one nothing. New tokens cost the same on both sides. What is
called a turn here is one request to the model. Sums are exact; USD.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from recap.economics.usage import CacheLife, Usage
from recap.errors import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.economics.prices import Prices

Advice = Literal["compact", "nothing"]
Reason = Literal["pays", "no-loss", "nothing-to-remove", "never", "too-late", "no-price"]
Money: TypeAlias = Fraction

PER_MILLION = Fraction(1, 1_000_000)


@dataclass(frozen=True, slots=True)
class Change:
    """A compaction, in tokens.

    Attributes:
        before: The whole prompt as it would be sent without it, system text and tools included (T).
        after: The whole prompt with it (T').
        cached: Of ``before``, from its beginning, what the cache holds now (C): all of it while the
            cache is warm, 0 when it expired.
        common: Tokens that both prompts begin with: system text, tools, messages before the first
            change.
        reread: Share of the removed tokens that the agent will read again, 0 to 1 (q).
        reread_output: Output tokens of the calls that do it (m_out).
        life: Which cache the client writes.
    """

    before: int
    after: int
    cached: int = 0
    common: int = 0
    reread: float = 0.0
    reread_output: int = 0
    life: CacheLife = "5m"

    @property
    def removed(self) -> int:
        """Tokens removed; negative where the prompt grows."""
        return self.before - self.after

    @property
    def held(self) -> int:
        """Tokens of ``before`` in the cache (C)."""
        return max(0, min(self.cached, self.before))

    @property
    def kept(self) -> int:
        """Tokens of the cached prefix that stay good (c)."""
        return max(0, min(self.held, self.common, self.after))

    @property
    def lost(self) -> int:
        """Cached tokens that are good for nothing afterwards."""
        return self.held - self.kept


@dataclass(frozen=True, slots=True)
class CostVerdict:
    """Whether a compaction pays, and the numbers that say so.

    Attributes:
        tokens_before: Prompt without it.
        tokens_after: Prompt with it.
        tokens_removed: Their difference; negative where the prompt grows.
        cached_tokens_lost: Tokens that were in the cache and have to be paid again, as far as kept.
        penalty: USD that the next request costs more with it; negative: less. None without a price.
        saving_per_turn: USD that each request after that costs less. None without a price.
        break_even_turns: Requests after which it has paid, 1 for at once; None: never, or no price.
        advice: What to do.
        reason: Why: ``pays``; ``no-loss``, fewer tokens at any price, as no price is known and no
            cached token is lost; ``nothing-to-remove``; ``never`` and ``too-late`` of the break-even;
            ``no-price``, a cached prefix would be lost and what that costs is not known.
        as_of: Day of the prices, "" without one.
    """

    tokens_before: int
    tokens_after: int
    tokens_removed: int
    cached_tokens_lost: int
    penalty: float | None
    saving_per_turn: float | None
    break_even_turns: int | None
    advice: Advice
    reason: Reason
    as_of: str = ""


def request_usage(tokens: int, cached: int, *, life: CacheLife = "5m", output: int = 0) -> Usage:
    """Return the usage of a request whose first ``cached`` tokens the cache holds.

    The rest is written to the cache, as agents have it done.
    """
    read = max(0, min(cached, tokens))
    written = tokens - read
    short, long = (written, 0) if life == "5m" else (0, written)
    return Usage(0, read, short, long, output)


def cost_of(usage: Usage, prices: Prices) -> float:
    """Return what a response cost, in USD."""
    return float(_cost(usage, prices))


def break_even(change: Change, prices: Prices) -> int | None:
    """Return N*: after how many requests the compaction has paid, 1 for at once; None for never."""
    return _turns(_penalty(change, prices), _saving(change, prices))


def expected_break_even(change: Change, prices: Prices, warm: float) -> int | None:
    """Return N* for a cache that is warm with probability ``warm``, else expired.

    ``change.cached`` is what it holds when warm. The penalty is the mean of both.
    """
    share = Fraction(warm)
    cold = _penalty(replace(change, cached=0), prices)
    mean = share * _penalty(change, prices) + (1 - share) * cold
    return _turns(mean, _saving(change, prices))


def warm_share(times: Sequence[float], life: float) -> float | None:
    """Return the share of gaps between requests that a cache of ``life`` seconds outlives.

    None without a gap. A clock that ran backwards counts as no time.
    """
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return sum(gap <= life for gap in gaps) / len(gaps) if gaps else None


def extra_turns(change: Change, growth: float) -> float | None:
    """Return how many turns later a limit of tokens is reached; None where the prompt never grows."""
    return change.removed / growth if growth > 0 else None


def verdict_of(change: Change, prices: Prices | None, *, limit: int) -> CostVerdict:
    """Return whether a compaction pays.

    Args:
        change: The compaction.
        prices: Of the model, None where none is known: then only tokens are told.
        limit: Requests after which it must have paid.
    """
    if prices is None:
        is_free = not change.lost and not change.reread_output and change.reread < 1
        advice, reason = _judged(change, "compact" if is_free else "nothing", "no-loss", "no-price")
        return _verdict(change, advice, reason)
    penalty, saving = _penalty(change, prices), _saving(change, prices)
    turns = _turns(penalty, saving)
    pays = turns is not None and turns <= limit
    against: Reason = "never" if turns is None else "too-late"
    advice, reason = _judged(change, "compact" if pays else "nothing", "pays", against)
    return _verdict(
        change,
        advice,
        reason,
        penalty=float(penalty),
        saving_per_turn=float(saving),
        break_even_turns=turns,
        as_of=prices.as_of,
    )


def describe(verdict: CostVerdict) -> str:
    """Return the verdict as one sentence for a person."""
    removed, lost = f"{verdict.tokens_removed:,}", f"{verdict.cached_tokens_lost:,}"
    count, as_of = verdict.break_even_turns, verdict.as_of or "your price table"
    turns = counted(count or 0, "request")
    return {
        "pays": f"removes {removed} tokens, loses {lost} cached ones, "
        f"has paid after {turns} (prices of {as_of})",
        "no-loss": f"removes {removed} tokens and loses no cached one; no price known",
        "nothing-to-remove": "there is nothing to remove",
        "never": f"removes {removed} tokens and never pays for {lost} cached ones it loses",
        "too-late": f"has paid only after {turns} (prices of {as_of})",
        "no-price": f"loses {lost} cached tokens and no price is known; "
        "give one under [prices] in recap.toml",
    }[verdict.reason]


def _judged(change: Change, advice: Advice, pro: Reason, contra: Reason) -> tuple[Advice, Reason]:
    if change.removed <= 0:
        return "nothing", "nothing-to-remove"
    return advice, pro if advice == "compact" else contra


def _verdict(
    change: Change,
    advice: Advice,
    reason: Reason,
    *,
    penalty: float | None = None,
    saving_per_turn: float | None = None,
    break_even_turns: int | None = None,
    as_of: str = "",
) -> CostVerdict:
    return CostVerdict(
        tokens_before=change.before,
        tokens_after=change.after,
        tokens_removed=change.removed,
        cached_tokens_lost=change.lost,
        penalty=penalty,
        saving_per_turn=saving_per_turn,
        break_even_turns=break_even_turns,
        advice=advice,
        reason=reason,
        as_of=as_of,
    )


def _exact(number: float) -> Fraction:
    """Return a price as written: 0.1 is a tenth, or break-evens would depend on rounding."""
    return Fraction(repr(float(number)))


def _cost(usage: Usage, prices: Prices) -> Money:
    return PER_MILLION * (
        usage.uncached * _exact(prices.input)
        + usage.cache_read * _exact(prices.cache_read)
        + usage.cache_write_5m * _exact(prices.cache_write_5m)
        + usage.cache_write_1h * _exact(prices.cache_write_1h)
        + usage.output * _exact(prices.output)
    )


def _penalty(change: Change, prices: Prices) -> Money:
    again = request_usage(max(0, change.removed), 0, life=change.life)
    calls = Usage(output=change.reread_output)
    return (
        _cost(request_usage(change.after, change.kept, life=change.life), prices)
        - _cost(request_usage(change.before, change.held, life=change.life), prices)
        + _exact(change.reread) * _cost(again, prices)
        + _cost(calls, prices)
    )


def _saving(change: Change, prices: Prices) -> Money:
    read = change.removed * _exact(prices.cache_read) * PER_MILLION
    return read * (1 - _exact(change.reread))


def _turns(penalty: Money, saving: Money) -> int | None:
    if saving <= 0:
        return None
    return 1 + max(0, math.ceil(penalty / saving))
