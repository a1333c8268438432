from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import Settings
from recap.graph.repeats import CELLS, FEWEST_IDENTIFIERS, MOST_REPEATS, Repeats, find_repeats
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


def assert_equal(one: Repeats, other: Repeats) -> None:
    assert one.ids == other.ids
    assert one.earlier.tolist() == other.earlier.tolist()
    assert one.later.tolist() == other.later.tolist()
    assert one.later.dtype == other.later.dtype


@given(rows(fewest=6, most=24), st.integers(0, 24))
def test_repeats_go_on_from_those_of_a_shorter_table(session, cut):
    known = find_repeats(table_of(session[:cut]), OVERLAP)
    assert_equal(
        find_repeats(table_of(session), OVERLAP, known), find_repeats(table_of(session), OVERLAP)
    )


@given(rows(fewest=6), rows(fewest=6), st.integers(0, 14))
def test_repeats_of_a_table_that_differs_from_some_block_on_do_no_harm(one, other, shared):
    table = table_of([*one[:shared], *other])
    known = find_repeats(table_of(one), OVERLAP)
    assert_equal(find_repeats(table, OVERLAP, known), find_repeats(table, OVERLAP))


@given(rows(fewest=6), st.sampled_from([0.3, 0.9]))
def test_repeats_by_another_overlap_are_not_taken(session, overlap):
    table = table_of(session)
    known = find_repeats(table, overlap)
    assert_equal(find_repeats(table, OVERLAP, known), find_repeats(table, OVERLAP))


def test_repeats_from_elsewhere_are_not_taken():
    table = table_of([row(0, EIGHT)] * 3)
    known = find_repeats(table, OVERLAP)._replace(basis=None)
    assert_equal(find_repeats(table, OVERLAP, known), find_repeats(table, OVERLAP))


def test_long_sessions_have_all_their_repeats():
    """Blocks are looked at in chunks, and those of a chunk in batches."""
    names = [f"n{i}" for i in range(400)]
    session = [
        row(at, " ".join(names[at % 97 * 3 : at % 97 * 3 + 8 + at % 11])) for at in range(700)
    ]
    assert len(session) ** 2 > CELLS
    assert pairs_of(session) == reference_pairs(session, OVERLAP)
