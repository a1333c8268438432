"""``recap compact``: what goes where, what is written and how, what is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import stat
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import recap
from recap.cli.compact import headline
from recap.session import compact_transcript
from recap.transcript.check import check
from recap.transcript.formats import open_log

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


def raw_blocks(path: Path) -> set[str]:
    """Return every content block of a log's messages, as it stands in the file."""
    found = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        content = json.loads(line).get("message", {}).get("content", [])
        for block in content if isinstance(content, list) else []:
            found.add(json.dumps(block, ensure_ascii=False, separators=(",", ":")))
    return found


def test_into_a_pipe_goes_the_message_list_alone(cli: Cli, demo: Path, request_text: str) -> None:
    result = cli("compact", str(demo), "--request", request_text)
    compaction = compact_transcript(open_log(demo), request_text)
    assert (result.status, result.err) == (0, "")
    assert result.out_bytes == compaction.to_json()
    assert check(result.json(), "anthropic") == []
    assert result.json()[-1] == {"role": "user", "content": request_text}


def test_kept_blocks_go_out_byte_for_byte(cli: Cli, demo: Path) -> None:
    text = cli("compact", str(demo), "--no-markers").out
    kept = [block for block in raw_blocks(demo) if block in text]
    calls = [b for m in json.loads(text) for b in m["content"] if isinstance(b, dict)]
    assert len(kept) >= len([block for block in calls if block["type"] == "tool_use"]) > 10


def test_without_a_request_the_last_one_is_last_and_its_turn_stays_whole(
    cli: Cli, demo: Path
) -> None:
    messages = cli("compact", str(demo)).json()
    assert messages[-1]["role"] == "assistant"
    assert "1.8.0 is committed and tagged" in json.dumps(messages[-1])


def test_out_writes_the_same_bytes_for_the_owner_alone(
    cli: Cli, demo: Path, tmp_path: Path
) -> None:
    piped = cli("compact", str(demo)).out_bytes
    result = cli("compact", str(demo), "-o", "context.json")
    written = tmp_path / "context.json"
    assert result.status == 0
    assert written.read_bytes() == piped
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert "characters kept in" in result.out
    assert "context.json" in result.out


@pytest.mark.parametrize("way", ["itself", "symlink", "hardlink"])
def test_the_session_is_never_overwritten(cli: Cli, demo: Path, tmp_path: Path, way: str) -> None:
    session, out = tmp_path / "session.jsonl", tmp_path / "out.json"
    session.write_bytes(demo.read_bytes())
    if way == "itself":
        out = session
    elif way == "symlink":
        out.symlink_to(session)
    else:
        out.hardlink_to(session)
    result = cli("compact", str(session), "-o", str(out))
    assert result.status == 2
    assert "never changes a file it reads" in result.err
    assert session.read_bytes() == demo.read_bytes()


def test_a_dry_run_writes_nothing(cli: Cli, demo: Path, tmp_path: Path) -> None:
    result = cli("compact", str(demo), "-o", "context.json", "--dry-run")
    assert result.status == 0
    assert "dry run" in result.out
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_into_a_pipe_shows_the_report(cli: Cli, demo: Path) -> None:
    assert "characters kept in" in cli("compact", str(demo), "--dry-run").out


def test_json_is_the_report(cli: Cli, demo: Path) -> None:
    report = cli("compact", str(demo), "--retention", "0.2", "--json").json()
    assert report["schema"] == "recap.compact/1"
    assert report["kept_chars"] <= report["history_chars"]
    assert report["output_bytes"] == len(cli("compact", str(demo), "--retention", "0.2").out_bytes)
    assert {"budget_chars", "protected_share", "over_budget", "turn_key", "elapsed_ms"} <= set(
        report
    )


def test_json_with_out_writes_the_messages_too(cli: Cli, demo: Path, tmp_path: Path) -> None:
    assert cli("compact", str(demo), "--json", "-o", "c.json").json()["dialect"] == "anthropic"
    assert json.loads((tmp_path / "c.json").read_bytes())


def test_to_changes_the_dialect(cli: Cli, demo: Path) -> None:
    messages = cli("compact", str(demo), "--to", "openai").json()
    assert check(messages, "openai") == []
    assert {"tool", "assistant", "user"} <= {message["role"] for message in messages}


