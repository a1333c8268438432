"""One hop back along support edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recap.graph.state import align
from recap.select.expand import Expansion, expand
from tests.select.tables import block_id, graph_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def expanded(
    costs: Sequence[int],
    kept: Sequence[int],
    edges: Sequence[tuple[int, int, float]],
    chars: int,
    superseded: Mapping[int, int] | None = None,
) -> Expansion:
    ids = tuple(map(block_id, range(len(costs))))
    graph = align(graph_of(ids, edges=edges, superseded=superseded), ids)
    is_kept = np.isin(np.arange(len(costs)), kept)
    return expand(graph, is_kept, np.array(costs, np.int64), chars)


def test_kept_blocks_pull_chronologically_and_by_falling_mass() -> None:
    edges = [(0, 4, 0.2), (1, 4, 0.8), (2, 3, 0.1)]
    done = expanded([1] * 5, [3, 4], edges, 10)
    assert done.added.tolist() == [2, 1, 0]
    assert done.pulled_by.tolist() == [3, 4, 4]
    assert done.mass.tolist() == [np.float32(x) for x in (0.1, 0.8, 0.2)]


def test_equal_masses_are_visited_chronologically() -> None:
    assert expanded([1] * 3, [2], [(1, 2, 0.5), (0, 2, 0.5)], 1).added.tolist() == [0]


def test_what_is_pulled_in_pulls_nothing() -> None:
    assert expanded([1] * 3, [2], [(0, 1, 0.9), (1, 2, 0.9)], 9).added.tolist() == [1]


def test_the_first_edge_that_leads_to_a_block_is_the_one_that_pulls_it() -> None:
    done = expanded([1] * 3, [1, 2], [(0, 1, 0.1), (0, 2, 0.9)], 9)
    assert (done.added.tolist(), done.pulled_by.tolist()) == ([0], [1])


def test_stale_blocks_are_named_and_not_added() -> None:
    done = expanded([1] * 3, [2], [(0, 2, 0.9), (1, 2, 0.5)], 9, superseded={0: 1})
    assert (done.added.tolist(), done.stale.tolist()) == ([1], [0])


def test_a_stale_block_no_edge_leads_to_is_not_named() -> None:
    assert expanded([1] * 3, [1], [(0, 2, 0.9)], 9, superseded={0: 1}).stale.tolist() == []


def test_what_does_not_fit_is_passed_for_a_later_one_that_does() -> None:
    done = expanded([9, 2, 1], [2], [(0, 2, 0.9), (1, 2, 0.5)], 3)
    assert (done.added.tolist(), done.passed.tolist()) == ([1], [0])


def test_a_budget_overrun_by_protection_adds_nothing() -> None:
    assert expanded([0, 1], [1], [(0, 1, 0.9)], -1).added.tolist() == []


def test_a_gain_fills_what_the_strongest_edges_leave_of_the_room() -> None:
    ids = tuple(map(block_id, range(5)))
    edges = [(0, 4, 0.9), (1, 4, 0.5), (2, 4, 0.3), (3, 4, 0.1)]
    graph = align(graph_of(ids, edges=edges), ids)
    is_kept, costs = np.arange(5) == 4, np.ones(5, np.int64)
    gain = np.array([0.0, 1.0, 2.0, 3.0, 0.0])
    for edge_chars, added in ((0, [3, 2]), (1, [0, 3]), (2, [0, 1])):
        done = expand(graph, is_kept, costs, 2, gain, edge_chars)
        assert done.added.tolist() == added
        assert done.mass.tolist() == [np.float32(edges[a][2]) for a in added]
