from __future__ import annotations

from math import log1p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.index_codec import decode_index, encode_index
from recap.blocks.table import build_table
from recap.capture.reuse import RECOUNT_GROWTH, build_graph, observe_turns, turn_count
from recap.config import Settings
from recap.graph.codec import decode, encode
from recap.graph.observation import TurnObservation
from recap.graph.rename import renamed
from recap.graph.repeats import find_repeats
from recap.graph.stale import mark_stale
from recap.graph.state import ContextGraph
from recap.graph.update import update
from recap.transcript.formats import open_log
from tests.capture.reference import graph_after, observations
from tests.graph.factories import Row, row, rows, table_of
from tests.graph.factories import observations as observations_of_any_blocks


def seen(session: list[Row], turn: int) -> TurnObservation:
    return next(observe_turns(table_of(session), range(turn, turn + 1)))


def use_of(session: list[Row], turn: int) -> list[float]:
    return [round(use, 6) for use in seen(session, turn).use.tolist()]


def mass_of(session: list[Row], turn: int) -> dict[tuple[int, int], float]:
    """Return M[b, a] of the turn by (b, a)."""
    found = seen(session, turn)
    columns = (found.later.tolist(), found.earlier.tolist(), found.mass.tolist())
    return {(b, a): mass for b, a, mass in zip(*columns, strict=True)}


def assert_same(one: TurnObservation, other: TurnObservation) -> None:
    assert (one.turn, one.ids) == (other.turn, other.ids)
    for name in ("use", "later", "earlier", "mass"):
        assert getattr(one, name).dtype == getattr(other, name).dtype
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


def reference(session: list[Row], turn: int) -> tuple[list[float], dict[tuple[int, int], float]]:
    """Return use and mass of one turn, identifier by identifier."""
    counted = 0
    for each in range(turn + 1):
        end = sum(block.turn <= each for block in session)
        counted = end if end >= RECOUNT_GROWTH * counted else counted
    end = sum(block.turn <= turn for block in session)
    held = [block.held | block.wrote for block in session[:end]]

    def weigh(names) -> float:
        frequencies = (max(1, sum(name in other for other in held[:counted])) for name in names)
        return sum(log1p(counted / frequency) for frequency in frequencies)

    current = [b for b in range(end) if session[b].turn == turn]
    use = []
    for v in range(end):
        written = frozenset().union(*(session[b].wrote for b in current if b > v))
        use.append(weigh(held[v] & written) / weigh(held[v]) if held[v] else 0.0)
    mass = {}
    for b in current:
        for a in range(b):
            between = frozenset().union(*held[a + 1 : b])
            if shared := (held[b] & held[a]) - between:
                mass[b, a] = weigh(shared) / weigh(held[b])
    return use, mass


@given(rows())
def test_an_observation_is_the_documented_shares(session):
    table = table_of(session)
    for turn in range(turn_count(table)):
        use, mass = reference(session, turn)
        assert seen(session, turn).use.tolist() == pytest.approx(use)
        assert mass_of(session, turn) == pytest.approx(mass)


@given(rows())
def test_observations_pass_the_checks_of_foreign_producers(session):
    for found in observe_turns(table_of(session)):
        columns = (found.later, found.earlier, found.mass)
        again = TurnObservation.of(found.turn, found.ids, found.use, *columns)
        assert [again.use.dtype, again.later.dtype] == [found.use.dtype, found.later.dtype]
        assert found.use.max(initial=0) <= 1


@given(rows(), st.integers(0, 14))
def test_what_follows_a_turn_does_not_change_its_observation(session, cut):
    whole = table_of(session)
    begun = table_of(session[:cut])
    for turn in range(turn_count(begun) - 1):  # the last one may have been cut
        one, other = (next(observe_turns(t, range(turn, turn + 1))) for t in (begun, whole))
        assert (one.turn, one.ids) == (other.turn, other.ids)
        for name in ("use", "later", "earlier", "mass"):
            assert np.array_equal(getattr(one, name), getattr(other, name))


@given(rows(most=24), st.integers(0, 12), st.integers(1, 3))
def test_any_turns_are_observed_as_in_a_pass_over_all_bit_for_bit(session, first, step):
    table = table_of(session)
    expected = list(observations(table))
    turns = range(min(first, turn_count(table)), turn_count(table), step)
    found = list(observe_turns(table, turns))
    assert [each.turn for each in found] == list(turns)
    for one in found:
        assert_same(one, expected[one.turn])


