"""Score terms of the paper's policy, and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from recap.config import Settings
from recap.graph.state import align
from recap.select.score import Evidence, context_score, draws, standardised
from tests.select.tables import Row, graph_of, table_of

TABLE = table_of([Row(10), Row(10), Row(10), Row(10)])


def evidence(relevance: list[float], **graph: Any) -> Evidence:
    return Evidence(
        table=TABLE,
        graph=align(graph_of(TABLE.ids, **graph), TABLE.ids),
        terms=np.array([], np.int64),
        relevance=np.array(relevance),
        seed=b"seed",
        settings=Settings(query_weight=0.5, stale_penalty=3.0),
    )


def test_standardised_channels_have_population_deviation_1() -> None:
    assert standardised(np.array([1.0, 3.0])).tolist() == [-1, 1]


@pytest.mark.parametrize("channel", [[], [0.1], [0.1, 0.1, 0.1]])
def test_a_constant_channel_says_nothing(channel: list[float]) -> None:
    assert not standardised(np.array(channel)).any()


def test_measured_blocks_score_by_importance_and_weighted_relevance() -> None:
    seen = evidence([0, 0, 2, 2], importance={1: 1.0, 3: 1.0}, observed=range(4))
    assert context_score(seen).tolist() == [-1.5, 0.5, -0.5, 1.5]


def test_a_stale_block_loses_the_penalty() -> None:
    seen = evidence([0] * 4, observed=range(4), superseded={1: 2})
    assert context_score(seen).tolist() == [0, -3, 0, 0]


def test_a_block_never_measured_gains_between_the_exploration_bounds() -> None:
    score = context_score(evidence([0] * 4, observed=[0, 2]))
    assert score[[0, 2]].tolist() == [0, 0]
    assert ((score[[1, 3]] >= 0.5) & (score[[1, 3]] <= 1)).all()
    assert score[1] != score[3]


def test_draws_are_uniform() -> None:
    table = table_of([Row(1)] * 2000)
    many = Evidence(
        table,
        align(graph_of([]), table.ids),
        np.array([], np.int64),
        np.zeros(2000),
        b"",
        Settings(),
    )
    values = draws(many, np.ones(2000, np.bool_))
    assert values.min() >= 0
    assert values.max() < 1
    assert np.histogram(values, 10, (0, 1))[0] == pytest.approx([200] * 10, abs=60)


def test_nothing_is_drawn_for_nobody() -> None:
    assert draws(evidence([0] * 4), np.zeros(4, np.bool_)).tolist() == []
