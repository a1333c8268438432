"""``recap inspect``: what a session holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


def test_turns_blocks_kinds_and_authors_add_up(cli: Cli, demo: Path) -> None:
    answer = cli("inspect", str(demo), "--json").json()
    assert answer["schema"] == "recap.inspect/1"
    assert answer["format"] == "claude-code"
    assert answer["bytes"] == demo.stat().st_size
    assert sum(turn["blocks"] for turn in answer["turns"]) == answer["blocks"]
    assert sum(turn["cost_chars"] for turn in answer["turns"]) == answer["all_chars"]
    assert sum(kind["blocks"] for kind in answer["kinds"].values()) == answer["blocks"]
    assert sum(answer["authors"].values()) >= answer["all_chars"]
    assert {"human", "steering", "agent", "tool"} <= answer["authors"].keys()


def test_the_report_shows_turns_and_sizes(cli: Cli, demo: Path) -> None:
    out = cli("inspect", str(demo), COLUMNS="80").out
    assert "claude-code" in out
    assert "12 turns" not in out
    assert max(len(line) for line in out.splitlines() if line.startswith("   ")) <= 80
    assert "Nothing odd in it." in out


def test_odd_lines_are_named_with_their_number(cli: Cli, demo: Path, tmp_path: Path) -> None:
    lines = demo.read_bytes().split(b"\n")
    lines[10] = lines[10][:200]
    (tmp_path / "bad.jsonl").write_bytes(b"\n".join(lines))
    result = cli("inspect", "bad.jsonl")
    assert result.status == 0
    assert "line 11" in result.out
    assert any(f["line"] == 11 for f in cli("inspect", "bad.jsonl", "--json").json()["findings"])


def test_many_findings_are_cut_with_a_count(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text(
        '{"type":"mode","mode":"x","sessionId":"s"}\n' + "{x}\n" * 50
    )
    out = cli("inspect", "bad.jsonl", "--format", "claude-code").out
    assert "30 more; --json lists all" in out


def test_a_message_list_is_counted_in_messages(cli: Cli, tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Hello there"},
        {"role": "assistant", "content": "Hello"},
    ]
    (tmp_path / "list.json").write_text(json.dumps(messages))
    answer = cli("inspect", "list.json", "--json").json()
    assert (answer["messages"], answer["blocks"]) == (2, 2)


@pytest.mark.corpus
@pytest.mark.parametrize("command", [("inspect",), ("explain", "--request", "go on"), ("graph",)])
def test_real_sessions_can_be_looked_at(cli: Cli, corpus: Path, command: tuple[str, ...]) -> None:
    files = sorted((corpus / "sessions" / "claude-code").glob("*.jsonl"))
    for path in files:
        if path.stat().st_size > 700_000:
            continue
        result = cli(command[0], str(path), *command[1:])
        assert (result.status, result.err) == (0, ""), path.name
        assert "\x1b" not in result.out
