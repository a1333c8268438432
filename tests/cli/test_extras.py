"""What is optional and not installed is a failure, in one line with the command that gets it."""

from __future__ import annotations

import json
from importlib import util
from typing import TYPE_CHECKING, Any

import pytest

from tests.testing import conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

COMMAND = 'pip install "recap-context[proxy]"'


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an environment that has the core alone."""
    find = util.find_spec
    missing = ("torch", "transformers", "tokenizers", "gguf")

    def found(name: str, *rest: Any) -> Any:
        return None if name in missing else find(name, *rest)

    monkeypatch.setattr(util, "find_spec", found)


@pytest.mark.usefixtures("without_packages")
@pytest.mark.parametrize(
    "words",
    [
        ("observe", "s.json", "--observer", "proxy"),
        ("observe", "s.json", "--observer", "proxy", "-o", "graph"),
        ("proxy", "install"),
        ("proxy", "install", "--model", "folder"),
        ("proxy", "status"),
    ],
    ids=" ".join,
)
def test_missing_packages_are_a_failure_whatever_the_command(
    cli: Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(conversation(3)), encoding="utf-8")
    result = cli(*words, RECAP_HOME=str(tmp_path / "kept"))
    assert result.status == 1
    assert COMMAND in result.out + result.err
    assert result.err.count("\n") <= 1
