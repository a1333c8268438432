from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import Settings
from recap.graph.state import AlignedGraph, ContextGraph, align, locate
from recap.graph.update import update_all
from tests.graph.factories import block_id, observations

IDS = tuple("abcd")


def graph_of(ids=IDS, edges=((0, 1, 0.9), (0, 3, 0.7), (2, 3, 0.5)), superseded=None):
    """A graph of four blocks, the first superseded by the third."""
    source, target, mass = zip(*edges, strict=True)
    return ContextGraph(
        "reuse",
        1,
        tuple(ids),
        np.array([0.1, 0.2, 0.3, 0.4], np.float32),
        np.array([True, True, False, True]),
        np.array([2, -1, -1, -1] if superseded is None else superseded, np.int32),
        np.array(source, np.int32),
        np.array(target, np.int32),
        np.array(mass, np.float32),
    )


def edges_of(aligned: AlignedGraph) -> list[tuple[int, int, float]]:
    columns = (aligned.source, aligned.target, aligned.mass)
    return [(a, b, round(m, 4)) for a, b, m in zip(*(c.tolist() for c in columns), strict=True)]


def test_an_empty_graph_knows_nothing():
    graph = ContextGraph.empty("proxy")
    assert (graph.observer, graph.turns, graph.ids, len(graph.mass)) == ("proxy", 0, (), 0)
    aligned = align(graph, IDS)
    assert aligned.importance.tolist() == [0, 0, 0, 0]
    assert not aligned.is_observed.any()
    assert not aligned.is_stale.any()


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(ContextGraph)])
def test_graphs_are_equal_by_content_in_every_field(name):
    graph = graph_of()
    changed = {"observer": "proxy", "turns": 9, "ids": tuple("wxyz")}.get(name)
    if changed is None:
        changed = getattr(graph, name).copy()
        changed[-1] = 0 if changed[-1] else 1
    assert graph == graph_of()
    assert graph != dataclasses.replace(graph, **{name: changed})
    assert graph != "graph"


def test_a_graph_of_the_tables_own_blocks_is_taken_as_it_is():
    aligned = align(graph_of(), IDS)
    assert aligned.importance == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert aligned.is_observed.tolist() == [True, True, False, True]
    assert aligned.is_stale.tolist() == [True, False, False, False]
    assert edges_of(aligned) == [(0, 1, 0.9), (0, 3, 0.7), (2, 3, 0.5)]


def test_blocks_the_graph_has_not_seen_yet_are_new():
    aligned = align(graph_of(), (*IDS, "e"))
    assert aligned.importance[4] == 0
    assert not aligned.is_observed[4]
    assert not aligned.is_stale[4]
    assert len(edges_of(aligned)) == 3


def test_edges_and_marks_of_blocks_the_table_lacks_are_left_out():
    aligned = align(graph_of(), ("a", "b"))
    assert aligned.importance == pytest.approx([0.1, 0.2])
    assert edges_of(aligned) == [(0, 1, 0.9)]
    assert not aligned.is_stale.any(), "its superseder is not there"


def test_another_order_of_blocks_sorts_the_edges_again():
    """A proxy that measured only served blocks sees them in another order than the table."""
    graph = graph_of(ids="cadb", edges=((1, 2, 0.7), (0, 2, 0.5), (1, 3, 0.9)))
    aligned = align(graph, IDS)
    assert aligned.importance == pytest.approx([0.2, 0.4, 0.1, 0.3])
    assert edges_of(aligned) == [(0, 1, 0.9), (0, 3, 0.7), (2, 3, 0.5)]
    assert aligned.is_stale.tolist() == [False, False, True, False], "c, by d"


def test_an_edge_against_the_tables_order_is_left_out():
    assert edges_of(align(graph_of(), tuple("dcba"))) == []


@given(st.lists(observations(), max_size=3), st.permutations(range(12)), st.integers(0, 12))
def test_alignment_is_a_lookup_by_id(seen, order, count):
    graph = update_all(ContextGraph.empty("reuse"), seen, Settings())
    ids = tuple(block_id(number) for number in order[:count])
    aligned = align(graph, ids)
    at = {block: i for i, block in enumerate(ids)}
    known = dict(zip(graph.ids, graph.importance.tolist(), strict=True))
    assert aligned.importance.tolist() == [known.get(block, 0.0) for block in ids]
    edges = [
        (at[graph.ids[a]], at[graph.ids[b]], m)
        for a, b, m in zip(graph.source, graph.target, graph.mass.tolist(), strict=True)
        if {graph.ids[a], graph.ids[b]} <= at.keys() and at[graph.ids[a]] < at[graph.ids[b]]
    ]
    edges.sort(key=lambda edge: (edge[1], -edge[2], edge[0]))
    columns = (aligned.source.tolist(), aligned.target.tolist(), aligned.mass.tolist())
    assert list(zip(*columns, strict=True)) == edges


@given(st.lists(st.sampled_from("abcdef"), unique=True), st.permutations("abcdef"))
def test_locate_finds_each_id_or_says_minus_one(ids, within):
    expected = [within.index(each) if each in within[:4] else -1 for each in ids]
    assert locate(tuple(ids), tuple(within[:4])).tolist() == expected


@pytest.mark.parametrize("size", [0, 1, 3, 6])
def test_locate_takes_prefixes_in_both_directions(size):
    assert locate(tuple("abc"), tuple("abcdef")[:size]).tolist() == [
        i if i < size else -1 for i in range(3)
    ]
