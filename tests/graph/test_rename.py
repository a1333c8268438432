from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import Settings
from recap.graph.codec import decode, encode
from recap.graph.rename import renamed
from recap.graph.state import ContextGraph
from recap.graph.update import update_all
from tests.graph.factories import block_id, observations

graphs = st.lists(observations(), max_size=4).map(
    lambda seen: update_all(ContextGraph.empty("reuse"), seen, Settings())
)


def small() -> ContextGraph:
    return ContextGraph(
        "reuse", 2, tuple("abc"),
        np.array([0.5, 0.25, 1], np.float32), np.array([True, True, False]),
        np.array([1, -1, -1], np.int32),
        np.array([0, 1, 0], np.int32), np.array([1, 2, 2], np.int32),
        np.array([0.5, 0.75, 0.25], np.float32),
    )  # fmt: skip


def test_scores_marks_and_edges_go_with_the_block():
    graph = small()
    found = renamed(graph, {"b": "x"}, 3)
    assert found == dataclasses.replace(graph, ids=tuple("axc"), turns=3)


def test_blocks_may_change_names_with_each_other():
    assert renamed(small(), {"a": "b", "b": "a"}, 2).ids == tuple("bac")


def test_a_block_whose_id_another_takes_is_left_out():
    found = renamed(small(), {"c": "a"}, 2)
    assert found.ids == ("b", "a")
    assert found.importance.tolist() == [0.25, 1]
    assert list(zip(found.source, found.target, found.mass, strict=True)) == [(0, 1, 0.75)]


def test_what_was_taken_back_leaves_with_its_edges_and_marks():
    found = renamed(small(), {"a": "x"}, 1, gone={"b"})
    assert found.ids == ("x", "c")
    assert found.superseded_by.tolist() == [-1, -1], "the superseder is gone"
    assert list(zip(found.source, found.target, found.mass, strict=True)) == [(0, 1, 0.25)]


def test_two_blocks_cannot_get_one_id():
    with pytest.raises(ValueError, match="two blocks the same id"):
        renamed(small(), {"a": "x", "b": "x"}, 2)


def test_names_of_blocks_the_graph_does_not_know_do_nothing():
    assert renamed(small(), {"z": "a"}, 2) == small()


@given(graphs)
def test_new_names_and_back_change_nothing(graph):
    away = {old: f"{100 + at:016x}" for at, old in enumerate(graph.ids)}
    back = {new: old for old, new in away.items()}
    assert renamed(renamed(graph, away, 9), back, graph.turns) == graph


@given(graphs, st.data())
def test_every_renamed_graph_can_be_kept_as_bytes(graph, data):
    targets = data.draw(st.permutations([block_id(number) for number in range(12)]))
    some = st.sets(st.sampled_from(graph.ids)) if graph.ids else st.just(set())
    moved, gone = data.draw(some), data.draw(some)
    found = renamed(graph, dict(zip(sorted(moved), targets, strict=False)), 1, gone=gone)
    assert decode(encode(found)) == found
    assert [getattr(found, f.name).dtype for f in dataclasses.fields(found)[3:]] == [
        getattr(graph, f.name).dtype for f in dataclasses.fields(graph)[3:]
    ]
