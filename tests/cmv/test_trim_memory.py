"""Memory of a trim of many short lines, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cmv.logs import agent, said, user

LINES = 300_000

CODE = """
import sys, threading, time
from pathlib import Path
from recap.cmv.options import TrimOptions
from recap.cmv.trim import trim
def memory():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
peak = start = memory()
def watch():
    global peak
    while True:
        peak = max(peak, memory())
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
trim(Path(sys.argv[1]), Path(sys.argv[2]), TrimOptions(yes=True))
print(peak - start, "numpy" in sys.modules, "torch" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_many_short_lines_take_64_bytes_each(tmp_path):
    path = tmp_path / "session.jsonl"
    pair = user("@0", "@1", "go on"), agent("@2", "@0", said("done"))
    asked, answered = (json.dumps(line) + "\n" for line in pair)
    with path.open("w") as out:
        for at in range(LINES // 2):
            out.write(asked.replace("@0", f"u{at}").replace("@1", f"a{at - 1}"))
            out.write(answered.replace("@0", f"u{at}").replace("@2", f"a{at}"))
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(path), str(tmp_path / "out")],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    peak, *loaded = done.stdout.split()
    assert int(peak) <= 15_000 + 64 * LINES // 1000
    assert loaded == ["False", "False"]
