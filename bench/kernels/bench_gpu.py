"""The kernels on a GPU against their roofline and their peers: a table, and JSON in bench/results.

    python -m bench.kernels.bench_gpu [--out FILE] [--quick]

Prints no time unless the sums agree with float64 first. Without a GPU it makes a dry run through
Triton's interpreter (TRITON_INTERPRET=1) on tiny shapes, which proves that it runs and nothing else.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bench.conftest import commit
from bench.kernels import gpu_peers as peers
from bench.kernels import gpu_timing
from bench.kernels.gpu_timing import DEVICE, ON_GPU, Ceilings, Times, time_calls
from recap_kernels import StatsPlan, attn_stats, finalize, plan, reference
from recap_kernels.backends import unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCKS = 100


@dataclass(frozen=True)
class Shape:
    """One layer: heads as of a model, history and sampled rows."""

    name: str
    heads: int
    kv_heads: int
    width: int
    tokens: int
    rows: int


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        shape: What was measured.
        what: Kernel or peer.
        times: Microseconds.
        floor_us: The roofline's lower bound for the sums with a known LSE.
        bound: What sets it: memory, products or exp2.
        extra_bytes: Memory beside the inputs at the peak; -1 when not measured.
    """

    shape: Shape
    what: str
    times: Times
    floor_us: float
    bound: str
    extra_bytes: int = -1


def shapes(quick: bool) -> list[Shape]:
    """Return the layers of two models at two lengths; tiny ones without a GPU."""
    if not ON_GPU:
        return [Shape("dry run", 4, 2, 64, 200, 4)]
    models = [("Qwen3-Coder-30B-A3B", 32, 4, 128), ("gpt-oss-20b", 64, 8, 64)]
    sizes = [(32768, 64), (131072, 64)] if quick else [
        (32768, 16), (32768, 64), (32768, 256), (131072, 16), (131072, 64), (131072, 256),
    ]  # fmt: skip
    return [Shape(*model, *size) for model in models for size in sizes]


@dataclass(frozen=True)
class Layer:
    """Inputs of one layer in memory of its own: a pool of shuffled slots, as a server has."""

    q: Tensor
    k: Tensor
    v: Tensor
    kv_indices: Tensor
    contiguous_k: Tensor


def make_layer(shape: Shape, seed: int) -> Layer:
    """Return random queries, keys and values."""
    source = torch.Generator(DEVICE).manual_seed(seed)

    def normal(*size: int) -> Tensor:
        return torch.randn(size, generator=source, device=DEVICE).bfloat16()

    k = normal(shape.tokens, shape.kv_heads, shape.width)
    slots = torch.randperm(shape.tokens, generator=source, device=DEVICE)
    pool = torch.empty_like(k)
    pool[slots] = k
    return Layer(
        normal(shape.rows, shape.heads, shape.width), pool, normal(*k.shape), slots.int(), k
    )


def make_plan(shape: Shape) -> StatsPlan:
    """Return rows that end the history, as a turn's do, and ``BLOCKS`` blocks of uneven length."""
    positions = torch.arange(shape.tokens - shape.rows, shape.tokens, device=DEVICE)
    source = torch.Generator().manual_seed(1)
    cuts = torch.randint(1, shape.tokens, (BLOCKS - 1,), generator=source).sort().values
    offsets = torch.cat((torch.tensor([0]), cuts, torch.tensor([shape.tokens])))
    return plan(positions, shape.tokens, offsets.to(DEVICE), tile=128 if ON_GPU else 64)


def floor(shape: Shape, ceilings: Ceilings) -> tuple[float, str]:
    """Return the least time in microseconds of one pass, and what sets it."""
    weights = shape.rows * shape.heads * (shape.tokens - shape.rows / 2)
    bounds = {
        "memory": shape.tokens * shape.kv_heads * shape.width * 2 / ceilings.bytes_per_s,
        "products": 2 * weights * shape.width / ceilings.flop_per_s,
        "exp2": weights / ceilings.exp2_per_s,
    }
    bound = max(bounds, key=lambda name: bounds[name])
    return bounds[bound] * 1e6, bound


