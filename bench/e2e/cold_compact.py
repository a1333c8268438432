"""Processor time of a cold `recap compact`, a fresh process for every run, by size of the file.

    python -m bench.e2e.cold_compact [FILE ..]     # the Claude Code logs of RECAP_CORPUS by default

User and system time of the child, least of several runs; the limit is 0.5 s + 0.1 s per MB. Also: the
ratio of `recap --help` to a bare `import click`, both in fresh processes of the same run.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.measured import keep, where

RUNS = 5
LIMIT_S, LIMIT_S_PER_MB = 0.5, 0.1
HELP_LIMIT = 1.8
RESULT = Path(__file__).parents[1] / "results" / "cold_compact.json"
RECAP = (sys.executable, "-c", "from recap.cli import main; main()")


def child_seconds(command: tuple[str, ...]) -> float:
    """Return the user and system time of one run of a command."""
    # Installed packages run from their byte code; a computer may be set to write none.
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with TemporaryDirectory() as folder:  # a new store each time: nothing is known of the session
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            env={**environ, "RECAP_HOME": folder},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least_seconds(*command: str, runs: int = RUNS) -> float:
    """Return the least time of several runs."""
    return min(child_seconds(command) for _ in range(runs))


def default_files() -> list[Path]:
    """Return the Claude Code logs of the corpus."""
    corpus = Path(os.environ["RECAP_CORPUS"])
    return sorted((corpus / "sessions" / "claude-code").glob("*.jsonl"))


def main(names: list[str]) -> None:
    """Print a row for each file and write all of them to the results."""
    rows = []
    for path in [Path(name) for name in names] or default_files():
        megabytes = path.stat().st_size / 1e6
        seconds = least_seconds(*RECAP, "compact", str(path), "--request", "Go on with the tests")
        limit = LIMIT_S + LIMIT_S_PER_MB * megabytes
        rows.append(
            {"file": path.name, "mb": round(megabytes, 3), "s": round(seconds, 3), "limit_s": limit}
        )
        print(f"{megabytes:8.2f} MB {seconds:7.3f} s  limit {limit:.3f} s  {path.name}")
    runs = 4 * RUNS
    ratio = least_seconds(*RECAP, "--help", runs=runs) / least_seconds(
        sys.executable, "-c", "import click", runs=runs
    )
    print(f"recap --help takes {ratio:.2f} x import click (limit {HELP_LIMIT})")
    keep(RESULT, rows, where("numpy"), help_ratio=ratio)


if __name__ == "__main__":
    main(sys.argv[1:])
