"""Transitions, and that a model observes each turn once, before the requests that follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.config import Settings
from recap.study.transitions import MIN_HISTORY_CHARS, Reader, transitions
from tests.session.measuring import Drawn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def test_a_transition_holds_the_history_and_the_turn_that_followed(
    files: Mapping[str, Path],
) -> None:
    found = list(transitions(files["epsilon.json"], Settings()))
    assert found
    for each in found:
        table = each.known.table
        assert table.active_chars >= MIN_HISTORY_CHARS
        assert f"part_{each.turn}.py" in each.known.moment.request_text
        assert set(each.acts) <= set(each.execution)
        assert {part.author for part in each.acts} == {"agent"}
        names = Reader().parts(each.execution).ids
        assert f"value_{each.turn}_0_0" in names
        assert all(block.turn < each.turn for block in table.blocks)


def test_a_model_observes_each_turn_once_and_none_ahead(files: Mapping[str, Path]) -> None:
    observer = Drawn("a model")
    settings = Settings(observer="proxy")
    graphs = [
        (each.turn, each.known.graph.turns, each.known.turns_not_observed)
        for each in transitions(files["epsilon.json"], settings, observer)
    ]
    assert graphs
    assert all((turns, left) == (turn, 0) for turn, turns, left in graphs)
    assert observer.turns == list(range(graphs[-1][0]))
