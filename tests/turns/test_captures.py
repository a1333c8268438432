"""Every request that real clients sent is recognised as expected: session, turn, boundary, epoch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from recap.recognise import Recognised, recognise

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus

SUMMARISED = {("claude-code-native-compaction", f"00{n}.json") for n in (4, 5, 6)}
"""The page of expectations counts the client's own summary as a user message; it is machine text."""

HEADLESS = {("opencode-plugin", f"00{n}.json") for n in (4, 8, 9)}
"""Requests whose user message the test's plugin cut: they pass through, and have no root."""


class Row(NamedTuple):
    """A request as recognised, and what is expected of it."""

    run: str
    file: str
    found: Recognised
    wanted: dict[str, Any]


@pytest.fixture(scope="module")
def rows(corpus: Path) -> list[Row]:
    folder = corpus.parent / "cases" / "gateway" / "captures"
    if not folder.is_dir():
        pytest.skip(f"captured requests not found at {folder}")
    found = []
    for run, expected in json.loads((folder / "expected.json").read_bytes()).items():
        before: dict[tuple[str, str], Recognised] = {}
        for wanted in expected["requests"]:
            request = json.loads((folder / run / wanted["file"]).read_bytes())
            session = recognise(request["body"], request["headers"]).session
            key = (session.id, session.agent)
            now = recognise(request["body"], request["headers"], previous=before.get(key))
            if not now.passes:
                before[key] = now
            found.append(Row(run, wanted["file"], now, wanted))
    return found


def test_all_requests_are_there(rows: list[Row]) -> None:
    assert len(rows) == 134
    assert len({row.run for row in rows}) == 20


def test_sessions_and_agents_are_found(rows: list[Row]) -> None:
    for row in rows:
        found, wanted = row.found.session, row.wanted
        assert (found.id or None, found.agent or None) == (wanted["session"], wanted["agent"])


def test_boundaries_steps_and_side_calls_are_found(rows: list[Row]) -> None:
    for row in rows:
        found = (row.found.is_boundary, row.found.step, row.found.is_side_call)
        wanted = (row.wanted["boundary"], row.wanted["step"], row.wanted["side_call"])
        assert found == wanted, row[:2]


def test_user_messages_are_counted_but_for_the_clients_summary(rows: list[Row]) -> None:
    for row in rows:
        extra = (row.run, row.file) in SUMMARISED
        assert row.found.user_messages == row.wanted["user_messages"] - extra, row[:2]


@pytest.mark.parametrize("field", ["root", "turn_key"])
def test_equal_labels_are_equal_keys(rows: list[Row], field: str) -> None:
    """One key for each label of a run, one label for each key."""
    by_run: dict[str, set[tuple[str, str]]] = {}
    for row in rows:
        found = row.found.session.root if field == "root" else row.found.turn_key
        if (row.run, row.file) in HEADLESS:
            assert found == ""
        else:
            by_run.setdefault(row.run, set()).add((row.wanted[field], found))
    for run, pairs in by_run.items():
        labels, keys = {label for label, _ in pairs}, {key for _, key in pairs}
        assert len(pairs) == len(labels) == len(keys), run


def test_actions_are_as_expected(rows: list[Row]) -> None:
    """A selection is looked up by session and turn first, so a retry reuses it."""
    selected = set()
    for row in rows:
        action = {"pass": "pass_through"}.get(row.found.action, row.found.action)
        key = (row.run, row.found.session, row.found.selection_key)
        if action == "select" and key in selected:
            action = "reuse"
        elif action == "select":
            selected.add(key)
        assert action == row.wanted["action"], row[:2]


def test_a_native_compaction_opens_an_epoch(rows: list[Row]) -> None:
    found = {row[:2] for row in rows if row.found.is_new_epoch}
    assert found == {row[:2] for row in rows if row.wanted.get("new_epoch")}
    assert len(found) == 3


def test_compaction_prompts_and_cold_resumes_are_noticed(rows: list[Row]) -> None:
    passed = {row[:2] for row in rows if row.found.passes == "native_compaction"}
    assert passed == {("claude-code-native-compaction", "003.json")}
    resumed = {row.run for row in rows if row.found.is_cold_resume}
    assert ("codex", "003.json") in {row[:2] for row in rows if row.found.is_cold_resume}
    assert resumed <= {"codex", "codex-large-usage", "forwarded-codex"}


def test_the_clients_own_turns_and_ours_never_disagree(rows: list[Row]) -> None:
    claimed = [row for row in rows if row.found.claimed_turn]
    assert {row.run for row in claimed} >= {"codex", "forwarded-codex", "opencode-plugin"}
    assert [row[:2] for row in rows if row.found.turn_disagrees] == []
