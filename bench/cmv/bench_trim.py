"""How fast a trim is beside a plain loop over the same lines, what it holds, and what it takes off.

    python bench/cmv/bench_trim.py LARGE.jsonl [--runs 5] [--sessions FOLDER] [-o results/trim.json]

``LARGE.jsonl`` is written by ``gen_large.py`` of the shared cases. The plain loop reads binary lines
and parses and writes each with orjson; runs alternate, in processes of their own, and ratios are
those of the medians. CPU seconds stand beside wall seconds: on a computer that others use they say
more. Imports count; bytecode is there, as it is where a package was installed. ``python`` is the trim
without its native module. Memory is measured of the large log and of many short lines.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.conftest import commit

PLAIN = """
import orjson, sys
with open(sys.argv[1], "rb") as source, open(sys.argv[2], "wb") as out:
    for line in source:
        out.write(orjson.dumps(orjson.loads(line)) + b"\\n")
"""

TRIM = """
import sys
from pathlib import Path
from recap.cmv.options import TrimOptions
from recap.cmv.trim import trim
before = memory()
trim(Path(sys.argv[1]), Path(sys.argv[2]), TrimOptions(yes=True))
print(before, "numpy" in sys.modules, "torch" in sys.modules)
"""

PYTHON = """
import sys
sys.modules["recap.cmv._lines"] = None
"""

SHORT_LINES = 400_000

AROUND = """
import resource, threading, time
def memory():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
peak = 0
def watch():
    global peak
    while True:
        peak = max(peak, memory())
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
"""

MEASURE = """
import time
begun = time.perf_counter(), time.process_time()
{code}
ended = time.perf_counter(), time.process_time()
print(ended[0] - begun[0], ended[1] - begun[1], {peak})
"""


def measured(code: str, source: Path, out: Path, *, watched: bool = False) -> list[str]:
    """Run code in a process of its own; return what it printed."""
    text = MEASURE.format(code=code.strip(), peak="peak" if watched else 0)
    head = AROUND if watched else "def memory():\n    return 0\n"
    names = set(os.environ) - {"PYTHONDONTWRITEBYTECODE"}
    env = {name: os.environ[name] for name in names} | {
        "PYTHONPYCACHEPREFIX": str(out.parent / "bytecode")
    }
    done = subprocess.run(
        [sys.executable, "-c", head + text, str(source), str(out)],
        check=True, capture_output=True, text=True, env=env,
    )  # fmt: skip
    return done.stdout.split()


def speed(source: Path, runs: int, folder: Path) -> dict[str, Any]:
    """Return the speed of each loop, and the ratio of the medians of its seconds to the plain loop's."""
    out = folder / "out.jsonl"
    codes = {"plain": PLAIN, "trim": TRIM, "python": PYTHON + TRIM}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in codes}
    for run in range(runs + 1):
        for name, code in codes.items():
            *_, wall, cpu, _peak = measured(code, source, out)
            if run:  # the first one writes bytecode
                seconds[name].append((float(wall), float(cpu)))
    size = source.stat().st_size / 1e6
    row: dict[str, Any] = {"megabytes": round(size, 1), "runs": runs}
    for at, kind in enumerate(("wall", "cpu")):
        medians = {name: statistics.median(each[at] for each in seconds[name]) for name in seconds}
        row[kind] = {f"{name}_mb_s": round(size / value, 1) for name, value in medians.items()}
        row[kind]["ratio"] = round(medians["plain"] / medians["trim"], 3)
        row[kind]["python_ratio"] = round(medians["plain"] / medians["python"], 3)
    return row


def memory(source: Path, folder: Path) -> dict[str, Any]:
    """Return the peak of anonymous memory above start-up, and the bar."""
    before, numpy, torch, *_, peak = measured(TRIM, source, folder / "out.jsonl", watched=True)
    *_, without = measured(PYTHON + TRIM, source, folder / "out.jsonl", watched=True)
    with source.open("rb") as stream:
        lines = sum(1 for _ in stream)
    return {
        "start_kb": int(before),
        "peak_kb": int(peak),
        "above_start_kb": int(peak) - int(before),
        "python_above_start_kb": int(without) - int(before),
        "bar_kb": 15_000 + 64 * lines // 1000,
        "lines": lines,
        "loaded": {"numpy": numpy == "True", "torch": torch == "True"},
    }


def short_lines(path: Path) -> Path:
    """Write a session of many short lines, asked and answered in turn; return its path."""
    common = {"isSidechain": False, "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z"}
    asked = {"type": "user", "message": {"role": "user", "content": "go on"}}
    usage = {"input_tokens": 3, "output_tokens": 20}
    text = [{"type": "text", "text": "done"}]
    with path.open("w") as out:
        for at in range(SHORT_LINES):
            message = {"id": f"msg_{at:016x}", "role": "assistant", "content": text, "usage": usage}
            said = {"type": "assistant", "message": message} if at % 2 else asked
            parent = f"{at - 1:036x}" if at else None
            line = {"parentUuid": parent, **common, **said, "uuid": f"{at:036x}"}
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
    return path


def reductions(folder: Path) -> dict[str, Any]:
    """Return what goes of each session: of what is sent, and of the file's bytes."""
    from recap.cmv.options import TrimOptions
    from recap.cmv.trim import trim

    plans = {
        "defaults": TrimOptions(yes=True),
        "keep_last_0": TrimOptions(keep_last=0, yes=True),
        "keep_last_0_stub_requests": TrimOptions(keep_last=0, requests="writes", yes=True),
    }
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise SystemExit(f"no *.jsonl in {folder}: name a folder of Claude Code sessions")
    sessions: dict[str, Any] = {}
    for path in paths:
        reports = {name: trim(path, None, plan) for name, plan in plans.items()}
        sessions[path.stem] = {
            name: {
                "sent": round(report.reduction, 4),
                "file": round(report.file_reduction, 4),
                "sent_chars": [report.active_chars_before, report.active_chars_after],
                "bytes": [report.bytes_in, report.bytes_out],
            }
            for name, report in reports.items()
        }
    means = {
        name: {
            kind: round(statistics.mean(each[name][kind] for each in sessions.values()), 4)
            for kind in ("sent", "file")
        }
        for name in plans
    }
    return {"mean": means, "sessions": sessions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("large", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sessions", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.large.parent) as name:
        row: dict[str, Any] = {
            "commit": commit(),
            "speed": speed(given.large, given.runs, Path(name)),
            "memory": memory(given.large, Path(name)),
            "memory_short_lines": memory(short_lines(Path(name) / "short.jsonl"), Path(name)),
        }
    if given.sessions:
        row["reduction"] = reductions(given.sessions)
    text = json.dumps(row, indent=2)
    if given.out:
        given.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
