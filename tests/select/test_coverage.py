"""Packing by what a block adds to the identifiers kept."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recap.config import Settings
from recap.graph.state import align
from recap.select import Request, select
from recap.select.coverage import identifier_weight
from recap.select.relevance import UNIT, known_terms
from recap.select.score import Evidence
from tests.select.reference import Plain
from tests.select.tables import Case, Row, graph_of, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def kept(rows: Sequence[Row], chars: int, request: str = "", share: float = 0.0) -> list[int]:
    total = sum(row.cost for row in rows)
    settings = Settings(retention=f"{chars}/{total}", recency_share=share)
    s = select(None, table_of(rows), request, settings, policy="coverage")
    return np.flatnonzero(s.is_kept).tolist()


def test_two_blocks_that_say_the_same_are_worth_one() -> None:
    rows = [Row(10, "api.py main.go"), Row(10, "api.py main.go"), Row(10, "Cache")]
    assert kept(rows, 20) == [1, 2]


def test_what_protected_blocks_hold_counts_as_covered() -> None:
    rows = [Row(10, "api.py main.go", kind="user"), Row(10, "api.py main.go"), Row(10, "Cache")]
    assert kept(rows, 20) == [0, 2]


def test_what_the_newest_blocks_hold_counts_as_covered() -> None:
    rows = [Row(10, "Cache"), Row(10, "api.py main.go"), Row(10, "api.py main.go")]
    assert kept(rows, 20, share=0.5) == [0, 2]


def test_an_identifier_of_the_request_outweighs_two_others() -> None:
    rows = [Row(10, "api.py"), Row(10, "Cache main.go"), Row(10), Row(10)]
    assert kept(rows, 10) == [1]
    assert kept(rows, 10, request="see api.py") == [0]


def test_gain_counts_per_character() -> None:
    assert kept([Row(30, "api.py main.go"), Row(10, "Cache"), Row(10)], 30) == [1, 2]


def test_equal_gains_go_to_the_newest() -> None:
    assert kept([Row(10), Row(10), Row(10)], 10) == [2]


def test_a_block_of_no_cost_is_no_division_by_zero() -> None:
    assert kept([Row(0, "api.py"), Row(0), Row(10, "Cache")], 5) == [0, 1]


@pytest.mark.parametrize(("share", "recent"), [(0.0, 0), (0.5, 2), (1.0, 4)])
def test_the_recency_share_of_the_free_budget_goes_to_the_newest(share: float, recent: int) -> None:
    table = table_of([Row(10, "api.py")] * 8)
    settings = Settings(retention="0.5", recency_share=share)
    assert select(None, table, "", settings).count("recent") == recent


def test_identifiers_weigh_by_rarity_authorship_age_and_request() -> None:
    table = table_of([Row(1, wrote="api.py"), Row(1, wrote="api.py"), Row(1, "main.go")])
    nothing = align(graph_of([]), table.ids)
    terms = known_terms(["main.go"], table.index)
    evidence = Evidence(table, nothing, terms, np.zeros(3), b"", Settings())
    assert identifier_weight(evidence) / UNIT == pytest.approx(
        [log(1 + 3 / 2) * (1 + 2 * 2) * exp(-2 * 0.5), log(1 + 3) * 4], abs=1 / UNIT
    )


def test_acts_beyond_three_add_nothing() -> None:
    weights = []
    for times in (3, 4):
        table = table_of([Row(1, wrote="api.py")] * times + [Row(1, "api.py")] * (5 - times))
        evidence = Evidence(
            table, align(graph_of([]), table.ids), np.array([], int), np.zeros(5), b"", Settings()
        )
        weights.append(identifier_weight(evidence).tolist())
    assert weights[0] == weights[1]


def test_the_score_is_what_a_block_added_or_would_still_add() -> None:
    table = table_of([Row(40, "api.py"), Row(10, "api.py Cache"), Row(10, "api.py"), Row(40)])
    settings = Settings(retention="0.1", recency_share=0.0)
    s = select(None, table, "", settings, policy="coverage")
    assert np.flatnonzero(s.is_kept).tolist() == [1]
    assert s.score[1] > 0
    assert s.score[[0, 2, 3]].tolist() == [0, 0, 0]


@pytest.mark.parametrize("retention", ["0.1", "0.4", "1"])
def test_the_shortlist_does_not_change_what_greedy_takes(retention: str) -> None:
    """More candidates than one shortlist holds, with many ties and many bounds out of date."""
    rng = np.random.default_rng(7)
    rows = [
        Row(
            int(rng.integers(0, 60)),
            " ".join(f"name_{i}" for i in rng.zipf(1.2, rng.integers(0, 9)).clip(max=150)),
        )
        for _ in range(300)
    ]
    case = Case(None, table_of(rows), Request("name_3"), Settings(retention=retention), ())
    s = select(*case[:4], policy="coverage")
    assert [d.rule for d in s.decisions()] == Plain(case, "coverage").run().rules
