"""Foreign methods on real sessions, beside recency and the default: scores, realised size, time.

    RECAP_CORPUS=DIR python -m bench.study.bench_baselines [METHOD ...] [--transitions N] [--most CHARS]

Takes one transition of each session of the dev half, the middle one of those whose history costs at
most CHARS, and prints a line a method; METHOD is a name as the study takes it, with options after a
colon; --keep writes bench/results/baselines.json. Run it in an
environment with the packages of docs/baselines.md; methods that cannot run are left out and named.
Seconds are processor time of this thread and of child processes, and waiting for an endpoint.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import islice
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from bench.measured import keep, where
from recap.baselines.table import baseline_names
from recap.config import Settings
from recap.errors import InputError, MethodError
from recap.study.catalogue import methods_of
from recap.study.evaluate import METRICS, needs_of, scores_of, task_of
from recap.study.files import session_files
from recap.study.transitions import Reader, is_test, transitions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap.baselines.method import Method
    from recap.study.transitions import Transition

RESULT = Path(__file__).parents[1] / "results" / "baselines.json"
BESIDE = ("recency", "coverage")


def runnable(names: Sequence[str]) -> Iterator[Method]:
    """Yield the recipes beside which others are shown, then those of the names that can run."""
    for method in methods_of((*BESIDE, *names)):
        if missing := method.missing():
            print(f"{method.name} is left out: {missing}")
        else:
            yield method


def middle_transitions(corpus: Path, settings: Settings, most: int) -> Iterator[Transition]:
    """Yield the middle transition of each dev session, of those with a history of at most ``most``."""
    for path in session_files(corpus):
        if is_test(path):
            continue
        try:
            found = [
                each
                for each in transitions(path, settings)
                if each.known.table.active_chars <= most
            ]
        except InputError:
            continue
        if found:
            yield found[len(found) // 2]


def rows_of(
    transition: Transition, methods: Sequence[Method], settings: Settings
) -> list[dict[str, Any]]:
    """Return a row for each method."""
    reader, task = Reader(), task_of(transition, settings)
    held = [reader.parts(task.parts(block)) for block in range(len(task.table))]
    needs = needs_of(transition, held, reader)
    rows = []
    for method in methods:
        start, began = time.thread_time(), time.monotonic()
        try:
            context = method.shorten(task)
        except MethodError as err:
            print(f"{method.name} failed at {transition.session}: {err}")
            continue
        seconds = time.thread_time() - start + context.other_seconds
        row = {"method": method.name, "session": transition.session, "turn": transition.turn}
        row |= {"history_chars": task.table.active_chars, "budget_chars": task.budget_chars}
        row |= {"protected_chars": task.protected_chars, "cost_chars": context.cost_chars}
        row |= {"seconds": seconds, "wall_seconds": time.monotonic() - began}
        row |= {"model_calls": context.model_calls, "input_tokens": context.input_tokens}
        row |= {"output_tokens": context.output_tokens, "memory_bytes": context.memory_bytes}
        rows.append(row | scores_of(context, needs, held))
    return rows


def line(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return the line of a method: mean scores and sizes, medians of times."""

    def share(metric: str) -> str:
        known = [row[metric] for row in rows if row[metric] is not None]
        return f"{mean(known):.3f}" if known else "-"

    sizes = [row["cost_chars"] / row["budget_chars"] for row in rows]
    allowed = [max(1, row["protected_chars"] / row["budget_chars"]) for row in rows]
    cells = [name, str(len(rows)), *map(share, METRICS), f"{mean(sizes):.2f}"]
    cells += [f"{mean(s / a for s, a in zip(sizes, allowed, strict=True)):.2f}"]
    cells += [f"{median(row['seconds'] for row in rows):.3f}"]
    cells += [
        f"{mean(row[key] for row in rows):.0f}"
        for key in ("input_tokens", "output_tokens", "memory_bytes")
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, print, and write on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", default=baseline_names())
    parser.add_argument("--transitions", type=int, default=12)
    parser.add_argument("--most", type=int, default=400_000)
    parser.add_argument("--retention", default="0.1")
    parser.add_argument("--keep", default="", help="name of the run in the results")
    given = parser.parse_args()
    settings = Settings(retention=given.retention)
    methods = list(runnable(given.methods))
    rows: list[dict[str, Any]] = []
    found = middle_transitions(Path(os.environ["RECAP_CORPUS"]), settings, given.most)
    for transition in islice(found, given.transitions):
        rows += rows_of(transition, methods, settings)
    print(
        "| method | n | "
        + " | ".join(METRICS)
        + " | size / B | size / max(B, P) | s | in | out | bytes |"
    )
    print("|" + "---|" * 12)
    for method in methods:
        print(line(method.name, [row for row in rows if row["method"] == method.name]))
    if given.keep:
        keep(
            RESULT.with_stem(f"{RESULT.stem}_{given.keep}"),
            rows,
            where("litellm", "langchain", retention=given.retention, most_chars=given.most),
        )


if __name__ == "__main__":
    main()