def test_alternate_leaves_no_two_messages_of_one_role_together(cli: Cli, demo: Path) -> None:
    roles = [m["role"] for m in cli("compact", str(demo), "--alternate").json()]
    assert all(a != b for a, b in pairwise(roles))


def test_markers_can_be_left_out(cli: Cli, demo: Path) -> None:
    assert cli("compact", str(demo), "--json").json()["markers"] > 0
    assert cli("compact", str(demo), "--json", "--no-markers").json()["markers"] == 0


def test_a_pinned_block_is_kept(cli: Cli, demo: Path) -> None:
    blocks = cli("explain", str(demo), "--json").json()["blocks"]
    dropped = next(block for block in blocks if not block["kept"])
    again = cli("explain", str(demo), "--json", "--pin", dropped["id"][:8]).json()["blocks"]
    assert again[dropped["index"]]["rule"] == "protected:pin"


def test_a_pin_that_names_nothing_is_wrong_use(cli: Cli, demo: Path) -> None:
    result = cli("compact", str(demo), "--pin", "zzzzzzzz")
    assert result.status == 2
    assert "zzzzzzzz" in result.err


def test_the_session_can_come_from_standard_input(cli: Cli, demo: Path) -> None:
    assert (
        cli("compact", "-", stdin=demo.read_bytes()).out_bytes
        == cli("compact", str(demo)).out_bytes
    )


def test_the_request_can_come_from_a_file_or_standard_input(
    cli: Cli, demo: Path, request_text: str
) -> None:
    given = cli("compact", str(demo), "--request", request_text).out_bytes
    file = str(demo.with_name("request.txt"))
    assert cli("compact", str(demo), "--request-file", file).out_bytes == given
    piped = cli("compact", str(demo), "--request-file", "-", stdin=request_text.encode())
    assert piped.out_bytes == given


def test_two_requests_are_one_too_many(cli: Cli, demo: Path) -> None:
    result = cli("compact", str(demo), "--request", "a", "--request-file", "b")
    assert result.status == 2
    assert "--request-file" in result.err


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_request_is_wrong_use(cli: Cli, demo: Path, text: str) -> None:
    assert cli("compact", str(demo), "--request", text).status == 2


def test_a_request_that_is_no_text_is_refused(cli: Cli, demo: Path, tmp_path: Path) -> None:
    (tmp_path / "request").write_bytes(b"\xff\xfe\x00")
    result = cli("compact", str(demo), "--request-file", "request")
    assert (result.status, result.out) == (1, "")
    assert "UTF-8" in result.err


def test_a_session_and_a_request_cannot_both_be_standard_input(cli: Cli) -> None:
    result = cli("compact", "-", "--request-file", "-", stdin=b"x")
    assert result.status == 2
    assert "standard input" in result.err


@pytest.mark.parametrize("value", ["0", "1.5", "abc", "-0.1", "nan", "1e400", ""])
def test_a_retention_out_of_range_is_wrong_use(cli: Cli, demo: Path, value: str) -> None:
    result = cli("compact", str(demo), "--retention", value)
    assert (result.status, result.out) == (2, "")
    assert "retention" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("value", ["1", "0.29", "1/3", "1e-9"])
def test_a_retention_in_range_is_taken_exactly(cli: Cli, demo: Path, value: str) -> None:
    assert cli("compact", str(demo), "--retention", value).status == 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--policy", "astrology"), "astrology"),
        (("--observer", "telescope"), "telescope"),
        (("--set", "retentoin=0.2"), "retention"),
        (("--set", "retention"), "KEY=VALUE"),
        (("--set", "=3"), "KEY=VALUE"),
        (("--retention", "0.1", "--set", "retention=0.2"), "twice"),
        (("--set", "rows=1", "--set", "rows=2"), "twice"),
        (("--to", "morse"), "morse"),
    ],
)
def test_what_does_not_exist_is_named(
    cli: Cli, demo: Path, options: tuple[str, ...], named: str
) -> None:
    result = cli("compact", str(demo), *options)
    assert (result.status, result.out) == (2, "")
    assert named in result.err


def test_every_coefficient_can_be_set(cli: Cli, demo: Path) -> None:
    def report(*options: str) -> Any:
        return cli("compact", str(demo), "--json", *options).json()

    assert report("--set", "edit_cap=0")["protected_chars"] < report()["protected_chars"]


