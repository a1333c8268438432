"""What it takes to observe a turn with the default proxy model: time, memory, against plain prefill.

    python -m bench.e2e.bench_proxy [--model FOLDER] [--only PART ...]  # bench/results/proxy.json

Processor time of one thread, least of several runs; what is compared runs in turn, in one process.
Blocks of 100 words make up the replay, the last ten of them are the turn. Plain prefill is the same
layers with transformers' own attention and cache, in the same chunks, without a head. An observation
adds to it rendering, tokenizing and proving the spans ("spans_ms") and the statistics of all layers
("stats_ms"), both also timed alone; it spares what comes behind the keys of the last layer. Memory is
of a fresh process that loads the model and observes one turn.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bench.conftest import commit, version_of
from recap.capture import loading
from recap.capture import proxy as proxies
from recap.capture.collector import Collector
from recap.capture.models import resolve
from recap.capture.proxy import ProxyModel
from recap.capture.replay import Replay
from recap.capture.sampling import sample_rows
from recap.capture.spans import Segments, message_spans
from recap.config import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from recap.capture.tap import Tap

LENGTHS = (512, 1024, 2048, 4096, 8192)
LAYERS = (1, 4, 8)
FIGURE_TOKENS = 4096
DTYPES: tuple[loading.Dtype, ...] = ("bfloat16", "float32")
BLOCK_WORDS = 100
TURN_BLOCKS = 10
RESULT = Path(__file__).parents[1] / "results" / "proxy.json"
WORDS = ("parse", "file", "the", "config", "module", "error", "value", "return", "import", "test",
         "build", "path", "line", "number", "42", "self.items", "None", "is", "not", "found")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Update:
    """Observing one turn with nothing cached."""

    tokens: int
    layers: int
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Overhead:
    """An observation against plain prefill of the same tokens with 8 layers; 64 rows."""

    tokens: int
    dtype: str
    plain_ms: float
    observe_ms: float
    observe_share: float
    spans_ms: float
    stats_ms: float
    capture_share: float


@dataclass(frozen=True, slots=True)
class Incremental:
    """The latest turn of a warm stretch against the same replay at once; differences are relative."""

    tokens: int
    new_tokens: int
    one_shot_ms: float
    incremental_ms: float
    speed_up: float
    use_error: float
    mass_error: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Peak of a process that observes one turn of so many tokens, in MB of 2**20 bytes."""

    tokens: int
    dtype: str
    peak_mb: float
    anonymous_mb: float
    imports_mb: float


def replay_of(model: ProxyModel, tokens: int) -> Replay:
    """Return a replay of nearly so many tokens, never more."""
    random = np.random.default_rng(0)
    messages: list[dict[str, str]] = []
    while True:
        role = ("user", "assistant")[len(messages) % 2]
        words = " ".join(random.choice(WORDS, BLOCK_WORDS))
        grown = [*messages, {"role": role, "content": words}]
        if model.count(_replay(grown)) > tokens:
            return _replay(messages)
        messages = grown


