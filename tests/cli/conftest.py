"""The command line as tests call it: in this process, or as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from recap.cli import run

DEMO = Path(str(files("recap"))) / "demo"
REQUEST = (DEMO / "request.txt").read_text(encoding="utf-8").strip()


@dataclass(frozen=True)
class Result:
    """What a run printed, and its exit status."""

    status: int
    out_bytes: bytes
    err: str

    @property
    def out(self) -> str:
        return self.out_bytes.decode("utf-8")

    def json(self) -> Any:
        return json.loads(self.out_bytes)


@dataclass(frozen=True)
class Cli:
    """Runs ``recap`` in a folder of its own, with a home folder that holds nothing."""

    folder: Path

    def environment(self, **changes: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RECAP_", "XDG_", "CLAUDE", "CODEX", "COPILOT", "PI_"))
            and name not in ("COLUMNS", "NO_COLOR")
        }
        return kept | {
            "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder / "xdg"), **changes
        }  # fmt: skip

    def __call__(self, *arguments: str, stdin: bytes = b"", **env: str) -> Result:
        settings: dict[str, str | None] = dict.fromkeys(os.environ)
        settings |= self.environment(**env)
        with CliRunner().isolation(input=stdin, env=settings) as (out, err, _):
            status = run(arguments)
            sys.stdout.flush()
            return Result(status, out.getvalue(), err.getvalue().decode("utf-8"))

    def process(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start ``recap`` as a process, with pipes for its streams."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [sys.executable, "-c", "from recap.cli import main; main()", *arguments],
            cwd=self.folder, **({"env": self.environment()} | pipes | options),
        )  # fmt: skip


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return Cli(tmp_path)


@pytest.fixture
def demo() -> Path:
    """The session that ships with the package."""
    return DEMO / "session.jsonl"


@pytest.fixture
def request_text() -> str:
    """The request that arrives after the demo session."""
    return REQUEST
