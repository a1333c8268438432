from __future__ import annotations

import copy
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import Settings
from recap.graph.observation import TurnObservation
from recap.graph.state import ContextGraph
from recap.graph.update import update, update_all
from tests.graph.factories import block_id, observations

EMPTY = ContextGraph.empty("reuse")


def fold(seen, settings=None, graph=EMPTY) -> ContextGraph:
    settings = settings or Settings()
    return reduce(lambda so_far, turn: update(so_far, turn, settings), seen, graph)


def edges_of(graph: ContextGraph) -> dict[tuple[str, str], float]:
    """Return mass by (earlier, later); fails when a pair stands twice."""
    edges: dict[tuple[str, str], float] = {}
    columns = (graph.source.tolist(), graph.target.tolist(), graph.mass.tolist())
    for source, target, mass in zip(*columns, strict=True):
        assert edges.setdefault((graph.ids[source], graph.ids[target]), mass) is mass
    return edges


def reference(seen, alpha, theta):
    """ReCAP section 4.2, block by block in plain Python."""
    importance: dict[str, float] = {}
    edges: dict[tuple[str, str], float] = {}
    for turn in seen:
        peak = max(turn.use.tolist(), default=0.0)
        for block, use in zip(turn.ids, turn.use.tolist(), strict=True):
            share = use / peak if peak > 0 else 0.0
            old = importance.get(block, 0.0)
            importance[block] = float(np.float32((1 - alpha) * old + alpha * share))
        for b, a, m in zip(turn.later, turn.earlier, turn.mass.tolist(), strict=True):
            if m > theta:
                pair = (turn.ids[a], turn.ids[b])
                edges[pair] = max(edges.get(pair, 0.0), float(np.float32(m)))
    return importance, edges


sessions = st.lists(observations(), max_size=5)
coefficients = st.floats(0.01, 1)


@given(sessions, coefficients, st.floats(0, 1))
def test_update_is_the_papers_formula(seen, alpha, theta):
    graph = fold(seen, Settings(smoothing=alpha, edge_threshold=theta))
    importance, edges = reference(seen, alpha, theta)
    assert dict(zip(graph.ids, graph.importance.tolist(), strict=True)) == importance
    assert edges_of(graph) == edges
    assert graph.turns == len(seen)
    assert graph.is_observed.all()


@given(sessions)
def test_importance_stays_between_0_and_1(seen):
    importance = fold(seen).importance
    assert ((importance >= 0) & (importance <= 1)).all()


@given(sessions, st.integers(0, 5))
def test_several_turns_at_once_are_equal_to_one_after_the_other(seen, cut):
    settings = Settings()
    first = update_all(EMPTY, seen[:cut], settings)
    assert update_all(first, seen[cut:], settings) == fold(seen)


@given(sessions, st.randoms())
def test_edges_do_not_depend_on_the_order_of_turns(seen, random):
    shuffled = list(seen)
    random.shuffle(shuffled)
    assert edges_of(fold(shuffled)) == edges_of(fold(seen))


@given(sessions, observations())
def test_edges_never_vanish_or_weaken(seen, turn):
    before = fold(seen)
    after = edges_of(update(before, turn, Settings()))
    assert all(after[pair] >= mass for pair, mass in edges_of(before).items())


@given(sessions)
def test_edges_are_stored_in_the_order_expansion_visits_them(seen):
    graph = fold(seen)
    columns = (graph.target.tolist(), (-graph.mass).tolist(), graph.source.tolist())
    order = list(zip(*columns, strict=True))
    assert order == sorted(order)


@given(sessions)
def test_edges_lead_from_earlier_to_later_blocks(seen):
    assert all(a < b for a, b in edges_of(fold(seen)))


@given(sessions, observations())
def test_update_leaves_the_graph_it_was_given(seen, turn):
    graph = fold(seen)
    kept = copy.deepcopy(graph)
    update(graph, turn, Settings())
    assert graph == kept


@given(sessions, observations())
def test_blocks_that_were_not_observed_keep_their_score_and_place(seen, turn):
    before = fold(seen)
    after = update(before, turn, Settings())
    assert after.ids[: len(before.ids)] == before.ids
    for node, block in enumerate(before.ids):
        if block not in turn.ids:
            assert after.importance[node] == before.importance[node]


def test_a_new_block_starts_at_0_and_the_most_used_one_gains_alpha():
    graph = fold([TurnObservation.of(0, "ab", [2, 4])], Settings(smoothing=0.5))
    assert graph.importance.tolist() == [0.25, 0.5]


def test_a_turn_without_use_halves_what_it_observed():
    seen = [TurnObservation.of(0, "ab", [1, 1]), TurnObservation.of(1, "a", [0])]
    assert fold(seen).importance.tolist() == [0.25, 0.5]


@pytest.mark.parametrize("peak", [5e-324, 1e-300, 1e300, 1.7e308])
def test_the_scale_of_use_does_not_matter(peak):
    graph = fold([TurnObservation.of(0, "ab", [peak, 0])])
    assert graph.importance.tolist() == [0.5, 0]


def test_a_mass_of_theta_itself_is_no_edge():
    turn = TurnObservation.of(0, "abc", [1, 1, 1], [1, 2], [0, 0], [0.05, 0.0500001])
    assert list(edges_of(fold([turn]))) == [("a", "c")]


def test_the_observer_and_the_stale_marks_stay():
    graph = ContextGraph(
        "proxy",
        1,
        (block_id(0), block_id(1)),
        np.zeros(2, np.float32),
        np.array([True, False]),
        np.array([1, -1], np.int32),
        *(np.zeros(0, kind) for kind in (np.int32, np.int32, np.float32)),
    )
    after = fold([TurnObservation.of(1, [block_id(2)], [1])], graph=graph)
    assert after.observer == "proxy"
    assert after.superseded_by.tolist() == [1, -1, -1]
    assert after.is_observed.tolist() == [True, False, True]
