"""``recap completions``: a script for each shell, and the answers it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(cli: Cli, shell: str) -> None:
    result = cli("completions", shell)
    assert result.status == 0
    assert "_RECAP_COMPLETE" in result.out
    assert "_recap_completion" in result.out


def test_another_shell_is_wrong_use(cli: Cli) -> None:
    result = cli("completions", "tcsh")
    assert result.status == 2
    assert "fish" in result.err


def test_the_script_is_answered_with_commands_and_options(cli: Cli) -> None:
    def ask(words: str, index: int) -> str:
        env = {"_RECAP_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(index)}
        process = cli.process(env=cli.environment(**env))
        return process.communicate()[0].decode()

    assert "plain,explain" in ask("recap exp", 1)
    assert "plain,--retention" in ask("recap explain --ret", 2)