def test_settings_come_from_the_environment_and_the_file_too(
    cli: Cli, demo: Path, tmp_path: Path
) -> None:
    def budget(*options: str, **env: str) -> int:
        return cli("compact", str(demo), "--json", *options, **env).json()["budget_chars"]

    assert budget(RECAP_RETENTION="0.5") == budget("--retention", "0.5") > budget()
    (tmp_path / "recap.toml").write_text('retention = "0.3"\n')
    assert budget() == budget("--retention", "0.3")


def test_the_graph_of_observe_can_be_used(cli: Cli, demo: Path) -> None:
    assert cli("observe", str(demo), "-o", "g").status == 0
    assert cli("compact", str(demo), "--graph", "g", "--json").status == 0


def test_a_file_that_is_no_graph_is_refused(cli: Cli, demo: Path) -> None:
    result = cli("compact", str(demo), "--graph", str(demo))
    assert (result.status, result.out) == (1, "")
    assert "graph" in result.err


def test_latest_takes_the_session_written_last(cli: Cli, demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "-home-mira"
    folder.mkdir(parents=True)
    (folder / "old.jsonl").write_bytes(b"{}\n")
    os.utime(folder / "old.jsonl", (1, 1))
    (folder / "new.jsonl").write_bytes(demo.read_bytes())
    result = cli("compact", "--latest", "--dry-run")
    assert result.status == 0
    assert str(folder / "new.jsonl") in result.out


def test_latest_without_any_session_says_where_it_looked(cli: Cli) -> None:
    result = cli("compact", "--latest")
    assert result.status == 1
    assert ".claude" in result.err


def test_an_over_budget_protected_set_is_said(cli: Cli, demo: Path) -> None:
    assert "over budget" in cli("compact", str(demo), "--retention", "0.01", "--dry-run").out


def test_on_a_terminal_the_report_is_shown_and_no_json(cli: Cli, demo: Path) -> None:
    shown = on_a_terminal(cli, "compact", str(demo))
    assert "characters kept in" in shown
    assert '"role"' not in shown
    assert "-o FILE writes the messages" in shown


def test_no_color_leaves_the_terminal_uncoloured(cli: Cli, demo: Path) -> None:
    assert "\x1b[32m" not in on_a_terminal(cli, "demo", NO_COLOR="1")
    assert "\x1b[32m" in on_a_terminal(cli, "demo")


def on_a_terminal(cli: Cli, *arguments: str, **env: str) -> str:
    """Return what ``recap`` shows when its standard output is a terminal."""
    ours, theirs = pty.openpty()
    environment = cli.environment(TERM="xterm-256color", **env)
    process = cli.process(*arguments, stdout=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    process.communicate()
    assert process.returncode == 0
    return shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the other side closed it
        return b""


def test_a_long_read_says_so_on_a_terminal_only(cli: Cli) -> None:
    """A silent second on a terminal: the pipe of standard input stays open for a while."""
    ours, theirs = pty.openpty()
    process = cli.process("inspect", "-", stderr=theirs, env=cli.environment(TERM="xterm"))
    os.close(theirs)
    shown = b""
    while b"reading standard input" not in shown:
        shown += os.read(ours, 1 << 16)
    process.communicate(b"")
    os.close(ours)
    assert process.returncode == 0


def test_a_result_over_a_limit_of_the_provider_is_written_and_said(
    cli: Cli, tmp_path: Path
) -> None:
    mark = {"type": "ephemeral"}
    blocks = [{"type": "text", "text": f"word {n}", "cache_control": mark} for n in range(5)]
    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    messages = [
        {"role": "user", "content": "Read it"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
        {"role": "user", "content": blocks},
    ]
    (tmp_path / "list.json").write_text(json.dumps(messages))
    result = cli("compact", "list.json")
    assert result.status == 1
    assert result.json()[-1]["content"] == blocks
    assert "too large for Anthropic Messages (cache-markers)" in result.err
    assert "valid for" not in cli("compact", "list.json", "--dry-run").out


def test_more_than_the_live_history_is_not_said_to_be_a_part_of_it() -> None:
    report = recap.compact([{"role": "user", "content": "hello"}], "go on").report
    assert headline(report, 0.01).startswith("5 of 5 characters kept in 10 ms, no model call")
    grown = dataclasses.replace(report, kept_chars=7, history_chars=5)
    assert headline(grown, 0.01).startswith("7 characters kept, the live history has 5, in 10 ms")
