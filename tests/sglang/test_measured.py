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
    seen = together(3, [step({"a": 1, "b": 2}, 10), step({"a": 4, "c": 6}, 30)], IDS, {})
    assert seen.turn == 3
    assert seen.ids == ("a", "b", "c")
    assert seen.use.tolist() == pytest.approx([(10 + 120) / 40, 2, 6])


def test_a_pair_has_the_greatest_mass_of_any_step() -> None:
    seen = together(0, [step({"a": 1, "b": 1}, ba=0.2), step({"a": 1, "b": 1}, ba=0.7)], IDS, {})
    assert (seen.later.tolist(), seen.earlier.tolist()) == ([1], [0])
    assert seen.mass.tolist() == [0.7]


def test_an_answer_is_the_block_that_it_became() -> None:
    answered = step({"a": 1, TAIL: 3}, line=2)
    assert together(0, [answered], IDS, {2: "b"}).ids == ("a", "b")
    assert together(0, [answered], IDS, {3: "b"}).ids == ("a",)


def test_blocks_that_are_not_the_sessions_are_left_out() -> None:
    seen = together(0, [step({"a": 1, "z": 5, "b": 1}, bz=0.9, ba=0.3)], IDS, {})
    assert seen.ids == ("a", "b")
    assert seen.mass.tolist() == [0.3]


def test_blocks_come_in_the_order_of_the_session() -> None:
    seen = together(0, [step({"c": 3}), step({"a": 1}), step({"b": 2})], IDS, {})
    assert seen.ids == ("a", "b", "c")
    assert seen.use.tolist() == [1, 2, 3]


def test_rows_of_no_step_are_no_division_by_zero() -> None:
    assert together(0, [step({"a": 0}, rows=0)], IDS, {}).use.tolist() == [0]


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