def faults() -> list[str]:
    """Return what is wrong with the sums: far from float64, or not the same on a second run."""
    tokens = 3000 if ON_GPU else 200
    found = []
    for heads, kv_heads, width in ((32, 4, 128), (64, 8, 64)) if ON_GPU else ((4, 2, 64),):
        shape = Shape("check", heads, kv_heads, width, tokens, 16 if ON_GPU else 3)
        layer, turn = make_layer(shape, 7), make_plan(shape)
        wanted = reference(layer.q, layer.k, turn, kv_indices=layer.kv_indices)
        runs = [stats(layer, turn, None, mass=True) for _ in range(2)]
        runs.append(stats(layer, turn, runs[0].lse, mass=True))
        for run in runs:
            for name in ("rho", "mass"):
                value, exact = getattr(run, name).double().cpu(), getattr(wanted, name).cpu()
                error = float((value - exact).norm() / exact.norm())
                if not error <= 1e-6:
                    found.append(f"{name} of {shape} is {error:.1e} from float64")
        if not all(torch.equal(runs[0].rho, run.rho) for run in runs):
            found.append(f"rho of {shape} changes between runs")
    return found


def stats(layer: Layer, turn: StatsPlan, lse: Tensor | None, *, mass: bool = False) -> Any:
    """Return the sums of a layer by Triton."""
    between = torch.zeros(turn.blocks, turn.blocks, device=DEVICE) if mass else None
    return attn_stats(
        layer.q, layer.k, turn, kv_indices=layer.kv_indices, lse=lse, mass=between, backend="triton"
    )


def measure(shape: Shape, ceilings: Ceilings) -> list[Row]:
    """Return the rows of one shape: ours, then the peers."""
    turn = make_plan(shape)
    bytes_of_keys = shape.tokens * shape.kv_heads * shape.width * 2
    copies = max(2, math.ceil(256e6 / bytes_of_keys)) if ON_GPU else 1
    layers = [make_layer(shape, seed) for seed in range(copies)]
    lses = [stats(layer, turn, None).lse for layer in layers]
    calls: dict[str, list[Callable[[], Any]]] = {}

    def add(what: str, call: Callable[[Layer, Tensor], Any]) -> None:
        calls[what] = [
            functools.partial(call, layer, lse) for layer, lse in zip(layers, lses, strict=True)
        ]

    add("ours, LSE given", lambda layer, lse: stats(layer, turn, lse))
    add("ours, no LSE", lambda layer, _: stats(layer, turn, None))
    add("ours, LSE given, mass", lambda layer, lse: stats(layer, turn, lse, mass=True))
    add("torch eager", lambda layer, _: peers.eager(layer.q, layer.contiguous_k, turn.q_pos))
    add("torch SDPA forward", lambda layer, _: peers.sdpa(layer.q, layer.contiguous_k, layer.v))
    add(
        "keys_values' method with copies",
        lambda layer, lse: peers.score_sums(layer.q, layer.contiguous_k, lse),
    )
    if ON_GPU and peers.has_flash_attention():
        add(
            "FlashAttention forward",
            lambda layer, _: peers.flash_attention(layer.q, layer.contiguous_k, layer.v),
        )
    least, bound = floor(shape, ceilings)
    rows = []
    for what, several in calls.items():
        bytes_ = gpu_timing.extra_memory(several[0])
        rows.append(Row(shape, what, time_calls(several), least, bound, bytes_))
    return rows + measure_finalize(shape, turn)


def measure_finalize(shape: Shape, turn: StatsPlan) -> list[Row]:
    """Return the time of finalize by each backend that runs here."""
    rho = torch.rand(shape.tokens, device=DEVICE)
    mass = torch.rand(turn.blocks, turn.blocks, device=DEVICE)
    rows = []
    for backend in ("triton", "cuda"):
        if not unavailable(backend, DEVICE):
            call = functools.partial(
                finalize, rho, turn, layers=8, heads=shape.heads, mass=mass, backend=backend
            )
            rows.append(Row(shape, f"finalize, {backend}", time_calls([call]), 0.0, ""))
    return rows


