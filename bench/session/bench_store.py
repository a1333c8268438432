"""Cost of storing: a graph of 20 KB saved and loaded, against bare sqlite3 doing the same.

    pytest bench/session -o python_files='bench_*.py' -o python_functions='bench_*'
    python -m bench.session.bench_store            # all rows, written to results/store.json

Processor time of the whole process, writer thread included, median of many calls; store and bare
sqlite3 take turns in one loop, so that the ratio holds on a busy computer.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench.conftest import commit
from recap.store import SessionRow, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GRAPH_BYTES = 20_000
SESSIONS = 2_000
CALLS = 400
TENANT = b"t" * 16
RESULT = Path(__file__).parents[1] / "results" / "store.json"
UPSERT = (
    "INSERT INTO sessions VALUES (?, ?, ?, ?, ?) ON CONFLICT (tenant, id) DO UPDATE "
    "SET rev = excluded.rev, updated = excluded.updated, graph = excluded.graph"
)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


class Bare:
    """The same upsert and read with nothing around them."""

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self.connection.execute(
            "CREATE TABLE sessions (tenant BLOB, id BLOB, rev INTEGER, updated REAL, graph BLOB, "
            "PRIMARY KEY (tenant, id))"
        )

    def save(self, number: int, rev: int, graph: bytes) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute(UPSERT, (TENANT, key(number), rev, time.time(), graph))
        self.connection.execute("COMMIT")

    def load(self, number: int) -> Any:
        query = "SELECT * FROM sessions WHERE tenant = ? AND id = ?"
        return self.connection.execute(query, (TENANT, key(number))).fetchone()


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return processor time and wall time of a call in milliseconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return (time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3


def quantiles(values: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(values, n=10)
    return {"p20": cuts[1], "p50": statistics.median(values), "p80": cuts[7]}


def saves(store: Store, bare: Bare, *, durable: bool) -> dict[str, Any]:
    """Return the row of one way to save."""
    draw = random.Random(1)
    rows = [store.save_session(SessionRow(tenant=TENANT, id=key(n))) for n in range(50)]
    mine, theirs = [], []
    for step in range(CALLS):
        at, graph = step % 50, draw.randbytes(GRAPH_BYTES)
        row = SessionRow(tenant=TENANT, id=key(at), rev=rows[at].rev, graph=graph)

        def save(at: int = at, row: SessionRow = row) -> None:
            rows[at] = store.save_session(row, durable=durable)

        mine.append(timed(save))
        theirs.append(timed(lambda at=at, row=row: bare.save(at, row.rev, row.graph)))
    return comparison(f"save, {'FULL' if durable else 'NORMAL'}", mine, theirs)


def loads(store: Store, bare: Bare) -> dict[str, Any]:
    """Return the row of loading."""
    mine, theirs = [], []
    for step in range(CALLS):
        mine.append(timed(lambda n=step % 50: store.load_session(TENANT, key(n))))
        theirs.append(timed(lambda n=step % 50: bare.load(n)))
    return comparison("load", mine, theirs)


def comparison(
    what: str, mine: list[tuple[float, float]], theirs: list[tuple[float, float]]
) -> dict[str, Any]:
    cpu, bare_cpu = (quantiles([one[0] for one in pairs]) for pairs in (mine, theirs))
    wall = quantiles([one[1] for one in mine])
    return {
        "what": what,
        "graph_bytes": GRAPH_BYTES,
        "cpu_ms": cpu,
        "bare_cpu_ms": bare_cpu,
        "cpu_ratio": cpu["p50"] / bare_cpu["p50"],
        "wall_ms": wall,
        "wall_ratio": wall["p50"] / quantiles([one[1] for one in theirs])["p50"],
        "saves_or_loads_per_second": 1e3 / wall["p50"],
    }


def memory_kib(name: str) -> int:
    """Return a figure of this process's memory; that of getrusage survives exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def full_store(folder: Path) -> dict[str, Any]:
    """Return cost and memory with as many sessions as a tenant may have."""
    start = memory_kib("VmRSS")
    draw = random.Random(2)
    with Store.open(folder) as store:
        for number in range(SESSIONS):
            row = SessionRow(tenant=TENANT, id=key(number), graph=draw.randbytes(GRAPH_BYTES))
            store.save_session(row, durable=False)
        one_more = [
            timed(lambda n=n: store.save_session(SessionRow(tenant=TENANT, id=key(n))))
            for n in range(SESSIONS, SESSIONS + 50)
        ]
        listed = [timed(lambda: store.sessions(TENANT))[0] for _ in range(20)]
        peak = memory_kib("VmHWM")
    opened = [timed(lambda: Store.open(folder).close())[0] for _ in range(20)]
    return {
        "what": f"{SESSIONS} sessions",
        "graph_bytes": GRAPH_BYTES,
        "database_bytes": (folder / "recap.db").stat().st_size,
        "peak_growth_kib": peak - start,
        "save_that_evicts_cpu_ms": quantiles([cpu for cpu, _ in one_more])["p50"],
        "list_cpu_ms": quantiles(listed)["p50"],
        "open_cpu_ms": quantiles(opened)["p50"],
    }


