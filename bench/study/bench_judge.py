"""What a small model foresees of the next turn, given what each method keeps of the history.

    python -m bench.study.bench_judge MODEL [--half test] [--method NAME ...] [--jobs 2] [--cache DIR]

Needs RECAP_CORPUS and the extra proxy; MODEL is a folder, as `recap proxy install --full` leaves one.
Retention 0.1; sessions count as in the study, once and in one half. Rows go to
results/judge_<half>.json. See recap/study/judge.py for what is measured.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path
from typing import Any

from bench.measured import keep, where
from recap.config import Settings
from recap.study.files import listed
from recap.study.judge import judge_of
from recap.study.judging import judged
from recap.study.runs import Found, distinct, looked_at

METHODS = ("none", "random", "recency", "paper", "coverage", "oracle-id-exec", "full-history")
RESULTS = Path(__file__).parents[1] / "results"


def rows(path: Path, methods: tuple[str, ...], folder: str, cache: str) -> list[dict[str, Any]]:
    """Return a row for each judged transition and method of a session."""
    from recap.errors import RecapError

    settings = Settings(retention="0.1")
    try:
        return [row._asdict() for row in judged(path, methods, settings, judge_of(folder, cache))]
    except RecapError as err:
        print(f"{path.name}: {err}", flush=True)
        return []


def main() -> None:
    """Judge, print means and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--half", choices=("dev", "test"), default="test")
    parser.add_argument("--method", nargs="*", default=METHODS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cache", default="")
    args = parser.parse_args()
    corpus = Path(os.environ["RECAP_CORPUS"])
    seen = map(looked_at, listed([corpus]).files.items())
    counted, _ = distinct(one for one in seen if isinstance(one, Found))
    mine = sorted((one for one in counted if one.half == args.half), key=lambda one: -one.size)
    found: list[dict[str, Any]] = []
    start = time.perf_counter()
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        running = [
            pool.submit(rows, one.path, tuple(args.method), args.model, args.cache) for one in mine
        ]
        for done, future in enumerate(running, 1):
            found += future.result()
            print(f"{done}/{len(running)} {time.perf_counter() - start:.0f} s", flush=True)
    ordered = sorted(found, key=itemgetter("key", "turn", "method"))
    for method in args.method:
        nll = [row["nll"] for row in ordered if row["method"] == method]
        if nll:
            print(f"{method:24} n={len(nll):4} mean nll {sum(nll) / len(nll):.4f}")
    keep(
        RESULTS / f"judge_{args.half}.json",
        ordered,
        where("torch", "transformers", model=Path(args.model).name),
    )


if __name__ == "__main__":
    main()