def targets(rows: list[Row]) -> list[dict[str, Any]]:
    """Return each target with what was measured and whether it is met."""
    checks = []
    for shape in dict.fromkeys(row.shape for row in rows):
        us = {row.what: row.times.p50 for row in rows if row.shape == shape}
        beside = {row.what: row.extra_bytes for row in rows if row.shape == shape}
        results = 4 * (shape.tokens + shape.rows * shape.heads + BLOCKS * BLOCKS)
        ours, least = us["ours, LSE given"], next(r for r in rows if r.shape == shape).floor_us
        wanted = [
            ("share of the roofline", least / ours, 0.75 if shape.rows <= 16 else 0.55, True),
            ("times faster than eager", us["torch eager"] / ours, 10, True),
            ("share of SDPA's time", ours / us["torch SDPA forward"], 0.7, False),
            ("times faster than keys_values' method", us["keys_values' method with copies"] / ours, 1.3, True),
            ("no LSE over LSE given", us["ours, no LSE"] / ours, 2.1, False),
            ("with mass over without", us["ours, LSE given, mass"] / ours, 1.5, False),
            ("finalize, us", us["finalize, triton"], 30, False),
            ("workspace, MB", max(
                beside[what] - results for what in ("ours, no LSE", "ours, LSE given, mass")
            ) / 1e6, 8, False),
        ]  # fmt: skip
        for what, value, limit, at_least in wanted:
            met = value >= limit if at_least else value <= limit
            checks.append(
                {"shape": asdict(shape), "what": what, "value": value, "target": limit, "met": met}
            )
    return checks


def show(rows: list[Row]) -> None:
    """Print a line per measurement."""
    for row in rows:
        s = row.shape
        share = (
            f"{row.floor_us / row.times.p50:6.1%} of roofline ({row.bound})" if row.bound else ""
        )
        size = f"{row.extra_bytes / 1e6:9.1f} MB" if row.extra_bytes >= 0 else ""
        print(
            f"{s.name:<20} {s.heads:>2}/{s.kv_heads} D{s.width:<4} N{s.tokens:<7} W{s.rows:<4} "
            f"{row.what:<32} {row.times.p50:>10.1f} us {size:>12} {share}",
            flush=True,
        )


def main() -> int:
    """Check, measure, print and write; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench/results/gpu.json"))
    parser.add_argument("--quick", action="store_true", help="two sizes of each model")
    chosen = parser.parse_args()
    if reason := unavailable("triton", DEVICE):
        print(f"bench_gpu: triton {reason}", file=sys.stderr)
        return 2
    if wrong := faults():
        print("red: no times are taken\n" + "\n".join(wrong), file=sys.stderr)
        return 1
    began = time.perf_counter()
    ceilings = gpu_timing.measure_ceilings()
    print(f"ceilings: {asdict(ceilings)}")
    rows = []
    for shape in shapes(chosen.quick):
        new = measure(shape, ceilings)
        show(new)
        rows += new
    report = {
        "dry_run": not ON_GPU,
        "commit": commit(),
        "machine": gpu_timing.machine(),
        "seconds": time.perf_counter() - began,
        "ceilings": asdict(ceilings),
        "rows": [asdict(row) for row in rows],
        "targets": targets(rows),
    }
    if not ON_GPU:
        print("dry run: the times above mean nothing and are not written")
        return 0
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_text(json.dumps(report, indent=1) + "\n")
    missed = [check for check in report["targets"] if not check["met"]]
    print(
        f"{len(report['targets']) - len(missed)} of {len(report['targets'])} targets met; {chosen.out}"
    )
    for check in missed:
        print(
            f"missed: {check['what']} {check['value']:.2f} (target {check['target']}) {check['shape']}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
