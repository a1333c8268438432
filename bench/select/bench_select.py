"""Time of one selection on a warm table, by policy and number of blocks.

    pytest bench/select -o python_files='bench_*.py' -o python_functions='bench_*'
    python -m bench.select.bench_select            # the sweep to 100,000 blocks, written to results

Processor time of one thread, least of several runs, at retention 0.1. Rendering comes on top.
"""

from __future__ import annotations

import gc
import json
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bench.conftest import commit, version_of
from bench.select.synthetic import Session, synthetic_session
from recap.select import Request, Selection, select

if TYPE_CHECKING:
    from collections.abc import Sequence

POLICIES = ("coverage", "paper", "recency", "bm25", "random")
SIZES = (1_000, 3_162, 10_000, 31_623, 100_000)
LIMIT_MS = {1_000: 5.0, 10_000: 80.0}
SLOPE_LIMIT = 1.15
RESULT = Path(__file__).parents[1] / "results" / "select.json"


def run(session: Session, policy: str) -> Selection:
    """Select once, as the request path does."""
    request = Request(session.request, b"bench")
    return select(session.graph, session.table, request, policy=policy)


@pytest.fixture(scope="module", params=[1_000, 10_000])
def session(request: pytest.FixtureRequest) -> Session:
    return synthetic_session(request.param)


@pytest.mark.parametrize("policy", POLICIES)
def bench_select(benchmark: Any, session: Session, policy: str) -> None:
    selection = benchmark(run, session, policy)
    benchmark.extra_info.update(shape(session, selection))


def bench_decisions(benchmark: Any, session: Session) -> None:
    log = benchmark(run(session, "coverage").decisions)
    assert len(log) == len(session.table)


def shape(session: Session, selection: Selection) -> dict[str, int]:
    """Return what the time grows with."""
    return {
        "blocks": len(session.table),
        "entries": len(session.table.index.terms),
        "identifiers": session.table.index.size,
        "edges": len(session.graph.source),
        "kept": int(selection.is_kept.sum()),
    }


def least_ms(session: Session, policy: str, runs: int) -> float:
    """Return the least processor time of several runs, without garbage collection in between."""
    times = []
    gc.collect()
    gc.disable()
    for _ in range(runs):
        start = time.process_time()
        run(session, policy)
        times.append(time.process_time() - start)
    gc.enable()
    return min(times) * 1e3


def sweep(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Return a row per size and policy."""
    rows = []
    for size in sizes:
        session = synthetic_session(size)
        runs = max(5, 20_000 // size)
        for policy in POLICIES:
            facts = shape(session, run(session, policy))
            rows.append({"policy": policy, "ms": least_ms(session, policy, runs), **facts})
    return rows


def slope(rows: Sequence[dict[str, Any]], policy: str) -> float:
    """Return the exponent of the power law through a policy's rows."""
    points = [(row["blocks"], row["ms"]) for row in rows if row["policy"] == policy]
    blocks, ms = np.log(np.array(points)).T
    return float(np.polyfit(blocks, ms, 1)[0])


def main() -> int:
    """Print and store the sweep; 1 when a limit is broken."""
    rows = sweep(SIZES)
    broken = False
    print(f"{'ms':>10}" + "".join(f"{size:>10,}" for size in SIZES) + f"{'slope':>8}")
    for policy in POLICIES:
        mine = [row for row in rows if row["policy"] == policy]
        exponent = slope(rows, policy)
        print(f"{policy:>10}" + "".join(f"{r['ms']:10.2f}" for r in mine) + f"{exponent:8.2f}")
        broken |= exponent > SLOPE_LIMIT
        broken |= any(row["ms"] > LIMIT_MS.get(row["blocks"], np.inf) for row in mine)
    facts = {
        "commit": commit(),
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numpy": version_of("numpy"),
        "slope": {policy: slope(rows, policy) for policy in POLICIES},
        "rows": rows,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"written to {RESULT}; limits {'BROKEN' if broken else 'kept'}")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
