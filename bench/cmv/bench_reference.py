"""What the published implementation of CMV takes off the same sessions, and what it loses of them.

    python -m bench.cmv.bench_reference TRIMMER.js FOLDER [LARGE.jsonl] [--runs 5] [-o results/reference.json]

``TRIMMER.js`` is ``dist/core/trimmer.js`` of github.com/CosmoNaught/claude-code-cmv (2.1.1, Apache-2.0; ``npm ci
--ignore-scripts && npx tsc`` makes it), run by node. ``FOLDER`` holds sessions of Claude Code. All results are
read by Recap's own reader and counted alike: texts and requests of the live context, characters that are sent.
``ours`` is a trim with ``--keep-last 0``, as the reference keeps no newest entries either; ``ours_stub_requests``
stubs what writing tools were to write as well, as it does. Of ``LARGE.jsonl`` both are timed in turn, by the clock
and by CPU seconds, start of the program included; the reference checks nothing of what it writes.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from bench.conftest import commit
from recap.cmv.options import TrimOptions
from recap.cmv.trim import trim
from recap.transcript import claude_code
from recap.transcript.sources import open_source

NODE = "import(process.argv[1]).then(m => m.trimJsonl(process.argv[2], process.argv[3], {threshold: 500}))"
OURS = (
    "import sys; from pathlib import Path; from recap.cmv.options import TrimOptions\n"
    "from recap.cmv.trim import trim\n"
    "trim(Path(sys.argv[1]), Path(sys.argv[2]), TrimOptions(keep_last=0, yes=True))"
)
PLANS = {
    "ours": TrimOptions(keep_last=0, yes=True),
    "ours_stub_requests": TrimOptions(keep_last=0, requests="writes", yes=True),
}


class Sent:
    """What a client would send of a session."""

    def __init__(self, path: Path) -> None:
        messages = [each for each in claude_code.read(open_source(path)).messages if each.is_active]
        parts = [(each.role, part) for each in messages for part in each.parts]
        self.texts = Counter((role, part.digest) for role, part in parts if part.kind == "text")
        self.calls = Counter(part.digest for _, part in parts if part.kind == "call")
        self.chars = sum(part.cost_chars for _, part in parts)
        self.bytes = path.stat().st_size


def compared(before: Sent, after: Sent) -> dict[str, Any]:
    """Return what goes, as shares of what is sent and of the file, and what is not as it was."""
    return {
        "sent": round(1 - after.chars / before.chars, 4) if before.chars else 0.0,
        "file": round(1 - after.bytes / before.bytes, 4),
        "texts_lost": (before.texts - after.texts).total(),
        "texts_invented": (after.texts - before.texts).total(),
        "calls_changed_or_lost": (before.calls - after.calls).total(),
    }


def by_reference(trimmer: Path, source: Path, out: Path) -> None:
    """Trim a session with the reference."""
    command = ["node", "-e", NODE, str(trimmer.resolve()), str(source), str(out)]
    subprocess.run(command, check=True, capture_output=True)


def of_sessions(trimmer: Path, folder: Path) -> dict[str, Any]:
    """Return what each does to each session, the sums, and means of the shares."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise SystemExit(f"no *.jsonl in {folder}: name a folder of Claude Code sessions")
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "out.jsonl"
        for path in paths:
            before = Sent(path)
            by_reference(trimmer, path, out)
            rows[path.stem] = {"reference": compared(before, Sent(out))}
            for plan, options in PLANS.items():
                trim(path, out, options)
                rows[path.stem][plan] = compared(before, Sent(out))
    whole = [each for each in rows.values() if not each["reference"]["texts_lost"]]
    names = ("reference", *PLANS)
    shares, counts = ("sent", "file"), ("texts_lost", "texts_invented", "calls_changed_or_lost")
    return {
        "sessions": len(rows),
        "sessions_that_the_reference_keeps_whole": len(whole),
        "mean_of_these": {
            name: {key: round(statistics.mean(each[name][key] for each in whole), 4) for key in shares}
            for name in names
        },
        "sums_of_all": {
            name: {key: sum(each[name][key] for each in rows.values()) for key in counts}
            for name in names
        },
        "rows": rows,
    }  # fmt: skip


def speed(trimmer: Path, large: Path, runs: int) -> dict[str, Any]:
    """Return megabytes a second of both, and ratios of the medians of their seconds."""
    seconds: dict[str, list[tuple[float, float]]] = {"reference": [], "ours": []}
    with tempfile.TemporaryDirectory(dir=large.parent) as name:
        out = str(Path(name) / "out.jsonl")
        commands = {
            "reference": ["node", "-e", NODE, str(trimmer.resolve()), str(large), out],
            "ours": [sys.executable, "-c", OURS, str(large), out],
        }
        for run in range(runs + 1):
            for who, command in commands.items():
                before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                if run:  # the first one warms the files
                    seconds[who].append((time.perf_counter() - wall, cpu))
    size = large.stat().st_size / 1e6
    row: dict[str, Any] = {"megabytes": round(size, 1), "runs": runs}
    for at, kind in enumerate(("wall", "cpu")):
        medians = {who: statistics.median(each[at] for each in seconds[who]) for who in seconds}
        row[kind] = {f"{who}_mb_s": round(size / value, 1) for who, value in medians.items()}
        row[kind]["ratio"] = round(medians["reference"] / medians["ours"], 2)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trimmer", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("large", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args()
    node = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout
    row = {
        "commit": commit(),
        "reference": "claude-code-cmv 2.1.1",
        "node": node.strip(),
        **of_sessions(given.trimmer, given.folder),
    }
    if given.large:
        row["speed"] = speed(given.trimmer, given.large, given.runs)
    text = json.dumps(row, indent=2)
    if given.out:
        given.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
