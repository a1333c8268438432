"""What snapshots, branches and the tree cost, beside the same bytes copied, hashed and compressed.

    python -m bench.cmv.bench_versions LARGE.jsonl [--runs 5] [--snapshots 1000] [-o results/versions.json]

``LARGE.jsonl`` is written by ``gen_large.py`` of the shared cases. Each figure is the least of several
runs, processor seconds and wall seconds; the peer runs in turn with ours. The tree is a process of its
own, and what the same command takes on an empty store is taken off.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measured import keep, where
from recap.cmv.branch import Wish, branch
from recap.cmv.homes import Homes
from recap.cmv.options import TrimOptions
from recap.cmv.restoring import restore
from recap.cmv.snapshot import Labels, look, take
from recap.store import BranchRow, SnapshotRow, Store

if TYPE_CHECKING:
    from collections.abc import Callable

PIECE = 64 << 10
LEVEL = 1


def peer(source: Path, folder: Path) -> None:
    """Copy a file, hash it, and compress it in pieces: what a snapshot cannot do without."""
    shutil.copyfile(source, folder / "copy")
    whole = hashlib.sha256()
    with source.open("rb") as stream, (folder / "packed").open("wb") as out:
        while piece := stream.read(PIECE):
            whole.update(piece)
            out.write(zlib.compress(piece, LEVEL))
    for name in ("copy", "packed"):
        (folder / name).unlink()


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return processor seconds and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def versions(source: Path, runs: int, folder: Path) -> dict[str, Any]:
    """Return the least seconds of each step over stores of their own."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    stored = 0
    for run in range(runs):
        home = folder / str(run)
        homes = Homes(home, {})
        with Store.open(home / "store") as store:
            found["peer"].append(timed(lambda: peer(source, folder)))
            found["snapshot"].append(
                timed(lambda store=store: take(store, look(source), Labels(name="one")))
            )
            (row,) = store.history.snapshots()
            for name, options in (("branch", None), ("branch_trim", TrimOptions(yes=True))):
                wish = Wish(trim=options, project=home)
                found[name].append(
                    timed(lambda s=store, r=row, w=wish, h=homes: branch(s, r, w, h))
                )
            found["restore"].append(
                timed(lambda s=store, r=row, h=home: restore(s, r, h / "back.jsonl"))
            )
            found["snapshot_again"].append(
                timed(lambda store=store: take(store, look(source), Labels(name="two")))
            )
        stored = sum(each.stat().st_size for each in (home / "store").glob("recap.db*"))
        shutil.rmtree(home)
    size = source.stat().st_size
    least = {
        name: {
            kind: round(min(each[at] for each in seconds), 3)
            for at, kind in enumerate(("cpu_s", "wall_s"))
        }
        for name, seconds in found.items()
    }
    ratios = {
        name: round(value["cpu_s"] / least["peer"]["cpu_s"], 2) for name, value in least.items()
    }
    megabytes = {"megabytes": round(size / 1e6, 1), "stored_megabytes": round(stored / 1e6, 1)}
    return {**megabytes, "runs": runs, "least": least, "cpu_beside_peer": ratios}


def filled(folder: Path, snapshots: int) -> None:
    """Make a store with many snapshots, a branch of each, and chains of three."""
    numbers = count()
    with Store.open(folder) as store:
        chain = store.history.put_chain(b'{"type":"mode"}\n')
        parent = None
        for number in range(snapshots):
            id = hashlib.sha256(b"%d" % next(numbers)).hexdigest()[:32]
            row = SnapshotRow(
                id=id, name=f"snapshot-{number}", root=chain.root, sha256=chain.sha256,
                size=chain.size, lines=1, agent="claude-code", session=f"session-{number // 3}",
                project="/srv/app", versions=("2.1.197",), tags=("auto",),
                messages=(("user", number), ("assistant", number)),
                parent=parent if number % 3 else None,
            )  # fmt: skip
            made = BranchRow(id=id[::-1], snapshot=id, session=f"made-{number}", name=f"b{number}")
            parent = store.history.add_snapshot(row, branch=made).id


def command_seconds(runs: int, *words: str) -> float:
    """Return the least processor seconds of a command."""
    code = "from recap.cli import main; main()"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", code, *words],
            check=True, stdout=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def trees(folder: Path, snapshots: int, runs: int) -> dict[str, Any]:
    """Return processor seconds of readers above what they take on an empty store."""
    filled(folder / "full", snapshots)
    Store.open(folder / "empty").close()
    rows: dict[str, Any] = {"snapshots": snapshots, "branches": snapshots, "bar_s": 0.15}
    for name, words in (("tree", ["tree"]), ("tree_flat", ["tree", "--flat"])):
        empty = command_seconds(runs, *words, "--store", str(folder / "empty"))
        full = command_seconds(runs, *words, "--store", str(folder / "full"))
        rows[name] = {"start_s": round(empty, 3), "work_s": round(full - empty, 3)}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("large", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--snapshots", type=int, default=1000)
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.large.parent) as name:
        folder = Path(name)
        rows = [
            {"what": "session", **versions(given.large, given.runs, folder)},
            {"what": "tree", **trees(folder, given.snapshots, max(given.runs, 7))},
        ]
    measured = where("msgspec", load=os.getloadavg()[0])
    print(json.dumps({"rows": rows, "where": measured}, indent=1))
    if given.out:
        keep(given.out, rows, measured)


if __name__ == "__main__":
    main()
