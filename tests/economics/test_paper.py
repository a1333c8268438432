"""Paper mode gives what was published, row by row."""

from __future__ import annotations

import json
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import pytest

from recap.economics.paper import (
    PAPER_PRICES,
    PaperReport,
    estimated_tokens,
    percent,
    report,
    rounded,
    tier_of,
    trimmed_tokens,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def golden(corpus: Path) -> dict[str, Any]:
    path = corpus.parent / "cases" / "cmv" / "economics_golden.json"
    if not path.is_file():
        pytest.skip(f"golden cost data not found at {path}")
    data: dict[str, Any] = json.loads(path.read_bytes())
    assert len(data["sessions"]) == 76
    return data


def reports(golden: dict[str, Any], model: str = "sonnet") -> list[PaperReport]:
    found = []
    for row in golden["sessions"]:
        given = row["in"]
        tokens = given["tokens"]
        after = trimmed_tokens(tokens, given["original_bytes"], given["trimmed_bytes"])
        found.append(report(tokens, after, PAPER_PRICES[model]))
    return found


@pytest.mark.corpus
def test_every_output_of_every_row_is_reproduced(golden: dict[str, Any]) -> None:
    for row, found in zip(golden["sessions"], reports(golden), strict=True):
        given, out = row["in"], row["out"]
        whole = given["original_bytes"]
        assert found.tokens_after == out["post_tokens"]
        assert found.reduction_percent == out["reduction_percent"]
        assert percent(whole - given["trimmed_bytes"], whole) == out["byte_reduction_percent"]
        results = given["bytes_by_kind"]["toolResults"]
        assert percent(results, given["active_bytes"]) == out["tool_result_percent"]
        assert found.context_used_percent == out["context_used_percent"]
        money = (found.turn_before, found.first_turn_after, found.turn_after, found.penalty)
        names = ("cost_turn_before", "cost_first_turn_after", "cost_turn_after", "penalty")
        assert money == pytest.approx([out[name] for name in names], abs=1e-9)
        assert found.saving_per_turn == pytest.approx(out["saving_per_turn"], abs=1e-9)
        assert found.break_even_turns == out["break_even_turns"]
        for line, wanted in zip(found.projections, out["projections"], strict=True):
            assert (line.turns, line.percent) == (wanted[0], wanted[3])
            assert (line.without, line.trimmed) == pytest.approx(wanted[1:3], abs=1e-9)


@pytest.mark.corpus
@pytest.mark.parametrize("model", PAPER_PRICES)
def test_scanned_break_evens_are_reproduced(golden: dict[str, Any], model: str) -> None:
    wanted = [row["derived"]["break_even_scan_60"][model] for row in golden["sessions"]]
    assert [found.break_even_scan for found in reports(golden, model)] == wanted


@pytest.mark.corpus
def test_aggregates_are_those_of_the_page(golden: dict[str, Any]) -> None:
    found, sums = reports(golden), golden["aggregates"]
    reductions = [each.reduction_percent for each in found]
    spread = sums["reduction_percent"]
    assert (min(reductions), median(reductions), max(reductions)) == (0, 12, 86)
    assert mean(reductions) == pytest.approx(spread["mean"], abs=1e-4)
    assert mean(each.tokens_after for each in found) == pytest.approx(
        sums["tokens_after_mean"], abs=0.01
    )
    for model, wanted in sums["penalty_usd"].items():
        penalties = [each.penalty for each in reports(golden, model)]
        numbers = (min(penalties), median(penalties), mean(penalties), max(penalties))
        assert numbers == pytest.approx(list(wanted.values()), abs=5e-4)
    never = sum(each.break_even_turns == 999 for each in found)
    late = sum(each.break_even_turns >= 60 for each in found)
    assert (never, late) == (sums["sessions_never"], sums["sessions_at_cap_or_beyond"])
    tiers = [tier_of(row["out"]["tool_result_percent"]) for row in golden["sessions"]]
    counts = {tier: tiers.count(tier) for tier in ("heavy", "mixed", "conversational")}
    assert counts == {"heavy": 0, "mixed": 12, "conversational": 64}


@pytest.mark.parametrize(("rho", "turns"), [(0.54, 6), (0.70, 12), (0.14, 1)])
@pytest.mark.parametrize("model", PAPER_PRICES)
def test_break_even_depends_on_the_share_kept_alone(rho: float, turns: int, model: str) -> None:
    for tokens in (50_000, 100_000, 150_000):
        found = report(tokens, round(rho * tokens), PAPER_PRICES[model])
        assert found.break_even_turns == found.break_even_scan == turns


def test_halves_are_rounded_up() -> None:
    assert [rounded(x) for x in (0.5, 1.5, 2.5, -0.5, 2.49)] == [1, 2, 3, 0, 2]


def test_tiers_begin_above_their_bounds() -> None:
    tiers = [tier_of(share) for share in (15, 16, 40, 41)]
    assert tiers == ["conversational", "mixed", "mixed", "heavy"]


def test_a_trim_that_saves_nothing_never_pays() -> None:
    assert report(50_000, 50_000, PAPER_PRICES["sonnet"]).break_even_turns == 999


def test_a_trim_is_estimated_by_the_bytes_of_each_kind() -> None:
    kinds = {
        "fileHistory": 100, "thinkingSignatures": 200, "toolResults": 1000, "toolUseRequests": 100
    }  # fmt: skip
    removed = 100 + 200 + 700 - 35 * 10 + 30
    wanted = rounded(50_000 * (1 - removed / 2000)) + 20_000
    assert estimated_tokens(70_000, 2000, kinds, 10) == wanted
    assert estimated_tokens(70_000, 10, kinds, 10) == rounded(50_000 * 0.05) + 20_000
    assert estimated_tokens(70_000, 0, kinds, 10) == 70_000


def test_a_trim_never_adds_tokens() -> None:
    assert trimmed_tokens(5_000, 100, 90) == 5_000
    assert trimmed_tokens(50_000, 0, 0) == 50_000
