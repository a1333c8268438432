"""Cost of starting: ``recap --help`` beside importing click, and a cold ``recap compact``.

Processor time of the child, least of several runs: wall clock says nothing on a shared computer.
Help is bounded by 1.8 x click, in the same run. A cold compact shall take 0.5 s + 0.1 s per MB; that
is reported beside what importing numpy costs here, and not asserted: a loaded computer doubles both.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

RUNS = 7
HELP = "from recap.cli import main; main(['--help'])"
CLICK = "import click"


def processor_seconds(code: str, *arguments: str) -> float:
    """Return the least processor time that Python takes for ``code`` in a fresh process."""

    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", code, *arguments],
            check=True, stdout=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(RUNS))


def bench_help_beside_click(benchmark: Any) -> None:
    """``recap --help`` costs at most 1.8 times what ``import click`` costs."""
    ours = benchmark.pedantic(processor_seconds, args=(HELP,), rounds=1)
    click = processor_seconds(CLICK)
    benchmark.extra_info |= {"help_s": ours, "click_s": click, "ratio": ours / click}
    assert ours <= 1.8 * click


@pytest.mark.parametrize("copies", [1, 8])
def bench_cold_compact(benchmark: Any, tmp_path: Path, copies: int) -> None:
    """A cold ``recap compact`` of the demo session, and of a log that repeats it."""
    lines = (files("recap") / "demo" / "session.jsonl").read_text(encoding="utf-8")
    session = tmp_path / "session.jsonl"
    session.write_text("".join(_renamed(lines, copy) for copy in range(copies)), encoding="utf-8")
    megabytes = session.stat().st_size / 1e6
    code = "import sys; from recap.cli import main; main(sys.argv[1:])"
    seconds = benchmark.pedantic(
        processor_seconds, args=(code, "compact", str(session), "--request", "go on"), rounds=1
    )
    benchmark.extra_info |= {
        "megabytes": megabytes,
        "processor_s": seconds,
        "bound_s": 0.5 + 0.1 * megabytes,
        "numpy_s": processor_seconds("import numpy"),
    }


def _renamed(lines: str, copy: int) -> str:
    """Return the session with ids of its own, so that copies follow one another."""
    return lines.replace("toolu_01", f"toolu_{copy:02}").replace("msg_01", f"msg_{copy:02}")
