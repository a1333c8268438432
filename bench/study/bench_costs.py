"""What each method costs beside what it keeps: one table for all, on real sessions.

    RECAP_CORPUS=DIR python -m bench.study.bench_costs MODEL [--method NAME ...] [--transitions 3]

MODEL is the folder of a causal model, as `recap proxy install --full` leaves one. Takes one transition
of each session of the dev half, whose budget of a tenth leaves a choice and whose whole history, as the
judge is shown it, fits 8,192 tokens: the shortest ones. Compaction is the method alone: the history is
segmented and its graph known, as between turns; processor time, least of two, with that of child
processes. Prefill is processor time of one thread up to the first logits in float32, least of two; for
kv-eviction the choice is a part of it, since it has to read the whole history first, and it runs once.
Memory is what is kept between turns beside the log. Rows go to bench/results/study_costs.json.
"""

from __future__ import annotations

import argparse
import os
import time
from math import floor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from bench.measured import keep, where
from recap.baselines.causal import causal_model
from recap.baselines.kv_eviction import KvEviction
from recap.baselines.method import of_blocks
from recap.baselines.table import baseline_names
from recap.config import Settings
from recap.errors import InputError, MethodError
from recap.study.catalogue import methods_of
from recap.study.evaluate import task_of
from recap.study.files import session_files
from recap.study.judge import Judge, Prompt, is_judged, prompt_of
from recap.study.judging import KV_EVICTION
from recap.study.transitions import is_test, transitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recap.baselines.method import Method, Task
    from recap.study.transitions import Transition

RESULT = Path(__file__).parents[1] / "results" / "study_costs.json"
OURS = ("recency", "paper", "coverage")
SLOW = frozenset(("longllmlingua",))
"""Takes a minute a transition: run where it is named."""

MOST_TOKENS = 8_192
MOST_CHARS = 60_000
RUNS = 2
COLUMNS = (
    "context_tokens", "compaction_ms", "prefill_s", "model_calls", "input_tokens", "output_tokens",
    "memory_bytes",
)  # fmt: skip


