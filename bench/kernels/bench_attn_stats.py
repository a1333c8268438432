"""Attention statistics on a CPU against torch eager, torch SDPA and the limit, torch's GEMM.

    python -m bench.kernels.bench_attn_stats             # table, and bench/results/kernels_cpu.json
    python -m bench.kernels.bench_attn_stats --kvpress   # also kvpress, in an environment that has it
    pytest bench/kernels -o python_files='bench_*.py' -o python_functions='bench_*'

Processor time of one thread, least of several runs; what is compared runs in turn, in one process. The
limit is ``torch.mm`` of a tile of 256 x 1024 x D, in float32; where the processor multiplies bfloat16
itself, a bfloat16 layer is also held against ``torch.mm`` in bfloat16. "most" is how many times faster
than each peer a call could be that took no longer than the product: the bound of any speed-up here.
Two threads are compared by the clock, so their figures want a quiet machine, and memory by Linux's own
count. No figure is printed before every backend
has come within 1e-6 of the float64 reference on a smaller layer of the same kind. For kvpress 0.5.5 make
an environment of its own: ``pip install kvpress==0.5.5 "transformers<5.3"`` and this package.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import re
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from bench.conftest import commit, gpu, version_of
from recap_kernels import attn_stats, info, plan, reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from recap_kernels import StatsPlan

RESULT = Path(__file__).parents[1] / "results" / "kernels_cpu.json"
RUNS = 11
BLOCKS = 100
TILE = (256, 1024)
THREADS = 2
ERROR_LIMIT = 1e-6


@dataclass(frozen=True, slots=True)
class Shape:
    """A layer: heads, key heads, width of a head, tokens, sampled rows, dtype."""

    heads: int
    kv_heads: int
    width: int
    tokens: int
    rows: int
    dtype: str

    @property
    def flops(self) -> int:
        """Floating-point operations of the dot products."""
        return 2 * self.rows * self.heads * self.width * self.tokens

    def __str__(self) -> str:
        sizes = f"{self.heads},{self.kv_heads},{self.width},{self.tokens},{self.rows}"
        return f"{sizes} {self.dtype}"


SHAPES = (
    Shape(16, 4, 128, 32768, 64, "float32"),
    Shape(9, 3, 64, 8192, 64, "float32"),
    Shape(16, 4, 128, 32768, 64, "bfloat16"),
    Shape(9, 3, 64, 8192, 64, "bfloat16"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Random tensors of a shape; the rows are the last of the history, all of it visible to most."""

    shape: Shape
    q: torch.Tensor
    k: torch.Tensor
    plan: StatsPlan
    lse: torch.Tensor


def make_layer(shape: Shape) -> Layer:
    """Return the layer of a shape, the same every time."""
    source = torch.Generator().manual_seed(0)
    dtype = getattr(torch, shape.dtype)
    q = torch.randn(shape.rows, shape.heads, shape.width, generator=source).to(dtype)
    k = torch.randn(shape.tokens, shape.kv_heads, shape.width, generator=source).to(dtype)
    offsets = torch.linspace(0, shape.tokens, BLOCKS + 1).int()
    turn = plan(torch.arange(shape.tokens - shape.rows, shape.tokens), shape.tokens, offsets)
    return Layer(shape, q, k, turn, attn_stats(q, k, turn).lse)


