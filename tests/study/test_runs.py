"""Which files count, once and in one half, and that neither order nor processes change a row."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import Settings
from recap.errors import InputError
from recap.study import transitions
from recap.study.evaluate import ORACLES, Row, evaluate
from recap.study.files import session_files
from recap.study.methods import recipe_methods
from recap.study.runs import Found, Plan, Study, distinct, looked_at, run
from recap.study.transitions import is_test
from tests.study.conftest import METHODS, RETENTIONS, write_session

if TYPE_CHECKING:
    from collections.abc import Mapping

FOUND = st.builds(
    Found,
    path=st.just(Path("x")),
    name=st.sampled_from([f"{folder}{name}.json" for folder in ("", "d/", "d/e/") for name in "abc"]),
    key=st.sampled_from(["k1", "k2", "k3"]),
    requests=st.integers(0, 3),
    size=st.just(1),
)  # fmt: skip


def untimed(rows: tuple[Row, ...]) -> list[Row]:
    return [replace(row, seconds=0) for row in rows]


@given(st.lists(FOUND, max_size=9, unique_by=lambda one: one.name), st.randoms())
def test_each_session_counts_once_whatever_the_order(found: list[Found], random: object) -> None:
    counted, others = distinct(found)
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert distinct(shuffled) == (counted, others)
    assert sorted(one.key for one in counted) == sorted({one.key for one in found})
    assert sorted([*others, *(one.name for one in counted)]) == sorted(one.name for one in found)
    most = {one.name: one.requests for one in found}
    assert all(most[other] <= most[kept] for other, kept in others.items())


def test_every_request_after_the_first_with_a_long_history_is_a_transition(study: Study) -> None:
    for session in study.sessions:
        turns = {row.turn for row in session.rows}
        assert min(turns) >= 1
        rows = {(row.turn, row.method, row.retention) for row in session.rows}
        assert len(rows) == len(session.rows)
        assert len(rows) == len(turns) * len(RETENTIONS) * (len(METHODS) + len(ORACLES))


def test_halves_are_disjoint_and_together_all(study: Study, files: Mapping[str, Path]) -> None:
    plan = Plan(("recency",), ("0.2",), Settings(), "dev")
    dev, test = run(files, plan), run(files, replace(plan, half="test"))
    names = [session.name for half in (dev, test) for session in half.sessions]
    assert sorted(names) == [session.name for session in study.sessions]
    assert all(not is_test(files[session.name]) for session in dev.sessions)
    assert (dev.other_half, test.other_half) == (len(test.sessions), len(dev.sessions))


def test_a_session_in_both_halves_is_of_one(tmp_path: Path) -> None:
    """The same session under two names that fall into different halves: no leak between them."""
    names = sorted(f"s{at}" for at in range(20))
    dev = next(name for name in names if not is_test(Path(name)))
    test = next(name for name in names if is_test(Path(name)))
    files = {
        name: write_session(tmp_path / f"{name}.json", first="the same") for name in (dev, test)
    }
    plan = Plan(("recency",), ("0.2",), Settings())
    counted = run(files, plan)
    assert len(counted.sessions) == len(counted.duplicates) == 1
    other = "dev" if counted.sessions[0].half == "test" else "test"
    with pytest.raises(InputError, match=f"of the {other} half"):
        run(files, replace(plan, half=other))


def test_what_was_seen_before_changes_no_row(
    files: Mapping[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transition goes on from what the one before knew; each could stand for itself as well."""
    path = files["epsilon.json"]
    asked = (path, recipe_methods(), ["0.2"], Settings())
    rows = untimed(tuple(evaluate(*asked)))

    class Forgetful(transitions.Past):
        def prior(self, moment: object) -> object:  # type: ignore[override]
            return transitions.NOTHING

    monkeypatch.setattr(transitions, "Past", Forgetful)
    assert untimed(tuple(evaluate(*asked))) == rows


def test_nothing_is_kept_beyond_the_budget_but_what_is_protected(study: Study) -> None:
    rows = [row for session in study.sessions for row in session.rows]
    expanding = ("coverage", "paper")
    for row in rows:
        most = row.budget_chars * (1.2 if row.method in expanding else 1)
        assert row.cost_chars <= max(most, row.protected_chars)
        assert all(score is None or 0 <= score <= 1 for score in row.scores.values())
        assert row.revived <= row.kept <= row.blocks


def test_the_first_transition_of_a_session_revives_nothing(study: Study) -> None:
    for session in study.sessions:
        first = min(row.turn for row in session.rows)
        assert all(not row.revived for row in session.rows if row.turn == first)


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "requests", "compacted"),
    [("entire-fc99-compact-image", 19, 18), ("entire-94de-15turns", 15, 0)],
)
def test_requests_before_a_compaction_are_counted(
    corpus: Path, name: str, requests: int, compacted: int
) -> None:
    found = looked_at((name, corpus / "sessions" / "claude-code" / f"{name}.jsonl"))
    assert isinstance(found, Found)
    assert (found.requests, found.compacted) == (requests, compacted)


@pytest.mark.corpus
def test_each_session_of_the_corpus_counts_once(corpus: Path) -> None:
    folders = (
        "swe-together",
        "sessions/swe-together",
        "sessions/openai-chat",
        "sessions/langchain",
    )
    files = {str(p.relative_to(corpus)): p for f in folders for p in session_files(corpus / f)}
    few = {name: path for name, path in files.items() if path.stat().st_size < 300_000}
    study = run(few, Plan(("recency",), ("0.1",), Settings()))
    assert study.duplicates["sessions/swe-together/A-agent-swarm-task-ea4bd8.json"] == (
        "swe-together/agent-swarm-task-ea4bd8.json"
    )
    assert "sessions/openai-chat/tau-airline-t3-trial0.json" in study.duplicates
    assert not study.unread


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are read from /proc")
def test_an_interrupted_study_leaves_no_process(tmp_path: Path) -> None:
    """Interrupted while its processes work, the command ends at once, and so do they."""
    from tests.study.interrupting import interrupted

    for at in range(6):
        write_session(tmp_path / f"s{at}.json", turns=48)  # far more than it comes to
    status, error, left = interrupted(tmp_path, signal.SIGINT)
    assert status == 130
    assert error == "recap: interrupted\n"
    assert not left


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are read from /proc")
def test_a_study_ends_where_one_of_its_processes_is_killed(tmp_path: Path) -> None:
    from tests.study.interrupting import interrupted

    for at in range(6):
        write_session(tmp_path / f"s{at}.json", turns=48)
    status, error, left = interrupted(tmp_path, signal.SIGKILL, is_worker=True)
    assert status == 1
    assert error.startswith("recap: a process of the study ended")
    assert error.count("\n") == 1
    assert not left