@given(rows(most=24, fewest=4), st.integers(0, 12), st.sampled_from([0.5, 0.3, 1.0]))
def test_turns_fold_as_one_update_after_the_other(session, turns, smoothing):
    table, settings = table_of(session), Settings().replace(smoothing=smoothing)
    repeats = find_repeats(table, settings.stale_overlap)
    graph = build_graph(table, settings, turns=turns)
    whole = graph_after(table, ContextGraph.empty("reuse"), repeats, settings)
    assert build_graph(table, settings, graph=graph) == whole


@given(rows(most=20, fewest=4), observations_of_any_blocks())
def test_a_graph_of_other_blocks_in_another_order_goes_on_as_well(session, seen):
    """Observations of two processes, or of rewritten histories, leave such graphs."""
    table, settings = table_of(session), Settings()
    repeats = find_repeats(table, settings.stale_overlap)
    graph = update(ContextGraph.empty("reuse"), seen, settings)
    ids = (*graph.ids[::-1], "gone")
    graph = renamed(graph, dict(zip(graph.ids, ids, strict=False)), graph.turns)
    assert build_graph(table, settings, graph=graph) == graph_after(table, graph, repeats, settings)


@given(rows(most=24, fewest=4), st.integers(0, 24))
def test_repeats_of_a_shorter_table_help_and_change_nothing(session, cut):
    table, settings = table_of(session), Settings()
    known = find_repeats(table_of(session[:cut]), settings.stale_overlap)
    assert build_graph(table, settings, repeats=known) == build_graph(table, settings)


@given(rows(), st.integers(0, 14))
def test_a_graph_may_be_built_in_two_goes(session, cut):
    table, settings = table_of(session), Settings()
    turns = min(cut, turn_count(table))
    first = build_graph(table, settings, turns=turns)
    assert build_graph(table, settings, graph=first) == build_graph(table, settings)


@given(rows(), st.integers(0, 14))
def test_turns_after_the_completed_ones_do_not_count(session, cut):
    turns = min(cut, turn_count(table_of(session)))
    begun = table_of([block for block in session if block.turn < turns])
    assert build_graph(table_of(session), Settings(), turns=turns) == build_graph(begun, Settings())


def test_a_block_whose_identifiers_the_agent_wrote_later_was_used():
    session = [row(0, "parser lexer"), row(0, "readme"), row(1, wrote="parser lexer")]
    assert use_of(session, 1)[:2] == [1, 0]


def test_what_a_tool_printed_or_a_person_said_is_no_use():
    session = [row(0, "parser"), row(1, "parser", is_user=True), row(1, "parser")]
    assert use_of(session, 1) == [0, 0, 0]


def test_a_block_does_not_use_itself_nor_what_came_after_it():
    session = [row(0, "parser", "parser"), row(0, "parser", "lexer"), row(0, wrote="parser")]
    assert use_of(session, 0) == [1, 0.333333, 0], "log(1 + 3/3) of it and log(1 + 3/1)"


def test_rare_identifiers_weigh_more_than_common_ones():
    session = [row(0, "src parser"), row(0, "src lexer"), row(0, "src"), row(1, wrote="parser src")]
    parser, lexer, _, _ = use_of(session, 1)
    assert parser == 1
    assert 0 < lexer < 0.5


def test_a_block_leans_on_the_latest_holder_of_each_identifier():
    session = [row(0, "parser lexer"), row(0, "parser"), row(1, "parser lexer")]
    assert mass_of(session, 1).keys() == {(2, 0), (2, 1)}


def test_identifiers_never_seen_before_lean_on_nothing():
    assert mass_of([row(0, "parser"), row(1, "parser new")], 1)[1, 0] < 1
    assert mass_of([row(0, "parser"), row(1, "new")], 1) == {}


def test_a_block_without_identifiers_is_observed_as_unused():
    found = seen([row(0), row(0, wrote="parser")], 0)
    assert len(found.ids) == 2
    assert found.use.tolist() == [0, 0]


@pytest.mark.parametrize("session", [[], [row(0, is_user=True)], [row(2, "a", "a")]])
def test_sessions_with_hardly_anything_give_a_graph(session):
    table = table_of(session)
    graph = build_graph(table, Settings())
    assert graph.turns == turn_count(table)
    assert graph.ids == table.ids
    assert not graph.importance.any()


