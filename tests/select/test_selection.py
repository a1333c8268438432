"""The selector as a whole: against a plain reference, its invariants, and its edges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recap.config import Settings
from recap.errors import UsageError
from recap.graph.state import ContextGraph
from recap.select import (
    RECIPES,
    Decision,
    Recipe,
    Request,
    Selection,
    decision_to_json,
    select,
)
from recap.select.selection import RULES
from tests.select.reference import Plain
from tests.select.tables import Case, Row, cases, graph_of, table_of

POLICIES = tuple(RECIPES)
if TYPE_CHECKING:
    from recap.blocks.table import BoolArray

ROOT = Path(__file__).resolve().parents[2]


def selected(case: Case, policy: str | None = None) -> Selection:
    return select(*case[:4], policy=policy, pins=case.pins)


def rules(selection: Selection) -> list[str]:
    return [decision.rule for decision in selection.decisions()]


def is_protected(selection: Selection) -> BoolArray:
    return np.isin(selection.rule, [RULES.index(x) for x in RULES if x.startswith("protected")])


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_every_policy_decides_as_the_plain_reference(policy: str, case: Case) -> None:
    plain = Plain(case, policy).run()
    selection = selected(case, policy)
    assert rules(selection) == plain.rules
    pulled = {d.index: d.pulled_by for d in selection.decisions() if d.pulled_by is not None}
    assert pulled == plain.pulled_by


@settings(max_examples=100, deadline=None)
@given(case=cases(), policy=st.sampled_from(POLICIES))
def test_costs_keep_to_the_budget_rule(policy: str, case: Case) -> None:
    s = selected(case, policy)
    base = sum(b.cost_chars for b in case.table.blocks if b.is_active)
    beta, delta = Fraction(case.settings.retention), Fraction(case.settings.expansion)
    limit = (1 + delta) * floor(beta * base) if RECIPES[policy].expands else beta * base
    assert (s.active_chars, s.budget_chars) == (base, floor(beta * base))
    assert s.limit_chars == floor(limit)
    assert s.protected_chars <= s.core_chars <= max(s.budget_chars, s.protected_chars)
    assert s.core_chars <= s.cost_chars <= max(s.limit_chars, s.protected_chars)


@settings(max_examples=100, deadline=None)
@given(case=cases(), policy=st.sampled_from(POLICIES))
def test_every_block_has_one_rule_and_kept_costs_add_up(policy: str, case: Case) -> None:
    s = selected(case, policy)
    log = s.decisions()
    assert [d.index for d in log] == list(range(len(case.table)))
    assert all(d.rule in RULES for d in log)
    assert [d.is_kept for d in log] == s.is_kept.tolist()
    assert {d.rule for d in log if not d.is_kept} <= {"dropped", "did-not-fit", "stale"}
    assert sum(d.cost_chars for d in log if d.is_kept) == s.cost_chars
    core = [d for d in log if d.is_kept and d.rule != "expanded"]
    assert sum(d.cost_chars for d in core) == s.core_chars
    assert sum(s.count(rule) for rule in RULES) == len(log)


@settings(max_examples=60, deadline=None)
@given(
    case=cases(),
    policy=st.sampled_from(("recency", "paper", "bm25")),
    shares=st.lists(st.fractions("1/50", 1, max_denominator=50), min_size=2, max_size=6),
)
def test_core_cost_never_falls_when_retention_grows(
    policy: str, case: Case, shares: list[Fraction]
) -> None:
    costs = [
        selected(case._replace(settings=case.settings.replace(retention=str(x))), policy).core_chars
        for x in sorted(shares)
    ]
    assert costs == sorted(costs)


@settings(max_examples=60, deadline=None)
@given(case=cases(), policy=st.sampled_from(POLICIES))
def test_the_same_arguments_give_the_same_selection(policy: str, case: Case) -> None:
    assert selected(case, policy).decisions() == selected(case, policy).decisions()


@pytest.mark.parametrize("policy", POLICIES)
def test_an_empty_history_selects_nothing(policy: str) -> None:
    s = select(None, table_of([]), "fix parse_row", policy=policy)
    assert (s.decisions(), s.budget_chars, s.cost_chars) == ([], 0, 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_single_block_above_the_budget_is_dropped(policy: str) -> None:
    assert rules(select(None, table_of([Row(10)]), "", policy=policy)) == ["dropped"]


@pytest.mark.parametrize("policy", POLICIES)
def test_blocks_that_cost_nothing_are_all_kept(policy: str) -> None:
    s = select(None, table_of([Row(0, "api.py"), Row(0), Row(0, kind="user")]), "", policy=policy)
    assert s.is_kept.all()


@settings(max_examples=60, deadline=None)
@given(case=cases(), policy=st.sampled_from(POLICIES))
def test_retention_1_keeps_all_that_is_live_when_it_fits(policy: str, case: Case) -> None:
    s = selected(case._replace(settings=case.settings.replace(retention="1")), policy)
    live = case.table.is_active
    if s.protected_chars + case.table.cost_chars[live & ~is_protected(s)].sum() <= s.budget_chars:
        assert s.is_kept[live].all()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_block_from_before_a_native_compaction_costs_but_is_no_part_of_the_base(
    policy: str,
) -> None:
    table = table_of(
        [Row(40, "api.py", is_active=False), Row(100, "cfg.toml"), Row(100, "main.go")]
    )
    s = select(None, table, "api.py", Settings(retention="0.2"), policy=policy, pins=[table.ids[0]])
    assert (s.active_chars, s.budget_chars, s.protected_chars) == (200, 40, 40)


@settings(max_examples=40, deadline=None)
@given(case=cases(), policy=st.sampled_from(("paper", "coverage")))
def test_no_graph_is_a_graph_that_measured_nothing(policy: str, case: Case) -> None:
    empty = case._replace(graph=ContextGraph.empty("reuse"))
    assert (
        selected(case._replace(graph=None), policy).decisions()
        == selected(empty, policy).decisions()
    )


def test_policy_none_takes_the_one_in_settings() -> None:
    s = select(None, table_of([Row(1)]), "", Settings(policy="random"))
    assert s.policy == "random"
    assert select(None, table_of([Row(1)]), "").policy == Settings().policy


@pytest.mark.parametrize("name", ["", "papers"])
def test_an_unknown_policy_is_an_error_that_lists_the_names(name: str) -> None:
    with pytest.raises(UsageError, match="coverage, paper") as error:
        select(None, table_of([Row(1)]), "", policy=name)
    assert repr(name) in str(error.value)


def test_an_unknown_pin_is_an_error() -> None:
    with pytest.raises(UsageError, match="no block"):
        select(None, table_of([Row(1)]), "", pins=["ffff"])


def test_a_pin_is_kept_above_the_budget() -> None:
    table = table_of([Row(50, "api.py"), Row(50, "cfg.toml")])
    s = select(None, table, "", policy="recency", pins=[table.ids[0]])
    assert rules(s) == ["protected:pin", "dropped"]


def test_paper_protects_a_latest_edit_of_any_size() -> None:
    table = table_of([Row(9000, edited=("a.py",)), Row(9000)])
    assert rules(select(None, table, "", policy="paper"))[0] == "protected:edit"
    assert rules(select(None, table, "", policy="coverage"))[0] == "dropped"


def test_a_recipe_of_the_caller_ranks_as_it_says() -> None:
    table = table_of([Row(10), Row(10), Row(10)])
    middle = Recipe("middle", "the middle one", rank=lambda _: np.array([0.0, 1.0, 0.0]))
    s = select(None, table, "", Settings(retention="1/3"), policy=middle)
    assert (s.policy, rules(s)) == ("middle", ["dropped", "ranked", "dropped"])


def test_a_recipe_without_a_graph_shows_none_of_its_values() -> None:
    table = table_of([Row(10), Row(10)])
    graph = graph_of(table.ids, importance={0: 1.0}, superseded={0: 1}, edges=[(0, 1, 0.5)])
    s = select(graph, table, "", Settings(retention="0.5"), policy="recency")
    assert not s.importance.any()
    assert not s.is_stale.any()
    assert rules(s) == ["dropped", "ranked"]


def test_a_block_ranked_above_a_kept_one_did_not_fit_and_one_below_was_dropped() -> None:
    table = table_of([Row(5), Row(3), Row(9), Row(1)])
    s = select(None, table, "", Settings(retention="1/4"), policy="recency")
    assert rules(s) == ["dropped", "ranked", "did-not-fit", "ranked"]


def test_request_identifiers_of_paper_are_no_plain_words() -> None:
    table = table_of([Row(10, "cache"), Row(10, "main.go")])
    assert not select(None, table, "the cache", policy="paper").relevance.any()
    assert select(None, table, "the cache", policy="bm25").relevance[0] > 0


def test_the_score_of_a_protected_block_is_zero() -> None:
    table = table_of([Row(10, kind="user"), Row(10)])
    assert select(None, table, "", policy="recency").score.tolist() == [0.0, 1.0]


def test_a_decision_as_json_has_its_fields_in_order_and_six_decimals() -> None:
    row = Decision(3, "ab", "tools", 1, 20, True, "expanded", 1 / 3, 0.5, 2.0, False, 7, 0.1234567)
    assert json.dumps(decision_to_json(row)) == (
        '{"index": 3, "id": "ab", "kind": "tools", "turn": 1, "cost_chars": 20, "is_kept": true, '
        '"rule": "expanded", "importance": 0.333333, "relevance": 0.5, "score": 2.0, '
        '"is_stale": false, "pulled_by": 7, "edge_mass": 0.123457}'
    )


def test_draws_stay_with_their_blocks_when_others_come_before_them() -> None:
    few = table_of([Row(10), Row(10)], ids=["a", "b"])
    more = table_of([Row(10), Row(10), Row(10)], ids=["new", "a", "b"])
    request = Request("", b"seed")
    few_scores = select(None, few, request, policy="random").score
    assert few_scores.tolist() == select(None, more, request, policy="random").score[1:].tolist()


def test_another_seed_shuffles_anew() -> None:
    table = table_of([Row(10)] * 20)
    scores = [
        select(None, table, Request("", seed), policy="random").score for seed in (b"a", b"b")
    ]
    assert scores[0].tolist() != scores[1].tolist()


IN_A_FRESH_PROCESS = """
import hashlib, json
from recap.select import RECIPES, Request, decision_to_json, select
from tests.select.tables import NAMES, Row, graph_of, table_of

rows = [Row(i * 37 % 50, " ".join(NAMES[i % 3 : i % 7]), NAMES[i % 7]) for i in range(60)]
table = table_of(rows)
edges = [(b - b % 5 - 1, b, (b % 8 + 1) / 8) for b in range(5, 60) if b % 5 < 4]
graph = graph_of(table.ids, importance={i: i % 4 / 4 for i in range(60)}, observed=range(0, 60, 2), edges=edges)
request = Request(" ".join(NAMES), b"seed")
log = [
    decision_to_json(d) for name in RECIPES for d in select(graph, table, request, policy=name).decisions()
]
print(hashlib.sha256(json.dumps(log).encode()).hexdigest())
"""


def test_every_process_and_hash_seed_selects_the_same() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", IN_A_FRESH_PROCESS],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
