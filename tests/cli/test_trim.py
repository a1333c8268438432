from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from recap.cli import run
from tests.cmv.logs import call, done, log, user

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = [user("u1", None, "first"), *call(1, "u1"), *call(2, "r1"), *call(3, "r2"), done("r3")]
    path = tmp_path / "session.jsonl"
    path.write_bytes(log(*lines))
    return path


def trimmed(session: Path, *given: str) -> int:
    out = session.with_name("out.jsonl")
    given = ("--no-store", "--keep-last", "0", "--yes", *given)
    return run(["trim", str(session), "-o", str(out), *given])


def test_a_copy_is_written_and_said_to_be(session: Path, capsys: pytest.CaptureFixture[str]):
    before = session.read_bytes()
    assert trimmed(session) == 0
    said = capsys.readouterr().out
    assert "less to send" in said
    assert "1 user text, 1 assistant text, 3 tool requests: all of them" in said
    assert "3 results became stubs" in said
    assert session.read_bytes() == before
    assert b"[Trimmed: ~2000 chars" in session.with_name("out.jsonl").read_bytes()


def test_a_dry_run_writes_nothing(session: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["trim", str(session), "--dry-run", "--json", "--keep-last", "0", "--yes"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["schema"], report["written"], report["results_stubbed"]) == (
        "recap.trim/1", False, 3,
    )  # fmt: skip
    assert [path.name for path in session.parent.iterdir()] == ["session.jsonl"]


def test_a_target_takes_results_by_the_graph(
    session: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    assert trimmed(session, "--target", "0.3", "--json") == 0
    assert 1 <= json.loads(capsys.readouterr().out)["results_stubbed"] < 3
    graph = tmp_path / "graph"
    assert run(["observe", str(session), "-o", str(graph), "--no-store"]) == 0
    assert trimmed(session, "--target", "0.3", "--graph", str(graph)) == 0


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (["--threshold", "12.5"], "threshold"),
        (["--keep-last", "-1"], "keep-last"),
        (["--tool", "Bash"], "NAME=keep"),
        (["--tool", "Bash=12"], "50"),
        (["--target", "nan"], "target"),
        (["--target", "x"], "target"),
        (["--graph", "g"], "--target"),
    ],
)
def test_wrong_use_is_told(
    given: list[str], word: str, session: Path, capsys: pytest.CaptureFixture[str]
):
    assert trimmed(session, *given) == 2
    assert word in capsys.readouterr().err
    assert not session.with_name("out.jsonl").exists()


def test_what_takes_nearly_all_has_to_be_confirmed(
    session: Path, capsys: pytest.CaptureFixture[str]
):
    out = session.with_name("out.jsonl")
    assert run(["trim", str(session), "-o", str(out), "--keep-last", "0"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert not out.exists()


def test_a_dry_run_tells_what_takes_nearly_all_and_that_it_has_to_be_confirmed(
    session: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(["trim", str(session), "--dry-run", "--keep-last", "0"]) == 0
    told = capsys.readouterr()
    assert "less to send" in told.out
    assert told.err == "recap: more than 95 % of what is sent would go: that takes --yes\n"
    assert run(["trim", str(session), "--dry-run", "--keep-last", "0", "--yes"]) == 0
    assert capsys.readouterr().err == ""


def test_the_session_is_never_the_file_to_write(session: Path):
    assert run(["trim", str(session), "-o", str(session)]) == 2


def test_the_rules_of_the_published_tool_can_be_asked_for(session: Path):
    assert trimmed(session, "--profile", "paper", "--tool", "Bash=keep", "--stub-requests") == 0
    assert b"[Trimmed: ~2000" not in session.with_name("out.jsonl").read_bytes()
