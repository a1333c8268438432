from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import Settings
from recap.graph.observation import TurnObservation
from recap.graph.stale import (
    FEWEST_IDENTIFIERS,
    MOST_REPEATS,
    Repeats,
    find_repeats,
    mark_stale,
)
from recap.graph.state import ContextGraph
from recap.graph.update import update
from tests.graph.factories import Row, row, rows, table_of

EIGHT = " ".join("abcdefgh")
OVERLAP = Settings().stale_overlap


def pairs_of(sessions, overlap=OVERLAP) -> list[tuple[int, int]]:
    repeats = find_repeats(table_of(sessions), overlap)
    return list(zip(repeats.earlier.tolist(), repeats.later.tolist(), strict=True))


def reference_pairs(session: list[Row], overlap: float) -> list[tuple[int, int]]:
    pairs = []
    for a, each in enumerate(session):
        held = each.held | each.wrote
        if each.is_user or len(held) < FEWEST_IDENTIFIERS:
            continue
        found = [
            b
            for b in range(a + 1, len(session))
            if len(held & (session[b].held | session[b].wrote)) / len(held) >= overlap
        ]
        pairs += [(b, a) for b in found[:MOST_REPEATS]]
    return [(a, b) for b, a in sorted(pairs)]


@given(rows(fewest=6), st.floats(0.01, 1))
def test_repeats_are_all_pairs_with_the_overlap(session, overlap):
    assert pairs_of(session, overlap) == reference_pairs(session, overlap)


@given(rows(fewest=6), st.integers(0, 14))
def test_a_longer_session_has_the_same_repeats_and_more(session, cut):
    assert pairs_of(session[:cut]) == [(a, b) for a, b in pairs_of(session) if b < cut]


@pytest.mark.parametrize(
    ("shared", "is_repeated"), [("a b c d", False), ("a b c d e", True), (EIGHT + " x y", True)]
)
def test_the_overlap_counts_identifiers_of_the_earlier_block(shared, is_repeated):
    assert bool(pairs_of([row(0, EIGHT), row(0, shared)])) is is_repeated


def test_an_overlap_is_not_missed_by_rounding():
    names = "abcdefghijklmnopqrst"
    assert pairs_of([row(0, " ".join(names)), row(0, " ".join(names[:11]))], 0.55) == [(0, 1)]


def test_user_blocks_are_never_repeated_but_repeat_others():
    blocks = [row(0, EIGHT, is_user=True), row(0, EIGHT), row(1, EIGHT, is_user=True)]
    assert pairs_of(blocks) == [(1, 2)]


def test_a_handful_of_identifiers_is_no_ground_for_staleness():
    assert pairs_of([row(0, "a b c d e f g"), row(0, EIGHT)]) == []


def test_blocks_without_identifiers_repeat_nothing():
    assert pairs_of([row(0), row(0), row(0)]) == []


def test_a_file_read_many_times_has_few_pairs_for_each_block():
    """B133: one file was read 66 times; all pairs of a thousand reads would be half a million."""
    assert len(pairs_of([row(0, EIGHT)] * 66)) < 66 * MOST_REPEATS


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
