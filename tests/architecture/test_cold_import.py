"""What starts a process loads no array library: each case runs in a fresh interpreter."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {"numpy", "torch", "triton", "transformers", "sglang", "aiohttp", "matplotlib"}


def loaded_by(code: str, folder: Path) -> set[str]:
    """Return the top-level modules loaded after ``code`` ran in a fresh interpreter."""
    report = folder / "modules.json"
    program = (
        "import atexit, json, pathlib, sys\n"
        "atexit.register(lambda: pathlib.Path(sys.argv[1]).write_text(json.dumps(list(sys.modules))))\n"
        f"{code}\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(report)],
        check=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    return {name.partition(".")[0] for name in json.loads(report.read_text())}


def command(*arguments: str) -> str:
    """Return code that runs ``recap`` with these arguments and expects exit status 0."""
    return (
        "from recap.cli import main\n"
        f"try:\n    main({list(arguments)!r})\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A Claude Code log of one question and its answer."""
    lines = [
        {
            "type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s",
            "timestamp": "2026-01-01T00:00:00Z",
            "message": {"role": "user", "content": "What does parser.py do?"},
        },
        {
            "type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": "s",
            "timestamp": "2026-01-01T00:00:00Z",
            "message": {
                "id": "m1", "type": "message", "role": "assistant", "model": "test",
                "content": [{"type": "text", "text": "It parses."}],
            },
        },
    ]  # fmt: skip
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_import_recap_loads_nothing_heavy(tmp_path: Path) -> None:
    loaded = loaded_by("import recap", tmp_path)
    assert not loaded & (HEAVY | {"msgspec", "click", "rich"})


def test_the_probe_sees_what_is_loaded(tmp_path: Path) -> None:
    assert "numpy" in loaded_by("import recap; recap.Selection", tmp_path)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("compact", "--help")])
def test_help_loads_nothing_heavy(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert not loaded_by(command(*arguments), tmp_path) & HEAVY


def test_check_loads_nothing_heavy(log: Path, tmp_path: Path) -> None:
    assert not loaded_by(command("check", str(log)), tmp_path) & HEAVY


def test_reading_a_log_loads_nothing_heavy(log: Path, tmp_path: Path) -> None:
    assert not loaded_by(f"import recap; recap.open_log({str(log)!r})", tmp_path) & HEAVY
