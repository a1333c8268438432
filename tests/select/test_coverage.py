"""Packing by what a block adds to the identifiers kept."""

from __future__ import annotations

from math import log, sqrt
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recap.config import Settings
from recap.graph.state import align
from recap.select import Request, select
from recap.select.coverage import TOTAL, term_weights
from recap.select.need import FINER, need
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


def test_an_identifier_of_the_request_outweighs_a_newer_one() -> None:
    rows = [*[Row(10)] * 20, Row(10, "api.py"), Row(10, "Cache"), *[Row(10)] * 20]
    assert kept(rows, 10) == [21]
    assert kept(rows, 10, request="see api.py") == [20]


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


def test_the_odds_of_need_add_up_over_uses_and_over_what_the_agent_wrote() -> None:
    table = table_of([Row(1, wrote="api.py"), Row(1, "main.go"), Row(1, "api.py")])
    found = need(table.index, Settings(use_decay=1.0, act_power=0.5)) / UNIT / FINER
    assert found == pytest.approx(
        [log(1 + 3 / 2) * (1 / 3 + 1) * sqrt(1 / 3 + 1 / 3), log(1 + 3) * 1 / 2 * sqrt(1 / 3)],
        rel=1e-5,
    )


def test_what_the_agent_wrote_is_needed_more_and_what_is_old_less() -> None:
    rows = [Row(1, "old_one"), *[Row(1)] * 5, Row(1, "new_one"), Row(1, wrote="own_one"), Row(1)]
    old, new, own = need(table_of(rows).index, Settings()).tolist()
    assert old < new < own


def weights(rows: Sequence[Row], request: str, **settings: float) -> tuple[list[float], ...]:
    table = table_of(rows)
    terms = known_terms([request], table.index)
    nothing = align(graph_of([]), table.ids)
    evidence = Evidence(table, nothing, terms, np.zeros(len(rows)), b"", Settings(**settings))
    return tuple((weight / TOTAL).tolist() for weight in term_weights(evidence))


def test_the_request_and_the_share_of_lines_scale_the_weights() -> None:
    rows = [Row(1, "api.py main.go", lines="line_a line_b")]
    names, lines = weights(rows, "api.py", request_factor=3, line_share=0.25)
    assert names == pytest.approx([0.75 * 3 / 4, 0.75 / 4])
    assert lines == pytest.approx([0.125, 0.125])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_lines_count_by_their_share(share: float) -> None:
    rows = [Row(10, "Cache", lines="line_a line_b"), Row(10, "api.py main.go", lines="line_c")]
    table = table_of(rows)
    s = select(None, table, "", Settings(retention="0.5", line_share=share), policy="coverage")
    assert np.flatnonzero(s.is_kept).tolist() == [0 if share == 1 else 1]


def test_a_block_that_was_kept_never_counts_as_one_that_did_not_fit() -> None:
    rows = [Row(10, f"name_{i}", lines=f"line_{i}") for i in range(6)]
    s = select(None, table_of(rows), "", Settings(retention="0.5"), policy="coverage")
    assert s.count("coverage") == 3
    assert s.count("did-not-fit") == 0


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
