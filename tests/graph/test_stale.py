from __future__ import annotations

import numpy as np

from recap.config import Settings
from recap.graph.observation import TurnObservation
from recap.graph.repeats import Repeats
from recap.graph.stale import mark_stale
from recap.graph.state import ContextGraph
from recap.graph.update import update


def marked(uses: list[list[float]], pairs: list[tuple[int, int]]) -> list[int]:
    """Return who superseded each block after turns with the given uses; pairs (earlier, later)."""
    graph = ContextGraph.empty("reuse")
    ids = tuple("abcd")
    earlier, later = np.array(pairs, np.int32).T
    for turn, use in enumerate(uses):
        seen = TurnObservation.of(turn, ids[: len(use)], use)
        graph = mark_stale(update(graph, seen, Settings()), [seen], Repeats(ids, earlier, later))
    return graph.superseded_by.tolist()


def test_a_block_used_less_than_its_repeat_is_stale():
    assert marked([[1, 2]], [(0, 1)]) == [1, -1]


def test_a_block_used_more_than_its_repeat_is_not():
    assert marked([[2, 1]], [(0, 1)]) == [-1, -1]


def test_of_two_copies_used_alike_the_later_one_is_current():
    assert marked([[2, 2]], [(0, 1)]) == [1, -1]


def test_a_repeat_nobody_used_supersedes_nothing():
    assert marked([[0, 0]], [(0, 1)]) == [-1, -1]


def test_the_mark_stays_while_use_does_not_speak_against_it():
    assert marked([[1, 2], [0, 0]], [(0, 1)]) == [1, -1]


def test_a_stale_block_used_more_than_its_superseder_is_back():
    assert marked([[1, 2], [2, 1]], [(0, 1)]) == [-1, -1]


def test_a_stale_block_can_lose_one_superseder_to_another():
    assert marked([[1, 2], [2, 1, 3]], [(0, 1), (0, 2)]) == [2, -1, -1]


def test_the_newest_of_several_superseders_counts():
    assert marked([[1, 3, 2, 0]], [(0, 1), (0, 2), (0, 3)]) == [2, -1, -1, -1]


def test_what_was_not_observed_neither_gains_nor_loses_a_mark():
    ids = tuple("abc")
    repeats = Repeats(ids, np.array([0, 1], np.int32), np.array([1, 2], np.int32))
    first = TurnObservation.of(0, "ab", [1, 2])
    graph = mark_stale(update(ContextGraph.empty("proxy"), first, Settings()), [first], repeats)
    second = TurnObservation.of(1, "ac", [5, 9])
    graph = mark_stale(update(graph, second, Settings()), [second], repeats)
    assert graph.ids == ids
    assert graph.superseded_by.tolist() == [1, -1, -1]


def test_ids_may_come_in_another_order_than_the_tables():
    repeats = Repeats(tuple("abc"), np.array([0], np.int32), np.array([1], np.int32))
    first = TurnObservation.of(0, "c", [1])
    graph = update(ContextGraph.empty("proxy"), first, Settings())
    second = TurnObservation.of(1, "abc", [1, 2, 3])
    graph = mark_stale(update(graph, second, Settings()), [second], repeats)
    assert graph.ids == tuple("cab")
    assert graph.superseded_by.tolist() == [-1, 2, -1]
