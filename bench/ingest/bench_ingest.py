"""Speed and memory of reading sessions, by format, on made-up files of any size.

    python -m bench.ingest.bench_ingest [--mb 200]     # and the Claude Code logs of RECAP_CORPUS

MB of file a second of processor time for reading, and for reading and segmenting; MB of text a second
for identifiers, of all texts and once more when each token is known, as within a session; and the peak
of anonymous memory while a file is read and segmented. Every number comes from a fresh process, speeds
are the best of several. Files have 20 MB; a Claude Code log of ``--mb`` is measured as well.

A busy computer is slower by any factor: ``json`` is what the standard library decodes in the same
process, in MB/s.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypeAlias

from bench.ingest.sessions import LAYOUTS, write_session
from bench.measured import keep, where

RUNS = 5
MEGABYTE = 1_000_000
FORMAT_MB = 20
LIMITED = "claude-code"
"""The format to which the limits apply."""

LEAST = {"read_segment": 30, "known": 15}
"""MB/s, at least."""

MEMORY_LIMIT_MB, MEMORY_LIMIT_PER_BLOCK = 80, 1000
"""Bytes of a read and segmented file, at most: so many MB, and so many bytes for each block."""

SPEEDS = ("read", "read_segment", "identifiers", "known", "json")
COLUMNS = ("mb", *SPEEDS, "blocks", "peak_mb")
SAMPLE_S = 0.002
RESULT = Path(__file__).parents[1] / "results" / "ingest.json"

Row: TypeAlias = dict[str, float | str]

# The child reads, so that nothing but Recap is in its memory. Memory is looked at from outside: a
# long call into a decoder would keep a thread of its own from running.
TIMED = """
import json, sys
from time import process_time
from recap.blocks.identifiers import identifiers
from recap.blocks.segment import segment
from recap.transcript.formats import open_log

def seconds(work, items):
    start = process_time()
    for item in items:
        work(item)
    return process_time() - start

transcripts = []
read = seconds(lambda path: transcripts.append(open_log(path)), sys.argv[1:])
segmented = seconds(lambda transcript: segment(transcript.messages), transcripts)
texts = [part.text() for t in transcripts for m in t.messages for part in m.parts]
size = sum(len(text.encode("utf-8", "replace")) for text in texts)
names, known = seconds(identifiers, texts), seconds(identifiers, texts)
encoded = [json.dumps(text) for text in texts]
print(json.dumps({
    "read": read, "read_segment": read + segmented, "identifiers": names, "known": known,
    "json": seconds(json.loads, encoded), "text": size, "encoded": sum(map(len, encoded)),
}))
"""
HELD = """
import sys
from recap.blocks.segment import segment
from recap.transcript.formats import open_log
transcripts = [open_log(path) for path in sys.argv[1:]]
print(sum(len(segment(transcript.messages).blocks) for transcript in transcripts))
"""


def speeds(paths: list[Path], runs: int) -> Row:
    """Return the best speeds of several runs in MB/s."""
    megabytes = sum(path.stat().st_size for path in paths) / MEGABYTE
    results = [json.loads(_output(_child(TIMED, paths))) for _ in range(runs)]
    best = {key: min(result[key] for result in results) for key in results[0]}
    sizes = {"read": megabytes, "read_segment": megabytes, "json": best["encoded"] / MEGABYTE}
    text = best["text"] / MEGABYTE
    rates = {key: sizes.get(key, text) / best[key] for key in SPEEDS}
    return {"mb": round(megabytes, 2), **{key: round(rate, 1) for key, rate in rates.items()}}


def memory(paths: list[Path]) -> Row:
    """Return the number of blocks and the peak of anonymous memory in MB."""
    child = _child(HELD, paths)
    status = Path(f"/proc/{child.pid}/status")
    peak = 0
    while child.poll() is None:
        peak = max(peak, _anonymous_bytes(status.read_text()))
        time.sleep(SAMPLE_S)
    return {"blocks": int(_output(child)), "peak_mb": round(peak / MEGABYTE, 1)}


def _anonymous_bytes(status: str) -> int:
    found = [line.split() for line in status.split("\n") if line.startswith("RssAnon:")]
    return int(found[0][1]) * 1024 if found else 0  # none once the process has ended


def _child(code: str, paths: list[Path]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, paths)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _output(child: subprocess.Popen[str]) -> str:
    output, _ = child.communicate()
    if child.returncode:
        raise SystemExit(f"a measured process ended with status {child.returncode}")
    return output


def measure(name: str, paths: list[Path], runs: int = RUNS) -> Row:
    """Print the row of some files and return it."""
    row: Row = {"format": name, **speeds(paths, runs), **memory(paths)}
    limits = _limits(row) if name.startswith(LIMITED) else ""
    print(f"{name:20}" + "".join(f"{row[key]:>13}" for key in COLUMNS), limits, flush=True)
    return row


def _limits(row: Row) -> str:
    """Return the limits a row misses, or that it misses none."""
    peak_limit = MEMORY_LIMIT_MB + float(row["blocks"]) * MEMORY_LIMIT_PER_BLOCK / MEGABYTE
    missed = [f"{key} < {limit}" for key, limit in LEAST.items() if float(row[key]) < limit]
    if float(row["peak_mb"]) > peak_limit:
        missed.append(f"peak_mb > {peak_limit:.1f}")
    return f"  misses {', '.join(missed)}" if missed else "  within limits"


def main() -> None:
    """Print a row for each format and for the large log, and write them to the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=200, help="size of the large Claude Code log")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of which the best counts")
    parser.add_argument("--format", action="append", choices=sorted(LAYOUTS), help="only this one")
    args = parser.parse_args()
    print(
        f"limits of {LIMITED}: {LEAST} MB/s, {MEMORY_LIMIT_MB} MB + {MEMORY_LIMIT_PER_BLOCK} B/block"
    )
    print(f"{'format':20}" + "".join(f"{key:>13}" for key in COLUMNS))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session"
        for name in args.format or LAYOUTS:
            write_session(path, LAYOUTS[name], FORMAT_MB * MEGABYTE)
            rows.append(measure(name, [path], args.runs))
        if args.mb and not args.format:
            write_session(path, LAYOUTS[LIMITED], args.mb * MEGABYTE)
            rows.append(measure(f"{LIMITED} large", [path], min(args.runs, 3)))
    if "RECAP_CORPUS" in os.environ and not args.format:
        logs = (Path(os.environ["RECAP_CORPUS"]) / "sessions" / LIMITED).glob("*.jsonl")
        rows.append(measure(f"{LIMITED} corpus", sorted(logs), args.runs))
    if not args.format:
        keep(RESULT, rows, where("numpy", "msgspec"))


if __name__ == "__main__":
    main()
