"""``recap check``: findings with their place, and an exit status to build on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

VALID: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is it?"},
    {"role": "assistant", "content": [{"type": "text", "text": "In the parser."}]},
]
ORPHAN = [
    *VALID,
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
]
OPENAI = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "Where is it?"},
    {"role": "tool", "tool_call_id": "c", "content": "x"},
]


def write(path: Path, document: object, indent: int | None = None) -> str:
    path.write_text(json.dumps(document, indent=indent))
    return str(path)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_valid_list_is_said_to_be_valid(cli: Cli, tmp_path: Path, indent: int | None) -> None:
    result = cli("check", write(tmp_path / "list.json", VALID, indent))
    assert (result.status, result.out) == (0, "valid as anthropic\n")


def test_a_finding_has_its_message_and_fails(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path / "list.json", ORPHAN)
    result = cli("check", path)
    assert result.status == 1
    assert "message 3: orphan-result" in result.out
    assert result.out.endswith("not valid as anthropic: 1 error\n")
    answer = cli("check", path, "--json").json()
    assert answer["schema"] == "recap.check/1"
    assert (answer["dialect"], answer["errors"]) == ("anthropic", 1)
    assert [(f["code"], f["line"]) for f in answer["findings"]] == [("orphan-result", 3)]


@pytest.mark.parametrize("document", [OPENAI, {"model": "m", "messages": OPENAI}])
def test_the_dialect_follows_the_content(cli: Cli, tmp_path: Path, document: object) -> None:
    answer = cli("check", write(tmp_path / "list.json", document), "--json").json()
    assert answer["dialect"] == "openai"
    assert answer["errors"] > 0


def test_the_dialect_can_be_given(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path / "list.json", OPENAI)
    assert cli("check", path, "--dialect", "anthropic", "--json").json()["dialect"] == "anthropic"


def test_a_log_is_checked_as_a_log(cli: Cli, demo: Path) -> None:
    assert cli("check", str(demo)).out == "valid as claude-code\n"
    assert cli("check", "-", stdin=demo.read_bytes()).out == "valid as claude-code\n"


def test_a_log_of_one_line_is_a_log(cli: Cli, demo: Path, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_bytes(demo.read_bytes().split(b"\n")[1] + b"\n")
    assert cli("check", "one.jsonl").out.splitlines()[-1].startswith("valid as claude-code")


def test_a_broken_line_of_a_log_is_found(cli: Cli, demo: Path, tmp_path: Path) -> None:
    lines = demo.read_bytes().split(b"\n")
    lines[4] = lines[4][:-9]
    (tmp_path / "bad.jsonl").write_bytes(b"\n".join(lines))
    result = cli("check", "bad.jsonl")
    assert result.status == 1
    assert "line 5" in result.out


def test_what_compact_writes_is_valid(cli: Cli, demo: Path) -> None:
    for to in ("anthropic", "openai"):
        data = cli("compact", str(demo), "--to", to).out_bytes
        assert cli("check", "-", "--dialect", to, stdin=data).status == 0


def test_a_document_of_another_kind_is_an_error_of_one_line(cli: Cli) -> None:
    result = cli("check", "-", "--dialect", "openai", stdin=b"{nonsense")
    assert (result.status, result.out) == (1, "")
    assert "--dialect claude-code" in result.err


def test_latest_is_checked(cli: Cli, demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_bytes(demo.read_bytes())
    assert cli("check", "--latest").out == "valid as claude-code\n"