def test_a_graph_that_knows_all_turns_stays_as_it_is():
    table = table_of([row(0, "a"), row(0, wrote="a"), row(1, wrote="a")])
    graph = build_graph(table, Settings())
    assert build_graph(table, Settings(), graph=graph) is graph
    assert build_graph(table, Settings(), turns=9) == graph, "there are two turns"


def test_a_file_read_again_supersedes_the_first_reading():
    """B133: the same file stood several times in the context; the newest reading is the valid one."""
    names = "a b c d e f g h"
    session = [
        row(0, "fix it", is_user=True),
        row(0, names),
        row(0, names),
        row(0, wrote="a b"),
        row(1, "next", is_user=True),
    ]
    assert build_graph(table_of(session), Settings()).superseded_by.tolist() == [-1, 2, -1, -1, -1]


def test_a_long_session_folds_turn_by_turn_to_the_same_graph():
    """Turns are folded in batches; seventy turns take three."""
    names = [f"n{i}" for i in range(20)]
    session = [
        row(turn, " ".join(names[turn % 7 : turn % 7 + 9 + kind]), names[turn * kind % 20])
        for turn in range(70)
        for kind in range(3)
    ]
    table, settings = table_of(session), Settings()
    repeats = find_repeats(table, settings.stale_overlap)
    graph = ContextGraph.empty("reuse")
    for found in observe_turns(table):
        graph = mark_stale(update(graph, found, settings), [found], repeats)
    assert (graph.superseded_by >= 0).any()
    assert build_graph(table, settings) == graph


@pytest.mark.corpus
@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_graphs_of_real_sessions_are_small_and_lose_no_edge(corpus, step):
    settings = Settings()
    paths = sorted((corpus / "swe-together").glob("*.json"))[::step]
    assert paths
    for path in paths:
        table = build_table(open_log(path).messages)
        graph = build_graph(table, settings)
        data = encode(graph)
        assert decode(data) == graph
        assert len(data) <= 19_000 * max(1, len(table) / 130), "19 KB for up to 130 blocks"
        assert graph.ids == table.ids
        edges = {
            (earlier, later)
            for found in observe_turns(table)
            for later, earlier, mass in zip(found.later, found.earlier, found.mass, strict=True)
            if mass > settings.edge_threshold
        }
        assert edges == set(zip(graph.source, graph.target, strict=True))
        assert 1 <= len(edges) / len(table) <= 5


@pytest.mark.corpus
@pytest.mark.parametrize(
    "name", ["claude-code/entire-48b4-9turns.jsonl", "codex/agentv-13turns-compacted.jsonl"]
)
def test_a_session_seen_turn_by_turn_by_other_processes_has_the_graph_of_one_run(corpus, name):
    """Between two turns there are only bytes: the graph, and the index cache."""
    settings = Settings()
    messages = open_log(corpus / "sessions" / name).messages
    whole = build_table(messages)
    starts = np.searchsorted(whole.turn, np.arange(1, turn_count(whole))).tolist()
    kept, cache = encode(ContextGraph.empty("reuse")), encode_index(build_table(()))
    for turns, start in enumerate(starts, 1):
        seen = messages[: whole.blocks[start].refs[0].message + 1]
        table = build_table(seen, cached=decode_index(cache))
        graph = build_graph(table, settings, turns=turns, graph=decode(kept))
        assert graph == build_graph(whole, settings, turns=turns)
        kept, cache = encode(graph), encode_index(table)


@pytest.mark.corpus
def test_a_session_seen_turn_by_turn_by_one_process_has_the_graph_of_one_run(corpus):
    settings = Settings()
    path = sorted((corpus / "swe-together").glob("cli-task-*.json"))[0]
    messages = open_log(path).messages
    whole = build_table(messages)
    table, graph, repeats = build_table(()), ContextGraph.empty("reuse"), None
    for turns in range(1, turn_count(whole)):
        start = int(np.searchsorted(whole.turn, turns))
        table = table.extend(messages[: whole.blocks[start].refs[0].message + 1])
        repeats = find_repeats(table, settings.stale_overlap, repeats)
        graph = build_graph(table, settings, turns=turns, graph=graph, repeats=repeats)
        assert graph == build_graph(whole, settings, turns=turns)
