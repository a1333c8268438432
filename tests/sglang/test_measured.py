"""Steps of a turn become one observation, and a session of steps one graph."""

from __future__ import annotations

import numpy as np
import pytest

from recap.blocks.segment import segment
from recap.blocks.table import build_table
from recap.config import Settings
from recap.errors import UsageError
from recap.graph.observation import TurnObservation
from recap.session import Session
from recap.sglang.measured import (
    MOST_STEPS,
    MOST_TURNS,
    NOT_MEASURED,
    TAIL,
    MeasuredTurns,
    Step,
    together,
    turn_seed,
)
from recap.transcript.lists import read_messages
from recap.turns import SessionKey

IDS = ("a", "b", "c", "d")


def step(use: dict[str, float], rows: int = 8, line: int = 0, **edges: float) -> Step:
    """A step; an edge ``ba=0.5`` is the mass that b gave to a."""
    ids = list(use)
    pairs = [(ids.index(name[0]), ids.index(name[1])) for name in edges]
    observation = TurnObservation.of(
        0,
        ids,
        list(use.values()),
        [later for later, _ in pairs],
        [earlier for _, earlier in pairs],
        list(edges.values()),
    )
    return Step(observation, rows, line)


def test_use_is_the_mean_over_the_rows_of_the_steps_that_saw_a_block() -> None:
    whole = together(3, [step({"a": 1, "b": 2}, 10), step({"a": 4, "c": 6}, 30)], IDS, {})
    seen = whole.observation
    assert list(whole.rows) == [40, 10, 30]
    assert seen.turn == 3
    assert seen.ids == ("a", "b", "c")
    assert seen.use.tolist() == pytest.approx([(10 + 120) / 40, 2, 6])


def test_a_pair_has_the_greatest_mass_of_any_step() -> None:
    steps = [step({"a": 1, "b": 1}, ba=0.2), step({"a": 1, "b": 1}, ba=0.7)]
    seen = together(0, steps, IDS, {}).observation
    assert (seen.later.tolist(), seen.earlier.tolist()) == ([1], [0])
    assert seen.mass.tolist() == [0.7]


def test_an_answer_is_the_block_that_it_became() -> None:
    answered = step({"a": 1, TAIL: 3}, line=2)
    assert together(0, [answered], IDS, {2: "b"}).observation.ids == ("a", "b")
    assert together(0, [answered], IDS, {3: "b"}).observation.ids == ("a",)


def test_blocks_that_are_not_the_sessions_are_left_out() -> None:
    seen = together(0, [step({"a": 1, "z": 5, "b": 1}, bz=0.9, ba=0.3)], IDS, {}).observation
    assert seen.ids == ("a", "b")
    assert seen.mass.tolist() == [0.3]


def test_blocks_come_in_the_order_of_the_session() -> None:
    seen = together(0, [step({"c": 3}), step({"a": 1}), step({"b": 2})], IDS, {}).observation
    assert seen.ids == ("a", "b", "c")
    assert seen.use.tolist() == [1, 2, 3]


def test_rows_of_no_step_are_no_division_by_zero() -> None:
    assert together(0, [step({"a": 0}, rows=0)], IDS, {}).observation.use.tolist() == [0]


def test_steps_that_were_put_together_count_on_as_what_they_were() -> None:
    steps = [
        step({"a": 1, "b": 2}, 10, ba=0.4),
        step({"a": 4, "c": 6}, 30, ca=0.1),
        step({"b": 5, "c": 1}, 7, cb=0.3),
    ]
    at_once = together(0, steps, IDS, {})
    one_by_one = together(0, [together(0, steps[:2], IDS, {}), steps[2]], IDS, {})
    assert one_by_one.observation.ids == at_once.observation.ids
    assert one_by_one.observation.use.tolist() == pytest.approx(at_once.observation.use.tolist())
    assert one_by_one.observation.mass.tolist() == at_once.observation.mass.tolist()
    assert list(one_by_one.rows) == list(at_once.rows)


def test_a_turn_nobody_measured_says_so() -> None:
    messages = read_messages([{"role": "user", "content": "x"}], "openai").messages
    table = build_table(messages, segment(messages))
    (observed,) = MeasuredTurns("m").observe(table, range(1), [5], [None])
    assert observed == (0, None, NOT_MEASURED)


def test_what_is_remembered_is_bounded() -> None:
    turns = MeasuredTurns("m")
    for seed in range(MOST_TURNS + 5):
        turns.add(seed, step({"a": 1}))
    for _ in range(MOST_STEPS + 5):
        turns.add(MOST_TURNS, step({"a": 1}))
    assert len(turns) == MOST_TURNS
    assert len(turns._turns[MOST_TURNS]) == MOST_STEPS
    assert 0 not in turns._turns


def test_steps_of_a_closed_turn_are_kept_as_one_and_their_memory_is_known() -> None:
    messages = read_messages([{"role": "user", "content": "x"}], "openai").messages
    table = build_table(messages, segment(messages))
    (block,) = table.ids
    turns = MeasuredTurns("m")
    for _ in range(20):
        turns.add(5, step({"z": 1, block: 2}, 4))
    several = turns.size
    before = next(iter(turns.observe(table, range(1), [5], [None]))).observation
    assert turns.size == sum(each.size for each in turns._turns[5])
    assert 0 < turns.size < several / 20
    again = next(iter(turns.observe(table, range(1), [5], [None]))).observation
    assert before is not None
    assert again is not None
    assert (again.ids, again.use.tolist()) == (before.ids, before.use.tolist())
    for seed in range(MOST_TURNS + 5):
        turns.add(seed, step({"a": 1}))
    assert turns.size == sum(each.size for steps in turns._turns.values() for each in steps)


def test_a_session_asks_for_its_turns_by_the_seeds_that_rows_are_drawn_by() -> None:
    turns = MeasuredTurns("m")
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "two"},
    ]
    session = Session(
        "s", agent="g", tenant="t", settings=Settings(observer="engine"), observer=turns
    )
    known = session.known(messages)
    first = known.moment.closed[0]
    key = SessionKey("t", "s", "g", first.turn_key)
    block = known.whole.blocks[0].id
    turns.add(turn_seed(key, first.turn_key), step({block: 1.0}))
    graph = session.observe(messages, open_turn=False).graph
    assert graph.turns == 1
    assert np.array_equal(graph.importance, [0.5])


def test_outside_a_server_the_observer_is_refused() -> None:
    with pytest.raises(UsageError, match="inside an SGLang server"):
        Session("s", settings=Settings(observer="engine"))
