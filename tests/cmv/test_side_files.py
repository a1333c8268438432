"""What is beside a session and cannot be kept is told: a snapshot lacks nothing in silence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recap.cmv.snapshot import look
from tests.cmv.worlds import dumped, line, tool_steps

if TYPE_CHECKING:
    import pytest

    from tests.cmv.worlds import World

ID = "44444444-4444-4444-8444-444444444444"


def session_with_odd_files(world: World) -> Path:
    """Return a session beside which a file is, and what is none that can be kept."""
    named = line("user", 9, f"see /x/{ID}/tool-results/link.txt and /x/{ID}/tool-results/gone.txt")
    path = world.session(dumped([*tool_steps(["a"]), named]), id=ID)
    outside = path.parent / "outside.txt"
    outside.write_text("secret")
    results = path.with_suffix("") / "tool-results"
    results.mkdir(parents=True)
    (results / "kept.txt").write_text("kept")
    (results / "link.txt").symlink_to(outside)
    (results / "new\nline.txt").write_text("odd")
    Path(os.fsdecode(os.fsencode(results) + b"/\xff.txt")).write_text("odd")
    (results / "1" / "2" / "3" / "4").mkdir(parents=True)
    (path.with_suffix("") / "subagents").mkdir()
    os.mkfifo(path.with_suffix("") / "subagents" / "pipe.jsonl")
    return path


LEFT_OUT = (
    "subagents/pipe.jsonl", "tool-results/1/2/3/4", "tool-results/link.txt",
    "tool-results/new\nline.txt", "tool-results/\udcff.txt",
)  # fmt: skip


def test_what_is_left_out_is_named(world: World) -> None:
    seen = look(session_with_odd_files(world))
    assert [each.name for each in seen.beside] == ["tool-results/kept.txt"]
    assert seen.left_out == LEFT_OUT
    assert seen.missing == ("tool-results/gone.txt",)


def test_a_folder_that_is_none_is_named(world: World) -> None:
    path = world.session(dumped(tool_steps(["a"])), id=ID)
    path.with_suffix("").mkdir()
    (path.with_suffix("") / "tool-results").write_text("a file")
    assert look(path).left_out == ("tool-results",)


def test_a_snapshot_and_a_trim_tell_it(
    world: World,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from recap.cli import run

    monkeypatch.setenv("HOME", str(world.home))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    path, store = session_with_odd_files(world), str(tmp_path / "other")
    for command in (["snapshot", "one", "--session", ID], ["trim", str(path)]):
        assert run([*command, "--store", store]) == 0
        told = capsys.readouterr().err
        assert "recap: tool-results/link.txt is left out" in told
        assert "which is gone" in told
        assert "may be in use" in told
