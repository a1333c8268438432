"""One of a thing is no plural, and what is empty is said to be empty."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from recap.cmv.facts import slug
from recap.errors import counted
from tests.cmv.worlds import PROJECT, dumped, line

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

ONE = re.compile(
    r"(?<![\d.,-])1 (?:more |other |support |user |assistant |tool )?"
    r"(?:branches|(?:block|call|character|edge|error|fault|file|finding|graph|line|message|migration|"
    r"object|request|result|row|session|snapshot|text|token|turn|warning)s)\b"
)


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0 boxes"), (1, "1 box"), (2, "2 boxes"), (12_345, "12,345 boxes")]
)
def test_a_counted_noun_has_its_number(value: int, said: str) -> None:
    assert counted(value, "box", "boxes") == said


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session that has one of each: one question of a character, one answer, one lost file."""
    path = tmp_path / ".claude" / "projects" / slug(PROJECT) / "s.jsonl"
    path.parent.mkdir(parents=True)
    side = [line("user", 0, "s", isSidechain=True, uuid="side")]
    lost = "see " + " ".join(f"/x/tool-results/{name}.txt" for name in "abcdef")
    talk = [line("user", 0, "a"), line("assistant", 1, [{"type": "text", "text": lost}])]
    path.write_bytes(dumped([*side, *talk]))
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "S"), ("check", "S"), ("graph", "S"), ("explain", "S", "--request", "b"),
        ("compact", "S", "--request", "b", "--dry-run"), ("observe", "S"), ("trim", "S", "--dry-run"),
        ("snapshot", "one", "--session", "S"), ("snapshot", "one", "--session", "S", "--dry-run"),
        ("trim", "S"), ("trim", "S", "-o", "out.jsonl"), ("tree",), ("tree", "--flat"), ("diff", "S", "S"),
        ("restore", "--list"), ("gc",), ("verify",), ("sessions", "--all"), ("doctor",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_one_of_a_thing_is_no_plural(cli: Cli, session: Path, words: tuple[str, ...]) -> None:
    home = {"RECAP_HOME": str(cli.folder / "kept")}
    cli("snapshot", "before", "--session", str(session), **home)
    result = cli(*(str(session) if word == "S" else word for word in words), **home)
    assert result.status == 0, result.err
    assert not ONE.search(result.out + result.err), result.out + result.err


@pytest.mark.parametrize(
    "words",
    [
        ("compact", "F"), ("explain", "F"), ("trim", "F"), ("trim", "F", "--dry-run"),
        ("trim", "F", "-o", "out"), ("snapshot", "one", "--session", "F"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_empty_file_is_said_to_be_empty(
    cli: Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "empty.jsonl").touch()
    result = cli(*("empty.jsonl" if word == "F" else word for word in words))
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("recap: empty.jsonl is empty: ")
    assert result.err.count("\n") == 1


def test_an_empty_file_is_judged_as_what_it_is(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    assert cli("check", "empty.jsonl").out == "valid as empty session\n"


def test_tables_without_rows_leave_no_gaps(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text(json.dumps([{"role": "system", "content": "s"}]))
    for command in ("inspect", "graph"):
        assert "\n\n\n" not in cli(command, "none.json").out
