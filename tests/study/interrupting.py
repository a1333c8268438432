"""Starts a study as a process of its own, interrupts it at work, and says what is left of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

WAIT_S = 60
"""How long a process may go on whose study has ended."""


def interrupted(folder: Path, number: int, *, is_worker: bool = False) -> tuple[int, str, set[int]]:
    """Return exit status, standard error, and processes of the study that still run.

    The signal goes to the study itself, or to one of its processes at work.
    """
    command = [
        sys.executable, "-c", "from recap.cli import main; main()",
        "study", "reuse", "--sessions", str(folder), "--half", "all", "--jobs", "2",
    ]  # fmt: skip
    study = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    children: set[int] = set()
    while len(_busy(children)) < 2:
        assert study.poll() is None, "it ended before it could be interrupted"
        time.sleep(0.05)
        children |= _children(study.pid)
    os.kill(_busy(children)[0] if is_worker else study.pid, number)
    _, error = study.communicate()
    ends = time.monotonic() + WAIT_S
    while (left := {child for child in children if _is_alive(child)}) and time.monotonic() < ends:
        time.sleep(0.05)
    return study.returncode, error, left


def _children(parent: int) -> set[int]:
    return set(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))


def _busy(children: set[int]) -> list[int]:
    """Return the processes that have worked for more than half a second."""
    busy = []
    for child in children:
        with suppress(OSError):
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            if int(fields[11]) / os.sysconf("SC_CLK_TCK") > 0.5:
                busy.append(child)
    return busy


def _is_alive(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