def full_store_apart() -> dict[str, Any]:
    """Return ``full_store`` of a process of its own: its memory is nobody else's."""
    code = (
        "import json, pathlib, sys; from bench.session import bench_store as b; "
        "print(json.dumps(b.full_store(pathlib.Path(sys.argv[1]) / 's')))"
    )
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
        )
    return dict(json.loads(done.stdout))


def transcripts(store: Store) -> dict[str, Any]:
    """Return the cost of a transcript of 20 MB against hashing and compressing it."""
    draw = random.Random(3)
    words = [draw.randbytes(4).hex() for _ in range(5000)]
    lines = [
        (json.dumps({"text": " ".join(draw.choices(words, k=250))}) + "\n").encode()
        for _ in range(9000)
    ]
    data = b"".join(lines)

    def plain() -> None:
        for start in range(0, len(data), 1 << 16):
            piece = data[start : start + (1 << 16)]
            hashlib.sha256(zlib.compress(piece, 3)).digest()

    first, _ = timed(lambda: store.history.put_chain(lines))
    again, _ = timed(lambda: store.history.put_chain([*lines, b"new\n"]))
    root = store.history.put_chain(lines).root
    read, _ = timed(lambda: store.history.read_chain(root))
    bare, _ = timed(plain)
    return {
        "what": "transcript",
        "bytes": len(data),
        "put_cpu_ms": first,
        "put_grown_cpu_ms": again,
        "read_cpu_ms": read,
        "hash_and_compress_cpu_ms": bare,
        "put_ratio": first / bare,
    }


def measure() -> list[dict[str, Any]]:
    """Return all rows."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for durable in (False, True):
            bare = Bare(Path(folder) / f"bare-{durable}.db", durable=durable)
            with Store.open(Path(folder) / f"s-{durable}") as store, closing(bare.connection):
                rows.append(saves(store, bare, durable=durable))
                if not durable:
                    rows.append(loads(store, bare))
        with Store.open(Path(folder) / "history") as store:
            rows.append(transcripts(store))
    return [*rows, full_store_apart()]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s") as opened:
        yield opened


@pytest.mark.parametrize("durable", [False, True])
def bench_save(benchmark: Any, store: Store, durable: bool) -> None:
    graph = random.Random(1).randbytes(GRAPH_BYTES)
    row = [store.save_session(SessionRow(tenant=TENANT, id=key(1)))]

    def save() -> None:
        new = SessionRow(tenant=TENANT, id=key(1), rev=row[0].rev, graph=graph)
        row[0] = store.save_session(new, durable=durable)

    benchmark(save)
    benchmark.extra_info.update(graph_bytes=GRAPH_BYTES, durable=durable)


def bench_load(benchmark: Any, store: Store) -> None:
    graph = random.Random(1).randbytes(GRAPH_BYTES)
    saved = store.save_session(SessionRow(tenant=TENANT, id=key(1), graph=graph))
    assert benchmark(store.load_session, TENANT, key(1)) == saved


def main() -> int:
    """Print and store the rows."""
    rows = measure()
    facts = {
        "commit": commit(),
        "machine": platform.processor() or platform.machine(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "platform": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "rows": rows,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(facts, indent=1) + "\n")
    print(json.dumps(facts, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
