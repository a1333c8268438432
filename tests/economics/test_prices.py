"""The price table: names, dates, overrides, and no guess for a model nobody named."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from recap.economics import PRICES, price_table, prices_of
from recap.economics.prices import USER, Prices
from recap.errors import SettingsError

MINE = {"input": 2, "cache_read": 0.2, "output": 10}


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ("claude-sonnet-4-20250514", (3, 3.75, 6, 0.3, 15)),
        ("claude-sonnet-4-5-20250929", (3, 3.75, 6, 0.3, 15)),
        ("claude-opus-4-6", (5, 6.25, 10, 0.5, 25)),
        ("claude-opus-4-20250514", (15, 18.75, 30, 1.5, 75)),
        ("claude-opus-4-1-20250805", (15, 18.75, 30, 1.5, 75)),
        ("claude-haiku-4-5-20251001", (1, 1.25, 2, 0.1, 5)),
        ("gpt-5.3-codex", (1.75, 1.75, 1.75, 0.175, 14)),
    ],
)
def test_published_prices(model: str, row: tuple[float, ...]) -> None:
    found = prices_of(model)
    assert found is not None
    writes = found.cache_write_5m, found.cache_write_1h
    assert (found.input, *writes, found.cache_read, found.output) == row


def test_dates_and_variants_do_not_change_the_price() -> None:
    plain = prices_of("claude-opus-4-6")
    for name in ("claude-opus-4-6-20260205", "claude-opus-4-6[1m]", " Claude-Opus-4-6-latest"):
        assert prices_of(name) == plain
    assert prices_of("gpt-5-codex-2025-09-15") == prices_of("gpt-5-codex")


@pytest.mark.parametrize(
    "model", ["", "stub-model", "claude-opus-4-9", "claude-opus-5-6", "gpt-5", "<synthetic>"]
)
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert prices_of(model) is None


def test_every_row_is_dated_sourced_and_sane() -> None:
    for name, row in PRICES.items():
        assert date.fromisoformat(row.as_of), name
        assert row.source
        assert 0 < row.cache_read < row.input <= row.cache_write_5m <= row.cache_write_1h
        assert row.output > row.input


def test_the_users_price_comes_before_the_table() -> None:
    table = price_table({"claude-opus-*": MINE | {"as_of": "2026-11-30"}})
    found = prices_of("claude-opus-4-6", table)
    assert found == Prices(2.0, 2.0, 2.0, 0.2, 10.0, "2026-11-30", USER)
    assert prices_of("claude-haiku-4-5", table) == prices_of("claude-haiku-4-5")


def test_the_longest_pattern_of_the_user_counts() -> None:
    table = price_table({"*": MINE, "my-*": MINE | {"input": 3}, "my-model": MINE | {"input": 4}})
    inputs = [prices_of(name, table) for name in ("other", "my-other", "my-model")]
    assert [row.input if row else None for row in inputs] == [2, 3, 4]


def test_a_write_price_that_is_not_given_is_that_of_the_other_write() -> None:
    row = prices_of("m", price_table({"m": MINE | {"cache_write_1h": 4}}))
    assert row is not None
    assert (row.cache_write_5m, row.cache_write_1h) == (4, 4)
    row = prices_of("m", price_table({"m": MINE | {"cache_write_5m": 2.5}}))
    assert row is not None
    assert (row.cache_write_5m, row.cache_write_1h) == (2.5, 2.5)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (7, "must be a table"),
        ({"input": 1}, "cache_read is missing"),
        (MINE | {"inptu": 1}, "unknown key 'inptu'; use input, cache_read"),
        (MINE | {"output": -1}, "output must be a number from 0 on"),
        (MINE | {"output": True}, "output must be a number"),
        (MINE | {"output": "10"}, "output must be a number"),
        (MINE | {"output": float("nan")}, "output must be a number"),
    ],
)
def test_a_wrong_row_is_one_clear_line(row: Any, text: str) -> None:
    with pytest.raises(SettingsError, match=text) as caught:
        price_table({"my-model": row})
    assert str(caught.value).startswith("prices.'my-model'")
