"""A session goes by its file or by its id, whatever the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recap.cmv.facts import slug
from tests.cmv.worlds import PROJECT, dumped, tool_steps

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

ID = "5e551044-0000-4000-8000-000000000001"
OTHER = "5e551044-0000-4000-8000-000000000002"

READERS = (
    ("inspect",), ("check",), ("explain", "--request", "go on"), ("graph",),
    ("compact", "--request", "go on", "--dry-run"), ("observe", "--dry-run"),
    ("trim", "--dry-run"), ("trim", "-o", "trimmed.jsonl"), ("trim",),
)  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / ".claude" / "projects" / slug(PROJECT) / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(dumped(tool_steps(["short"] * 3)))
    return path


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_every_command_takes_an_id_or_the_beginning_of_one(
    cli: Cli, session: Path, command: tuple[str, ...]
) -> None:
    for name in (ID, ID[:8], str(session)):
        result = cli(command[0], name, *command[1:], RECAP_HOME=str(cli.folder / "kept"))
        assert result.status == 0, result.err


def test_observe_and_diff_take_several(cli: Cli, session: Path) -> None:
    session.with_name(f"{OTHER}.jsonl").write_bytes(session.read_bytes())
    assert cli("observe", ID, OTHER, "--dry-run").out.endswith(
        "2 graphs would be kept (dry run), 0 failed\n"
    )
    assert cli("diff", ID, OTHER, "--texts").status == 0
    home = {"RECAP_HOME": str(cli.folder / "kept")}
    assert cli("snapshot", "one", "--session", ID, **home).status == 0
    assert cli("diff", "one", OTHER, "--texts", **home).status == 0
    gone = cli("diff", "one", "two", **home)
    assert (gone.status, "there is no snapshot or branch 'two'" in gone.err) == (2, True)


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_a_name_of_none_or_of_several_is_one_line(
    cli: Cli, session: Path, command: tuple[str, ...]
) -> None:
    session.with_name(f"{OTHER}.jsonl").write_bytes(session.read_bytes())
    for name, said in (("nobody", "there is no session or file"), (ID[:8], "could be")):
        result = cli(command[0], name, *command[1:], RECAP_HOME=str(cli.folder / "kept"))
        assert (result.status, result.err.count("\n")) == (1, 1)
        assert said in result.err


def test_standard_input_is_trimmed_into_a_file_alone(cli: Cli, session: Path) -> None:
    data = session.read_bytes()
    assert cli("trim", "-", "--dry-run", stdin=data).status == 0
    assert cli("trim", "-", "-o", "out.jsonl", stdin=data).status == 0
    result = cli("trim", "-", stdin=data, RECAP_HOME=str(cli.folder / "kept"))
    assert (result.status, "give -o OUT" in result.err) == (2, True)
    assert cli("snapshot", "one", "--session", "-", stdin=data).status == 2
