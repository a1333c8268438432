"""Break-even and verdict: worked examples, an independent count turn by turn, and honest answers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.economics import (
    PRICES,
    Change,
    Prices,
    Usage,
    break_even,
    cost_of,
    describe,
    expected_break_even,
    extra_turns,
    request_usage,
    verdict_of,
    warm_share,
)

SONNET = PRICES["claude-sonnet-4-5"]
OPUS = PRICES["claude-opus-4-6"]
T, S0 = 84_000, 20_500


def warm(after: float, common: int, before: int = T) -> Change:
    return Change(before, round(after), cached=before, common=common)


@pytest.mark.parametrize("prices", [SONNET, OPUS, PRICES["claude-haiku-4-5"]])
@pytest.mark.parametrize(
    ("change", "turns"),
    [
        (warm(0.54 * T, S0), 8),
        (warm(0.54 * T, S0 + 20_000), 2),
        (warm(0.38 * T, S0), 3),
        (warm(0.54 * T, 0), 14),
        (Change(T, round(0.99 * T)), 1),
    ],
)
def test_worked_examples_of_any_price_tier(prices: Prices, change: Change, turns: int) -> None:
    assert break_even(change, prices) == turns


def test_a_turn_with_its_prefix_cached_and_with_its_prefix_lost() -> None:
    """An 84k-token branch costs $0.53 cold and $0.04 warm at the prices of Opus 4.6."""
    assert round(cost_of(request_usage(84_000, 0), OPUS), 3) == 0.525
    assert round(cost_of(request_usage(84_000, 84_000), OPUS), 3) == 0.042


def test_each_kind_of_token_has_its_price() -> None:
    million = 1_000_000
    usages = [Usage(**{name: million}) for name in Usage.__dataclass_fields__]
    assert [cost_of(usage, SONNET) for usage in usages] == [3, 0.3, 3.75, 6, 15]


def test_a_cache_of_an_hour_costs_more_to_write() -> None:
    short = break_even(warm(0.54 * T, S0), SONNET)
    long = break_even(Change(T, round(0.54 * T), T, S0, life="1h"), SONNET)
    assert short is not None
    assert long is not None
    assert long > short


def test_a_cheaper_read_makes_the_same_compaction_pay_later() -> None:
    """Reading costs a tenth of the input price for most models, a twentieth for some."""
    assert PRICES["claude-opus-5-5"].cache_read == 0.05 * PRICES["claude-opus-5-5"].input
    turns = [break_even(warm(0.54 * T, S0), PRICES[f"claude-opus-{v}"]) for v in ("5", "5-5")]
    assert turns == [8, 16]


def by_counting(change: Change, prices: Prices, growth: int, cap: int) -> int | None:
    """Return N* by adding up what every request costs on both sides, in thousandths of a cent."""
    read, write, output = (
        Fraction(repr(p)) for p in (prices.cache_read, prices.cache_write_5m, prices.output)
    )
    kept = min(change.cached, change.common, change.after)
    again = Fraction(repr(change.reread))
    removed = change.before - change.after
    plain = read * change.cached + write * (change.before - change.cached)
    short = read * kept + write * (change.after - kept)
    short += again * removed * write + change.reread_output * output
    turn = 1
    while short > plain:
        if turn == cap:
            return None
        size = change.after + again * removed + turn * growth
        plain += read * (change.before + turn * growth) + write * growth
        short += read * size + write * growth
        turn += 1
    return turn


@st.composite
def changes(draw: st.DrawFn) -> Change:
    before = draw(st.integers(2, 200_000))
    after = draw(st.integers(1, before - 1))
    cached = draw(st.one_of(st.just(before), st.just(0), st.integers(0, before)))
    reread = draw(st.sampled_from((0.0, 0.1, 0.5)))
    return Change(
        before, after, cached, draw(st.integers(0, after)), reread, draw(st.integers(0, 2000))
    )


@given(changes(), st.sampled_from((SONNET, OPUS, PRICES["gpt-5.3-codex"])), st.integers(0, 5000))
def test_the_closed_form_is_what_counting_gives(
    change: Change, prices: Prices, growth: int
) -> None:
    turns = break_even(change, prices)
    assert turns is not None
    if turns <= 300:
        assert by_counting(change, prices, growth, 400) == turns


@given(changes())
def test_a_longer_common_prefix_never_pays_later(change: Change) -> None:
    longer = Change(change.before, change.after, change.cached, change.after, change.reread)
    shorter = Change(change.before, change.after, change.cached, change.common, change.reread)
    first, second = break_even(longer, SONNET), break_even(shorter, SONNET)
    assert first is not None
    assert second is not None
    assert first <= second


def test_it_never_pays_where_nothing_is_removed_or_all_is_read_again() -> None:
    assert break_even(Change(100, 100, 100), SONNET) is None
    assert break_even(Change(100, 120), SONNET) is None
    assert break_even(Change(100, 50, 100, reread=1.0), SONNET) is None


def test_the_expectation_lies_between_warm_and_cold() -> None:
    change = warm(0.54 * T, S0)
    found = [expected_break_even(change, SONNET, share) for share in (0, 0.5, 0.9, 1)]
    assert found[0] == 1
    assert found[-1] == break_even(change, SONNET) == 8
    assert found == sorted(found, key=lambda turns: turns or 0)


def test_the_share_of_gaps_that_the_cache_outlives() -> None:
    assert warm_share([0, 10, 400, 350, 360], 300) == 0.75
    assert warm_share([7], 300) is None


def test_extra_turns_before_a_limit() -> None:
    assert extra_turns(Change(80_000, 30_000), 2_500) == 20
    assert extra_turns(Change(80_000, 30_000), 0) is None


def test_a_verdict_holds_all_its_numbers() -> None:
    verdict = verdict_of(warm(0.54 * T, S0), SONNET, limit=10)
    assert (verdict.tokens_before, verdict.tokens_after) == (84_000, 45_360)
    assert verdict.tokens_removed == 38_640
    assert verdict.cached_tokens_lost == 63_500
    assert verdict.penalty == pytest.approx((3.75 * 24_860 + 0.3 * 20_500 - 0.3 * T) / 1e6)
    assert verdict.saving_per_turn == pytest.approx(0.3 * 38_640 / 1e6)
    assert (verdict.break_even_turns, verdict.advice, verdict.reason) == (8, "compact", "pays")
    assert verdict.as_of == SONNET.as_of


def test_do_nothing_is_an_answer() -> None:
    late = verdict_of(warm(0.54 * T, S0), SONNET, limit=7)
    assert (late.advice, late.reason, late.break_even_turns) == ("nothing", "too-late", 8)
    never = verdict_of(Change(T, 40_000, T, reread=1.0), SONNET, limit=10**6)
    assert (never.advice, never.reason, never.break_even_turns) == ("nothing", "never", None)
    empty = verdict_of(Change(T, T, T), SONNET, limit=10)
    assert (empty.advice, empty.reason) == ("nothing", "nothing-to-remove")


def test_without_a_price_the_verdict_is_in_tokens() -> None:
    verdict = verdict_of(warm(0.54 * T, S0), None, limit=100)
    assert (verdict.tokens_removed, verdict.cached_tokens_lost) == (38_640, 63_500)
    assert (verdict.penalty, verdict.saving_per_turn, verdict.break_even_turns) == (None,) * 3
    assert (verdict.advice, verdict.reason) == ("nothing", "no-price")
    assert "no price is known" in describe(verdict)


def test_without_a_price_fewer_tokens_and_no_lost_cache_are_enough() -> None:
    cold = verdict_of(Change(T, 40_000), None, limit=1)
    assert (cold.advice, cold.reason) == ("compact", "no-loss")
    assert verdict_of(Change(T, 40_000, reread_output=500), None, limit=1).advice == "nothing"


@given(changes(), st.sampled_from((None, SONNET, PRICES["gpt-5.3-codex"])), st.integers(0, 50))
def test_every_verdict_has_a_sentence_and_agrees_with_itself(
    change: Change, prices: Prices | None, limit: int
) -> None:
    verdict = verdict_of(change, prices, limit=limit)
    assert describe(verdict)
    assert (verdict.advice == "compact") == (verdict.reason in ("pays", "no-loss"))
    if verdict.reason == "pays":
        assert verdict.break_even_turns is not None
        assert verdict.break_even_turns <= limit
