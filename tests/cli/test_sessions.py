"""``recap sessions``: the sessions of agents, and which of them ``--latest`` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli


def test_the_session_that_is_taken_is_named(cli: Cli, demo: Path, tmp_path: Path) -> None:
    path = tmp_path / ".claude/projects/p/s.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(demo.read_bytes())
    assert cli("check", "--latest").err == f"recap: --latest takes {path} (Claude Code)\n"