class Reader:
    """The model in float32 on one thread, and the judge's tokenizer."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)
        self.judge = Judge(folder)
        self.model = causal_model(folder, torch.float32)
        self.evictor = KvEviction(folder, torch.float32)

    def ids(self, prompt: Prompt) -> list[int]:
        """Return the tokens of context and request."""
        return [token for text in prompt[:2] for token in self.judge.tokens(text)[0]]

    def prefill_s(self, prompt: Prompt) -> float:
        """Return processor seconds up to the first logits."""
        ids = torch.tensor([self.ids(prompt)])

        def work() -> None:
            with torch.inference_mode():
                self.model(ids, use_cache=True, logits_to_keep=1)

        return least_s(work)

    def evicted(self, prompt: Prompt, task: Task) -> dict[str, Any]:
        """Return what KV eviction costs."""
        history, request = (torch.tensor(self.judge.tokens(text)[0]) for text in prompt[:2])
        share = floor(task.settings.beta * len(history))
        before = time.thread_time()
        evicted = self.evictor.read(history, request, share)
        seconds = time.thread_time() - before
        return {
            "context_tokens": evicted.kept[0].shape[1],
            "compaction_ms": 0.0,
            "prefill_s": seconds,
            "model_calls": 0,
            "input_tokens": 0,
            "output_tokens": 0,
            "memory_bytes": evicted.memory_bytes,
        }


def least_s(work: Callable[[], None]) -> float:
    """Return processor seconds of this thread, least of some runs."""
    times = []
    for _ in range(RUNS):
        before = time.thread_time()
        work()
        times.append(time.thread_time() - before)
    return min(times)


def chosen(corpus: Path, reader: Reader, settings: Settings, most: int) -> list[Transition]:
    """Return the shortest transitions that count, one of a session."""
    found: dict[str, tuple[int, Transition]] = {}
    for path in session_files(corpus):
        if is_test(path) or path.stat().st_size > 100 * MOST_CHARS:
            continue
        for tokens, key, transition in _fitting(path, reader, settings):
            if key not in found or tokens < found[key][0]:
                found[key] = tokens, transition
        if len(found) >= 4 * most:  # enough to choose from
            break
    shortest = sorted(found.values(), key=lambda pair: pair[0])
    return [transition for _, transition in shortest[:most]]


def _fitting(
    path: Path, reader: Reader, settings: Settings
) -> Iterator[tuple[int, str, Transition]]:
    try:
        for transition in transitions(path, settings):
            table = transition.known.table
            if table.active_chars > MOST_CHARS:
                return
            task = task_of(transition, settings)
            whole = prompt_of(of_blocks(task, range(len(table))), task, transition.acts)
            tokens = len(reader.ids(whole))
            if is_judged(task) and tokens <= MOST_TOKENS:
                yield tokens, transition.session, transition
    except InputError:
        return


def rows_of(
    transition: Transition, methods: Sequence[Method], reader: Reader, settings: Settings
) -> Iterator[dict[str, Any]]:
    """Yield a row for each method, KV eviction last."""
    task = task_of(transition, settings)
    about = {
        "session": transition.session,
        "turn": transition.turn,
        "history_chars": task.table.active_chars,
        "budget_chars": task.budget_chars,
    }
    for method in methods:
        try:
            context = method.shorten(task)  # what it loads once is loaded
            times = []
            for _ in range(RUNS):
                before = time.thread_time()
                context = method.shorten(task)
                times.append(time.thread_time() - before + context.other_seconds)
        except MethodError as err:
            print(f"{method.name} is left out at {transition.session}: {err}", flush=True)
            continue
        prompt = prompt_of(context, task, transition.acts)
        yield {
            "method": method.name,
            **about,
            "context_tokens": len(reader.judge.tokens(prompt.context)[0]),
            "compaction_ms": 1000 * min(times),
            "prefill_s": reader.prefill_s(prompt),
            "model_calls": context.model_calls,
            "input_tokens": context.input_tokens,
            "output_tokens": context.output_tokens,
            "memory_bytes": context.memory_bytes,
        }
    whole = prompt_of(of_blocks(task, range(len(task.table))), task, transition.acts)
    yield {"method": KV_EVICTION, **about, **reader.evicted(whole, task)}


def line(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return the table's line of a method: medians."""
    cells = [f"{median(row[column] for row in rows):.5g}" for column in COLUMNS]
    return f"| {' | '.join((name, str(len(rows)), *cells))} |"


def main() -> None:
    """Measure, print, and write after each transition."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--method", nargs="*", default=[])
    parser.add_argument("--transitions", type=int, default=3)
    args = parser.parse_args()
    settings = Settings(retention="0.1")
    names = args.method or [*OURS, *(name for name in baseline_names() if name not in SLOW)]
    methods = []
    for method in methods_of(tuple(names)):
        if missing := method.missing():
            print(f"{method.name} is left out: {missing}")
        else:
            methods.append(method)
    reader = Reader(Path(args.model))
    rows: list[dict[str, Any]] = []
    for transition in chosen(Path(os.environ["RECAP_CORPUS"]), reader, settings, args.transitions):
        for row in rows_of(transition, methods, reader, settings):
            rows.append(row)
            print({name: row[name] for name in ("method", "turn", *COLUMNS)}, flush=True)
        facts = {"model": Path(args.model).name, "dtype": "float32", "retention": "0.1"}
        keep(RESULT, rows, where("torch", "transformers", "litellm", "langchain", **facts))
    print(f"| method | n | {' | '.join(COLUMNS)} |")
    print("|" + "---|" * (2 + len(COLUMNS)))
    for name in dict.fromkeys(row["method"] for row in rows):
        print(line(name, [row for row in rows if row["method"] == name]))


if __name__ == "__main__":
    main()
