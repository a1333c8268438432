"""Where sessions are looked for."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest

from recap.cmv.locations import newest_session
from recap.errors import InputError

CLAUDE = ".claude/projects/p"


def write(home: Path, name: str, when: int, text: str = "{}\n", under: str = CLAUDE) -> Path:
    path = home / under / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (when, when))
    return path


def newest(home: Path, folder: str = "/elsewhere") -> Path:
    return newest_session(home, {}, Path(folder)).path


def test_the_newest_file_wins_and_ties_go_by_name(tmp_path: Path) -> None:
    write(tmp_path, "b.jsonl", 100)
    last = write(tmp_path, "a.jsonl", 200)
    assert newest(tmp_path) == last
    assert newest(tmp_path) != write(tmp_path, "0.jsonl", 200)


def test_sub_agents_and_empty_files_are_no_sessions(tmp_path: Path) -> None:
    main = write(tmp_path, "main.jsonl", 100)
    write(tmp_path, "agent-1.jsonl", 200)
    write(tmp_path, "new.jsonl", 300, text="")
    (tmp_path / ".claude/projects/p/folder.jsonl").mkdir()
    (tmp_path / ".claude/projects/p/gone.jsonl").symlink_to("nowhere")
    assert newest(tmp_path) == main


PLACES = {
    "Claude Code": ".claude/projects/p/s.jsonl",
    "Codex": ".codex/sessions/2026/01/02/rollout-2026-01-02-s.jsonl",
    "Gemini CLI": ".gemini/tmp/p/chats/session-1.json",
    "Copilot CLI": ".copilot/session-state/s/events.jsonl",
    "pi": ".pi/agent/sessions/--p--/1_s.jsonl",
}


@pytest.mark.parametrize("agent", PLACES)
def test_every_agent_is_looked_for(tmp_path: Path, agent: str) -> None:
    for at, place in enumerate(PLACES.values()):
        write(tmp_path, place, at, under="")
    last = write(tmp_path, PLACES[agent], 1000, under="")
    assert newest_session(tmp_path, {}, Path("/elsewhere"))[1:] == (last, agent)


HEADS = {
    "Claude Code": (".claude/projects/-home-me-my-app/s.jsonl", "{}"),
    "Codex": (PLACES["Codex"], '{"type":"session_meta","payload":{"cwd":"/home/me/my.app"}}'),
    "Gemini CLI": (
        f".gemini/tmp/{sha256(b'/home/me/my.app').hexdigest()}/chats/session-1.json", "{}"
    ),
    "Copilot CLI": (PLACES["Copilot CLI"], '{"data":{"context":{"cwd": "/home/me/my.app"}}}'),
    "pi": (PLACES["pi"], '{"type":"session","cwd":"/home/me/my.app"}'),
}  # fmt: skip


@pytest.mark.parametrize("agent", HEADS)
def test_a_session_of_the_current_folder_goes_first(tmp_path: Path, agent: str) -> None:
    place, text = HEADS[agent]
    own = write(tmp_path, place, 100, text=text, under="")
    other = write(tmp_path, "other.jsonl", 200, text='{"cwd":"/home/me/my.app2"}')
    assert newest(tmp_path, "/home/me/my.app") == own
    assert newest(tmp_path, "/home/me") == other


@pytest.mark.parametrize(
    ("variable", "place"),
    [
        ("CLAUDE_CONFIG_DIR", "projects/p/s.jsonl"),
        ("CODEX_HOME", "sessions/2026/01/02/rollout-s.jsonl"),
        ("COPILOT_HOME", "session-state/s.jsonl"),
        ("PI_CODING_AGENT_DIR", "sessions/p/s.jsonl"),
    ],
)
def test_the_agents_own_variable_moves_its_folder(
    tmp_path: Path, variable: str, place: str
) -> None:
    moved = write(tmp_path, place, 1, under="moved")
    environment = {variable: str(tmp_path / "moved")}
    assert newest_session(tmp_path, environment, Path("/elsewhere")).path == moved


def test_no_session_is_an_error_that_says_where_was_looked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"claude.*codex.*gemini.*copilot.*pi"):
        newest(tmp_path)