def eager(layer: Layer) -> torch.Tensor:
    """Materialise the probabilities, softmax in float32, and sum: the usual way."""
    shape = layer.shape
    keys = layer.k.repeat_interleave(shape.heads // shape.kv_heads, dim=1)
    logits = layer.q.transpose(0, 1) @ keys.permute(1, 2, 0) / math.sqrt(shape.width)
    logits = logits.masked_fill(~layer.plan.visible(), -torch.inf)
    return logits.softmax(-1, dtype=torch.float32).sum((0, 1))


def sdpa(layer: Layer) -> torch.Tensor:
    """Run torch's attention on the same rows, with one-column values: no statistics come out."""
    values = torch.ones_like(layer.k)
    rows, keys, ones = (t.transpose(0, 1)[None] for t in (layer.q, layer.k, values))
    mask = layer.plan.visible()
    return torch.nn.functional.scaled_dot_product_attention(
        rows, keys, ones, attn_mask=mask, enable_gqa=True
    )


def contenders(layer: Layer) -> dict[str, Callable[[], object]]:
    """Return what is timed, by name."""
    rho, mass = torch.zeros(layer.plan.kv_len), torch.zeros(BLOCKS, BLOCKS)

    def ours(backend: Any, **options: Any) -> Callable[[], object]:
        call = {"rho": rho, "backend": backend, **options}
        return lambda: attn_stats(layer.q, layer.k, layer.plan, **call)

    found: dict[str, Callable[[], object]] = {
        "torch eager": lambda: eager(layer),
        "torch sdpa": lambda: sdpa(layer),
    }
    if not info().backends["cpu"]:
        found["cpu, lse given"] = ours("cpu", lse=layer.lse)
        found["cpu, no lse"] = ours("cpu")
        found["cpu, lse given, mass"] = ours("cpu", lse=layer.lse, mass=mass)
        found["cpu, no lse, mass"] = ours("cpu", mass=mass)
    return found


def gemm(width: int, dtype: str = "float32") -> tuple[Callable[[], object], int]:
    """Return torch's product of a tile, several times over, and its operations."""
    kind = getattr(torch, dtype)
    a, b = torch.randn(TILE[0], width).to(kind), torch.randn(width, TILE[1]).to(kind)
    out = torch.empty(TILE, dtype=kind)
    times = 4_000_000_000 // (2 * TILE[0] * TILE[1] * width)

    def run() -> None:
        for _ in range(times):
            torch.mm(a, b, out=out)

    return run, 2 * TILE[0] * TILE[1] * width * times


def kvpress_scores(layer: Layer) -> Callable[[], object]:
    """Return kvpress's own scoring of the same rows: no projection, and a rotation by zero."""
    from kvpress.presses.snapkv_press import SnapKVPress

    shape = layer.shape
    config = SimpleNamespace(num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads)
    module = SimpleNamespace(config=config, head_dim=shape.width, q_proj=lambda rows: rows)
    rows, keys = layer.q.flatten(1)[None], layer.k.transpose(0, 1)[None]
    still = torch.zeros(1, shape.rows, shape.width, dtype=layer.q.dtype)
    arguments = (module, rows, keys, shape.rows, (still + 1, still))
    return lambda: SnapKVPress.compute_window_attention(*arguments).mean(dim=-2)


def least_seconds(
    calls: dict[str, Callable[[], object]],
    runs: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Return the least time of each, all taking turns."""
    best = dict.fromkeys(calls, math.inf)
    for call in calls.values():
        call()
    for _ in range(runs):
        for name, call in calls.items():
            start = clock()
            call()
            best[name] = min(best[name], clock() - start)
    return best


def scaling(layer: Layer, runs: int) -> dict[str, Any]:
    """Return wall time without LSE on one thread and on several, and whether the bits are equal."""

    def on(threads: int) -> Callable[[], Any]:
        def run() -> Any:
            torch.set_num_threads(threads)
            try:
                return attn_stats(layer.q, layer.k, layer.plan, backend="cpu")
            finally:
                torch.set_num_threads(1)

        return run

    alone, together = on(1), on(THREADS)
    one, several = alone(), together()
    seconds = least_seconds({"one": alone, "several": together}, runs, time.perf_counter)
    return {
        "threads": THREADS,
        "wall_seconds": [seconds["one"], seconds["several"]],
        "speed_up": seconds["one"] / seconds["several"],
        "same_bits": torch.equal(one.rho, several.rho) and torch.equal(one.lse, several.lse),
        "load": os.getloadavg()[0],
    }


def extra_megabytes(call: Callable[[], object]) -> float | None:
    """Return by how much a call raises the process's memory at its peak; None where unknown."""
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not os.access(reset, os.W_OK):
        return None
    call()
    ctypes.CDLL(None).malloc_trim(0)  # what an earlier call freed would hide what this one takes

    def kilobytes(field: str) -> int:
        return int(status.read_text().split(f"{field}:")[1].split()[0])

    reset.write_text("5")
    before = kilobytes("VmRSS")
    call()
    return (kilobytes("VmHWM") - before) / 1e3


def worst_error(shape: Shape) -> float:
    """Return the largest relative 2-norm error of column sums and block mass, over ways to ask."""
    small = Shape(shape.heads, shape.kv_heads, shape.width, 3001, 16, shape.dtype)
    layer = make_layer(small)
    wanted = reference(layer.q, layer.k, layer.plan)
    errors = []
    for lse in (None, wanted.lse.float()):
        for mass in (None, torch.zeros(BLOCKS, BLOCKS)):
            got = attn_stats(layer.q, layer.k, layer.plan, lse=lse, mass=mass)
            errors.append(float((got.rho - wanted.rho).norm() / wanted.rho.norm()))
            if mass is not None:
                errors.append(float((mass - wanted.mass).norm() / wanted.mass.norm()))
    return max(errors)


def row_of(shape: Shape, runs: int, *, with_kvpress: bool) -> dict[str, Any]:
    """Return all figures of a shape."""
    layer = make_layer(shape)
    calls = contenders(layer)
    if with_kvpress:
        calls["kvpress"] = kvpress_scores(layer)
    product, operations = gemm(shape.width)
    gemms = {"gemm": product}
    if multiplies_bfloat16() and shape.dtype == "bfloat16":
        gemms["own gemm"], _ = gemm(shape.width, shape.dtype)
    seconds = least_seconds({**calls, **gemms}, runs)
    peaks = {name: operations / seconds.pop(name) for name in gemms}
    peak, peers = peaks["gemm"], [name for name in seconds if not name.startswith("cpu")]
    row = {
        "shape": asdict(shape),
        "error": worst_error(shape),
        "gemm_gflops": peak / 1e9,
        "seconds": seconds,
        "share_of_gemm": {name: shape.flops / took / peak for name, took in seconds.items()},
        "most": {name: seconds[name] * peak / shape.flops for name in peers},
        "extra_megabytes": {name: extra_megabytes(call) for name, call in calls.items()},
    }
    if "own gemm" in peaks:
        own = peaks["own gemm"]
        row["own_gemm_gflops"] = own / 1e9
        row["share_of_own_gemm"] = {name: shape.flops / t / own for name, t in seconds.items()}
    return row | ({"scaling": scaling(layer, runs)} if "cpu, no lse" in calls else {})


def multiplies_bfloat16() -> bool:
    """Return whether the processor has instructions for products of bfloat16, by Linux's word."""
    path = Path("/proc/cpuinfo")
    return path.exists() and bool(re.search(r"\b(avx512_bf16|amx_bf16|bf16)\b", path.read_text()))


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows for a person; speed-ups are of our call without LSE."""
    lines = []
    for row in rows:
        lines.append("")
        lines.append(f"{Shape(**row['shape'])}  (gemm {row['gemm_gflops']:.1f} GF/s)")
        ours = row["seconds"].get("cpu, no lse", math.nan)
        for name, took in row["seconds"].items():
            share, ratio = row["share_of_gemm"][name], took / ours
            line = f"  {name:22} {took * 1e3:9.2f} ms {share:6.1%} of gemm {ratio:6.2f} x ours"
            if own := row.get("share_of_own_gemm"):
                line += f" {own[name]:6.1%} of its own gemm"
            if name in row["most"]:
                line += f" (at most {row['most'][name]:.2f})"
            if (extra := row["extra_megabytes"][name]) is not None:
                line += f" {extra:7.1f} MB"
            lines.append(line)
        if found := row.get("scaling"):
            bits = "same bits" if found["same_bits"] else "OTHER BITS"
            lines.append(
                f"  {found['threads']} threads: {found['speed_up']:.2f} x by the clock, {bits}"
            )
    return "\n".join(lines)


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
@pytest.mark.parametrize("name", ["torch eager", "cpu, lse given", "cpu, no lse"])
def bench_attn_stats(benchmark: Any, shape: Shape, name: str) -> None:
    calls = contenders(make_layer(shape))
    if name not in calls:
        pytest.skip(f"{name}: not built")
    benchmark(calls[name])
    benchmark.extra_info.update({"shape": str(shape), "flops": shape.flops})


def main() -> int:
    """Measure, print and write; 1 when a result is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kvpress", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    torch.set_num_threads(1)
    errors = {str(shape): worst_error(shape) for shape in SHAPES}
    if max(errors.values()) > ERROR_LIMIT:
        print(f"wrong results, no figures: {errors}", file=sys.stderr)
        return 1
    rows = [row_of(shape, options.runs, with_kvpress=options.kvpress) for shape in SHAPES]
    context = {
        "commit": commit(),
        "processor": processor(),
        "isa": info().cpu_isa,
        "isas": info().cpu_isas,
        "bfloat16_products": multiplies_bfloat16(),
        "python": platform.python_version(),
        "torch": version_of("torch"),
        "gpu": gpu() or "not run on a GPU",
        "kvpress": version_of("kvpress") if options.kvpress else "",
        "runs": options.runs,
    }
    options.out.write_text(json.dumps({**context, "rows": rows}, indent=1) + "\n")
    print(context, table(rows), sep="\n")
    return 0


def processor() -> str:
    """Return the processor's name and family, as Linux tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    known = {key.strip(): value.strip() for key, value in facts.items()}
    family = " ".join(f"{key} {known.get(key, '?')}" for key in ("cpu family", "model"))
    return f"{known.get('model name', platform.machine())}, {family}"


if __name__ == "__main__":
    sys.exit(main())
