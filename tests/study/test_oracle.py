"""The greedy oracle: never far from the best set of blocks, and ahead of whoever keeps the same budget."""

from __future__ import annotations

from itertools import combinations
from math import exp
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recap.baselines.method import Task
from recap.blocks.segment import segment
from recap.blocks.table import build_table
from recap.config import Settings
from recap.graph.state import ContextGraph
from recap.study.evaluate import METRICS, ORACLES
from recap.study.methods import greedy_oracle
from recap.study.metrics.coverage import need
from tests.testing import reply

if TYPE_CHECKING:
    from recap.study.runs import Study

EXPANDING = ("coverage", "paper")

BLOCKS = st.lists(
    st.tuples(st.integers(1, 12), st.frozensets(st.sampled_from("abcdefghij"), max_size=5)),
    min_size=1,
    max_size=8,
)


def task_of(costs: list[int], budget: int) -> Task:
    messages = tuple(reply("x" * cost) for cost in costs)
    table = build_table(messages, segment(messages))
    assert table.cost_chars.tolist() == costs
    nothing = np.zeros(len(costs), np.bool_)
    return Task(table, nothing, "", budget, b"", ContextGraph.empty("reuse"), Settings())


@given(BLOCKS, st.integers(0, 40))
def test_the_oracle_is_near_the_best_where_blocks_are_small(
    blocks: list[tuple[int, frozenset[str]]], budget: int
) -> None:
    """At least 1 - e^-(1 - s) of the best, s being the dearest block's share of the budget.

    Greedy spends more than (1 - s) of the budget before the first block does not fit, and what it
    has then is within 1 - e^-(share spent) of the best (Khuller et al. 1999, lemma 2).
    """
    costs, held = [cost for cost, _ in blocks], [items for _, items in blocks]
    needed = need(held, frozenset("abcdefgh"))
    kept = greedy_oracle(task_of(costs, budget), needed, held).kept

    def covered(chosen: frozenset[int] | tuple[int, ...]) -> float:
        items = frozenset().union(*(held[block] for block in chosen))
        return sum(weight for item, weight in needed.items() if item in items)

    assert sum(costs[block] for block in kept) <= budget
    fitting = (
        chosen
        for size in range(len(costs) + 1)
        for chosen in combinations(range(len(costs)), size)
        if sum(costs[block] for block in chosen) <= budget
    )
    best = max(map(covered, fitting))
    share = min(max(costs) / budget, 1) if budget else 1
    assert covered(kept) >= (1 - exp(share - 1)) * best - 1e-9
    if sum(costs) <= budget:
        assert covered(kept) == best


def test_no_method_of_blocks_in_the_same_budget_is_ahead_of_the_oracle(study: Study) -> None:
    """On the oracle's own measure, on average; one that expands may spend more than B."""
    rows = [row for session in study.sessions for row in session.rows]
    for metric in METRICS:
        for retention in study.plan.retentions:
            mean = {
                method: np.mean([
                    row.scores[metric]
                    for row in rows
                    if (row.method, row.retention) == (method, retention) and row.scores[metric] is not None
                ])
                for method in {row.method for row in rows} - set(EXPANDING)
            }  # fmt: skip
            assert max(mean, key=mean.__getitem__) in ORACLES.values()
            assert mean[ORACLES[metric]] >= max(mean.values()) - 0.02
