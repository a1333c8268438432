"""Captured requests, recognised and decided: what is selected, reused and passed is as expected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from recap.config import Settings
from recap.policy import Moment, Step, decide
from recap.recognise import Recognised, recognise

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus

PAUSE = 400.0
"""Seconds before each new turn: the cache is expired by then."""


class Gateway:
    """Does what it is told for one client, whose sessions all have graphs."""

    def __init__(self, pause: float) -> None:
        self.pause = pause
        self.now = 0.0
        self.rows: set[tuple[Any, str]] = set()
        self.whole: set[tuple[Any, str]] = set()
        self.sessions: dict[tuple[str, str], Recognised] = {}
        self.last: dict[Any, float] = {}

    def take(self, body: dict[str, Any], headers: dict[str, str]) -> Step:
        first = recognise(body, headers)
        key = (first.session.id, first.session.agent)
        request = recognise(body, headers, previous=self.sessions.get(key))
        session, turn = request.session, (request.session, request.selection_key)
        self.now += self.pause if request.opens_turn and turn not in self.rows | self.whole else 1
        step = decide(
            Moment(
                opens_turn=request.opens_turn, has_user=bool(request.turn_key), has_graph=True,
                is_side_call=request.is_side_call,
                is_compaction_prompt=request.passes == "native_compaction",
                has_selection=turn in self.rows, is_whole_turn=turn in self.whole,
                has_previous=any(row[0] == session for row in self.rows),
                is_root_changed=request.is_new_epoch, is_cold_resume=request.is_cold_resume,
                now=self.now, last_response=self.last.get(session),
            ),
            Settings(),
        )  # fmt: skip
        if not request.passes:
            self.sessions[key] = request
            (self.whole if step.action == "pass" else self.rows).add(turn)
            self.last[session] = self.now
        return step


def steps(corpus: Path, pause: float) -> list[tuple[str, dict[str, Any], Step]]:
    folder = corpus.parent / "cases" / "gateway" / "captures"
    if not folder.is_dir():
        pytest.skip(f"captured requests not found at {folder}")
    found = []
    for run, expected in json.loads((folder / "expected.json").read_bytes()).items():
        gateway = Gateway(pause)
        for wanted in expected["requests"]:
            request = json.loads((folder / run / wanted["file"]).read_bytes())
            found.append((run, wanted, gateway.take(request["body"], request["headers"])))
    return found


def test_with_an_expired_cache_every_turn_is_selected_once(corpus: Path) -> None:
    """What the page of expectations calls select is a row for the turn, whatever the state."""
    found = steps(corpus, PAUSE)
    assert len(found) == 134
    for run, wanted, step in found:
        action = {"pass": "pass_through"}.get(step.action, step.action)
        assert action == wanted["action"], (run, wanted["file"])
        assert step.starts_epoch == wanted.get("new_epoch", False)


def test_with_a_warm_cache_later_turns_extend_the_first_selection(corpus: Path) -> None:
    found = steps(corpus, 5.0)
    for run, wanted, step in found:
        allowed = {
            "select": {"select", "extend"},
            "reuse": {"reuse"},
            "pass_through": {"pass"},
        }
        assert step.action in allowed[wanted["action"]], (run, wanted["file"])
    reasons = {step.reason for _, _, step in found if step.action == "select"}
    assert reasons == {"unknown", "new_epoch", "cold_resume"}
    assert sum(step.action == "extend" for _, _, step in found) > 10
