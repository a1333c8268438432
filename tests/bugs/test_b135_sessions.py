"""Reported bugs about sessions beside each other, and sessions that are not there yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import recap
from tests.bugs.cases import blocks_in, compacted_log
from tests.cli.conftest import Cli
from tests.transcript import logs

if TYPE_CHECKING:
    from pathlib import Path

SIDE = {"isSidechain": True, "agentId": "a1"}
SUB = [
    logs.user("s1", None, "Find the bug", **SIDE),
    logs.agent("s2", "s1", logs.said("I search."), logs.use("sub1"), **SIDE),
    logs.answer("s3", "s2", "sub1", **SIDE),
    logs.agent("s4", "s3", logs.said("Found it."), **SIDE),
]
LAUNCH = logs.use("task1", prompt="Find the bug")


def test_b135_a_side_chain_is_a_session_of_its_own(tmp_path: Path) -> None:
    """A sub-agent's lines carry its parent's session id: keyed by it the two ran together."""
    data = logs.log(
        logs.user("u1", None, "Fix it"),
        logs.agent("a1", "u1", LAUNCH),
        *SUB,
        logs.answer("r1", "a1", "task1"),
        logs.agent("a2", "r1", logs.said("Fixed.")),
    )
    parent = recap.open_log(write(tmp_path / "parent.jsonl", data))
    assert logs.words(parent) == ["Fix it", "result of task1", "Fixed."]
    assert logs.codes(parent) == ["sidechain"]
    done = compacted_log(data, tmp_path, "now")
    assert blocks_in(done.messages, "tool_use") == [LAUNCH]
    child = recap.open_log(write(tmp_path / "agent-a1.jsonl", logs.log(*SUB)))
    assert logs.words(child) == ["Find the bug", "I search.", "result of sub1", "Found it."]
    assert (parent.session_id, child.session_id) == ("s1", "s1/a1")


def test_b137_an_empty_file_is_an_empty_session(tmp_path: Path) -> None:
    """A session's file is made at the first message: a tool started before gave up for good."""
    path = write(tmp_path / "session.jsonl", b"")
    transcript = recap.open_log(path)
    assert (transcript.messages, transcript.findings) == ((), ())
    assert recap.repair(path).repairs == ()
    assert Cli(tmp_path)("inspect", str(path)).status == 0
    path.write_bytes(logs.log(logs.user("u1", None, "Fix it")))
    assert logs.words(recap.open_log(path)) == ["Fix it"]


def test_b137_a_file_that_is_not_there_yet_is_a_clear_error(tmp_path: Path) -> None:
    """A path a person typed must exist; the hook, which may come too early, is later work."""
    path = tmp_path / "session.jsonl"
    with pytest.raises(recap.InputError, match="no such file"):
        recap.open_log(path)
    result = Cli(tmp_path)("inspect", str(path))
    assert (result.status, result.out) == (1, "")


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
