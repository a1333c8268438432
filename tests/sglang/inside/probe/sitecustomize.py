"""Loaded by every process of a server under test: on SIGUSR2 a worker writes what its recorder holds."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

FILE = os.environ.get("PROBE_FILE", "")


def write(*_: object) -> None:
    from recap.sglang.worker import recorder

    held = recorder()
    if held is not None:
        made = Path(f"{FILE}.new")
        made.write_text(json.dumps({"requests": len(held), "free": held._tap.free}))
        made.rename(FILE)


if FILE and "spawn_main" in " ".join(sys.orig_argv):
    signal.signal(signal.SIGUSR2, write)
