"""Where sessions are looked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from recap.cli.sessions import newest_session, session_files
from recap.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def session(home: Path, name: str, when: int, text: str = "{}\n") -> Path:
    path = home / ".claude" / "projects" / "p" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (when, when))
    return path


def test_the_newest_file_wins_and_ties_go_by_name(tmp_path: Path) -> None:
    session(tmp_path, "b.jsonl", 100)
    newest = session(tmp_path, "a.jsonl", 200)
    assert newest_session(tmp_path, {}) == newest
    assert newest_session(tmp_path, {}) != session(tmp_path, "0.jsonl", 200)


def test_sub_agents_and_empty_files_are_no_sessions(tmp_path: Path) -> None:
    main = session(tmp_path, "main.jsonl", 100)
    session(tmp_path, "agent-1.jsonl", 200)
    session(tmp_path, "new.jsonl", 300, text="")
    (tmp_path / ".claude/projects/p/folder.jsonl").mkdir()
    assert newest_session(tmp_path, {}) == main


def test_the_agents_own_variable_moves_its_folder(tmp_path: Path) -> None:
    moved = tmp_path / "moved" / "projects" / "p" / "s.jsonl"
    moved.parent.mkdir(parents=True)
    moved.write_text("{}\n")
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path / "moved")}
    assert list(session_files(tmp_path, environment)) == [moved]


def test_no_session_is_an_error_that_says_where_was_looked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="claude"):
        newest_session(tmp_path, {})
