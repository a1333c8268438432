"""``recap check --repair``: a copy and what was taken out, never a change of the session."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


def line(kind: str, uuid: str, parent: str | None, content: Any) -> bytes:
    message = {"role": kind, "content": content} | ({"model": "m"} if kind == "assistant" else {})
    record = {
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s",
        "timestamp": "2026-01-01T00:00:00Z", "message": message,
    }  # fmt: skip
    return json.dumps(record).encode() + b"\n"


FIRST = line("user", "u1", None, "Where is it?")
SECOND = line("assistant", "a1", "u1", [{"type": "text", "text": "In the parser."}])
ORPHAN = line(
    "user", "r1", "a1", [{"type": "tool_result", "tool_use_id": "t", "content": "secret"}]
)
SOUND = FIRST + SECOND
BROKEN = FIRST.rstrip(b"\n") + SECOND + ORPHAN + b"\0\0\n"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(BROKEN)
    return path


def test_a_repaired_copy_is_written_and_the_session_stays(
    cli: Cli, session: Path, tmp_path: Path
) -> None:
    result = cli("check", "session.jsonl", "--repair", "out.jsonl")
    assert result.status == 0
    assert session.read_bytes() == BROKEN
    assert (tmp_path / "out.jsonl").read_bytes() == SOUND
    assert (tmp_path / "out.jsonl.quarantine").read_bytes() == b"\0\0\n" + ORPHAN
    assert cli("check", "out.jsonl").out == "valid as claude-code\n"


def test_what_is_written_is_for_the_owner_alone(cli: Cli, session: Path, tmp_path: Path) -> None:
    cli("check", str(session), "--repair", "out.jsonl")
    for name in ("out.jsonl", "out.jsonl.quarantine"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_every_repair_is_listed_with_its_line(cli: Cli, session: Path) -> None:
    out = cli("check", str(session), "--repair", "out.jsonl").out
    assert out.splitlines()[:4] == [
        "3 repairs",
        "  line 1: glued-lines: 2 records stand on one line; each gets a line of its own.",
        "  line 2: orphan-result: Result 1 answers no call in the file; it is taken out with its line.",
        "  line 3: nul-bytes: 2 NUL bytes are taken out.",
    ]
    assert "secret" not in out


def test_json_is_stable(cli: Cli, session: Path) -> None:
    answer = cli("check", str(session), "--repair", "out.jsonl", "--json").json()
    assert list(answer) == [
        "schema", "format", "written", "out", "bytes", "quarantine", "quarantined_bytes",
        "repairs", "left", "errors", "warnings", "findings",
    ]  # fmt: skip
    assert answer["schema"] == "recap.repair/1"
    assert (answer["format"], answer["written"], answer["errors"]) == ("claude-code", True, 0)
    assert [(each["code"], each["line"]) for each in answer["repairs"]] == [
        ("glued-lines", 1), ("orphan-result", 2), ("nul-bytes", 3),
    ]  # fmt: skip
    assert answer["bytes"] == len(SOUND)
    assert answer["quarantined_bytes"] == len(ORPHAN) + 3


def test_a_dry_run_says_the_same_and_writes_nothing(
    cli: Cli, session: Path, tmp_path: Path
) -> None:
    dry = cli("check", str(session), "--repair", "out.jsonl", "--dry-run")
    assert list(tmp_path.iterdir()) == [session]
    wet = cli("check", str(session), "--repair", "out.jsonl")
    assert dry.out == wet.out.replace("wrote", "would write")


def test_a_repair_of_a_sound_session_is_a_copy(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "sound.jsonl").write_bytes(SOUND)
    result = cli("check", "sound.jsonl", "--repair", "out.jsonl")
    assert result.out.startswith("Nothing to repair.\nwrote  out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == SOUND
    assert not (tmp_path / "out.jsonl.quarantine").exists()


def test_what_no_repair_can_mend_fails(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(SOUND.replace(b'"model": "m"', b'"model": 1') + b"null\n")
    result = cli("check", "bad.jsonl", "--repair", "out.jsonl")
    assert result.status == 1
    assert (tmp_path / "out.jsonl").exists()
    assert result.out.endswith("the copy still has 1 error\n")


def test_a_call_that_may_still_be_answered_is_said(cli: Cli, tmp_path: Path) -> None:
    call = [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]
    (tmp_path / "live.jsonl").write_bytes(SOUND + line("assistant", "a2", "a1", call))
    result = cli("check", "live.jsonl", "--repair", "out.jsonl")
    assert result.status == 0
    assert "1 fault left\n  line 3: unanswered-call: " in result.out


@pytest.mark.parametrize("out", ["session.jsonl", "link.jsonl"])
def test_the_session_itself_is_refused(cli: Cli, session: Path, tmp_path: Path, out: str) -> None:
    (tmp_path / "link.jsonl").symlink_to(session)
    result = cli("check", "session.jsonl", "--repair", out)
    assert result.status == 2
    assert "never changes a file it reads" in result.err
    assert session.read_bytes() == BROKEN


def test_the_quarantine_does_not_fall_on_the_session(cli: Cli, session: Path) -> None:
    named = session.rename(session.with_name("out.quarantine"))
    assert cli("check", str(named), "--repair", "out").status == 2
    assert named.read_bytes() == BROKEN


def test_nothing_is_written_where_a_text_would_be_lost(cli: Cli, tmp_path: Path) -> None:
    lines = [
        line("user", "u1", None, "one"),
        line("user", "u2", "u1", "two"),
        line("user", "u3", "u2", "three"),
        line("user", "u1", "u3", "four"),
        line("user", "u5", "u2", "five"),
    ]
    (tmp_path / "odd.jsonl").write_bytes(b"".join(lines))
    result = cli("check", "odd.jsonl", "--repair", "out.jsonl")
    assert result.status == 1
    assert "would lose" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["odd.jsonl"]


def test_a_copy_that_cannot_be_written_is_an_error_of_one_line(cli: Cli, session: Path) -> None:
    result = cli("check", str(session), "--repair", "gone/out.jsonl")
    assert (result.status, result.out) == (2, "")
    assert "there is no folder" in result.err


def test_standard_input_is_repaired(cli: Cli, tmp_path: Path) -> None:
    assert cli("check", "-", "--repair", "out.jsonl", stdin=BROKEN).status == 0
    assert (tmp_path / "out.jsonl").read_bytes() == SOUND


def test_a_message_list_is_repaired(cli: Cli, tmp_path: Path) -> None:
    ask = {"role": "user", "content": "Where?"}
    orphan = {"role": "tool", "tool_call_id": "c", "content": "x"}
    (tmp_path / "list.json").write_text(json.dumps([ask, orphan]))
    answer = cli("check", "list.json", "--repair", "out.json", "--json").json()
    assert json.loads((tmp_path / "out.json").read_text()) == [ask]
    assert (answer["format"], answer["errors"]) == ("openai-chat", 0)
    out = cli("check", "list.json", "--repair", "out.json").out
    assert "  message 2: orphan-result: Result 1 answers no call just before it" in out


def test_a_dry_run_without_a_repair_is_refused(cli: Cli, session: Path) -> None:
    result = cli("check", str(session), "--dry-run")
    assert (result.status, result.out) == (2, "")
    assert "--repair" in result.err


def test_the_list_of_repairs_is_cut_for_people(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_bytes(SOUND + b"null\n" * 30)
    result = cli("check", "many.jsonl", "--repair", "out.jsonl")
    assert result.out.startswith("30 repairs\n")
    assert "  and 10 more; --json lists all\n" in result.out
