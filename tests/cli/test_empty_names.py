"""An option that takes a file or a folder and got nothing: a shell variable that is not set."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click
import pytest

from recap.cli import COMMANDS
from recap.cli.command import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Cli


def options() -> Iterator[tuple[str, ...]]:
    """Yield each command line that ends with an option of a file or folder."""
    for name in COMMANDS:
        command = import_module(f"recap.cli.{name}").command
        inner = command.commands if isinstance(command, click.Group) else {"": command}
        for word, each in inner.items():
            for param in each.params:
                if isinstance(param, click.Option) and param.metavar in PLACES:
                    yield (*filter(None, (name, word)), *needed_beside(param, each), param.opts[-1])


def needed_beside(option: click.Option, command: click.Command) -> Iterator[str]:
    """Yield what a command line has to hold besides an option."""
    for param in command.params:
        if param.required and param is not option:
            yield from ("x",) if isinstance(param, click.Argument) else (param.opts[-1], "x")


@pytest.mark.parametrize("words", list(options()), ids=" ".join)
@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_name_is_wrong_use(
    cli: Cli, tmp_path: Path, words: tuple[str, ...], value: str
) -> None:
    """``recap restore --to ""`` wrote a file, ``recap branch -o ""`` went where the agent looks."""
    result = cli(*words, value, RECAP_HOME=str(tmp_path / "kept"))
    assert result.status == 2
    said = f"recap: {words[-1]} names nothing: give it a value, or leave it out\n"
    assert result.err == said or "Missing option" in result.err
    assert list(tmp_path.iterdir()) == []