def _replay(messages: list[dict[str, str]]) -> Replay:
    ids = tuple(f"b{at}" for at in range(len(messages)))
    first_new = max(0, len(messages) - min(TURN_BLOCKS, len(messages) // 2))
    return Replay(tuple(messages), tuple(range(len(messages))), ids, first_new, 600)


def least_cpu_ms(runs: int, *works: Callable[[], object]) -> list[float]:
    """Return the least processor time of each work; the works run in turn."""
    least = [float("inf")] * len(works)
    for _ in range(runs):
        for at, work in enumerate(works):
            start = time.process_time()
            work()
            least[at] = min(least[at], (time.process_time() - start) * 1000)
    return least


def observation(model: ProxyModel, replay: Replay) -> Any:
    """Observe with nothing cached."""
    model.forget()
    return model.observe(replay, 0, 1, SETTINGS)


def spans(model: ProxyModel, replay: Replay) -> tuple[Any, Segments]:
    """Return the token ids and whose they are."""
    found = message_spans(replay.messages, model.template)
    return found, Segments.of(replay.ids, replay.owner, found)


def statistics(model: ProxyModel, tap: Tap, segments: Segments, positions: Any) -> object:
    """Make an observation of what a pass handed out."""
    collector = Collector(
        segments, positions, int(segments.offsets[-1]), SETTINGS, seed=1, edge_layer=4
    )
    for layer in model.layers:
        collector.add(layer, tap.rows_of(layer), tap.keys[layer], **tap.options[layer])
    return collector.observation(0)


def plain(model: ProxyModel, ids: Any) -> None:
    """Run all layers as transformers does."""
    from transformers import DynamicCache

    decoder, cache = model._model, DynamicCache()
    decoder.set_attn_implementation("sdpa")
    with torch.inference_mode():
        for first in range(0, len(ids), proxies.CHUNK):
            chunk = torch.from_numpy(ids[first : first + proxies.CHUNK])[None]
            decoder(chunk, use_cache=True, **{model._cache: cache})
    decoder.set_attn_implementation(model._attention)


def updates(folder: Path, runs: int) -> list[Update]:
    rows = []
    for layers in LAYERS:
        model = ProxyModel.load(folder, layers=layers)
        for length in LENGTHS:
            replay = replay_of(model, length)
            often = runs if length < FIGURE_TOKENS else 1
            (cpu_ms,) = least_cpu_ms(often, partial(observation, model, replay))
            rows.append(Update(model.count(replay), layers, cpu_ms))
    return rows


def overheads(folder: Path, runs: int) -> list[Overhead]:
    rows = []
    for dtype in DTYPES:
        model = ProxyModel.load(folder, layers=8, dtype=dtype)
        replay = replay_of(model, FIGURE_TOKENS)
        found, segments = spans(model, replay)
        ids = found.ids
        plain_ms, observe_ms = least_cpu_ms(
            runs, partial(plain, model, ids), partial(observation, model, replay)
        )
        positions = sample_rows(1, int(found.start[replay.first_new]), len(ids), SETTINGS.rows)
        model.forget()
        with torch.inference_mode():
            tap = model._run(ids, positions, proxies.CHUNK)
        spans_ms, stats_ms = least_cpu_ms(
            5, partial(spans, model, replay), partial(statistics, model, tap, segments, positions)
        )
        share = (spans_ms + stats_ms) / plain_ms
        rows.append(
            Overhead(
                len(ids),
                dtype,
                plain_ms,
                observe_ms,
                observe_ms / plain_ms,
                spans_ms,
                stats_ms,
                share,
            )
        )
    return rows


def incremental(folder: Path) -> Incremental:
    model = ProxyModel.load(folder, layers=8)
    late = replay_of(model, FIGURE_TOKENS)
    early = _replay(list(late.messages[: late.first_new]))
    (one_shot_ms,) = least_cpu_ms(1, lambda: observation(model, late))
    alone = observation(model, late)
    observation(model, early)
    start = time.process_time()
    warm = model.observe(late, 0, 1, SETTINGS)
    incremental_ms = (time.process_time() - start) * 1000
    return Incremental(
        model.count(late), model.count(late) - model.count(early),
        one_shot_ms, incremental_ms, one_shot_ms / incremental_ms,
        float(np.abs(warm.use / alone.use - 1).max()), float(np.abs(warm.mass - alone.mass).max()),
    )  # fmt: skip


def memory(folder: Path) -> list[Memory]:
    rows = []
    for dtype in DTYPES:
        done = subprocess.run(
            [sys.executable, "-m", "bench.e2e.bench_proxy", "--child", dtype, "--model", folder],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        rows.append(Memory(**json.loads(done.stdout)))
    return rows


def child(folder: Path, dtype: Any) -> Memory:
    import transformers.models.llama.modeling_llama  # noqa: F401 - what loading imports

    imports_mb = _status()["VmRSS"]
    model = ProxyModel.load(folder, layers=8, dtype=dtype)
    replay = replay_of(model, FIGURE_TOKENS)
    model.observe(replay, 0, 1, SETTINGS)
    after = _status()
    return Memory(model.count(replay), dtype, after["VmHWM"], after["RssAnon"], imports_mb)


def _status() -> dict[str, float]:
    lines = Path("/proc/self/status").read_text().splitlines()
    pairs = (line.split(":") for line in lines if line.endswith("kB"))
    return {name: int(value.split()[0]) / 1024 for name, value in pairs}


SETTINGS = Settings(rows=64, layers=8, replay_tokens=8192)
PARTS: dict[str, Callable[[Path, int], Any]] = {
    "memory": lambda folder, _: memory(folder),
    "overhead": overheads,
    "incremental": lambda folder, _: [incremental(folder)],
    "update": updates,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", type=Path, help="a model's folder; the installed default if none"
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    folder = resolve(str(given.model or ""), os.environ)
    if given.child:
        print(json.dumps(asdict(child(folder, given.child))))
        return
    for part in given.only:
        rows = [asdict(row) for row in PARTS[part](folder, given.runs)]
        done = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        done[part] = rows
        print(part, *done[part], sep="\n")
        done["where"] = {
            "platform": platform.platform(),
            "python": platform.python_version(),
            "packages": {name: version_of(name) for name in ("torch", "transformers", "numpy")},
            "commit": commit(),
        }
        RESULT.write_text(json.dumps(done, indent=1) + "\n")


if __name__ == "__main__":
    main()
