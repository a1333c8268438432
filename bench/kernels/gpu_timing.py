"""Times on a GPU with cold caches, and the ceilings they are compared with.

Without a GPU everything runs once through Triton's interpreter: a dry run whose times mean nothing.
"""
# ruff: noqa: N803 - compile-time arguments are upper case

from __future__ import annotations

import statistics
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"


@dataclass(frozen=True)
class Times:
    """Microseconds of one call: median, and the 20th and 80th percentile."""

    p50: float
    p20: float
    p80: float


def time_calls(calls: Sequence[Callable[[], Any]], *, seconds: float = 0.15) -> Times:
    """Return the time of one of ``calls``, which do the same to different memory.

    They are captured in one CUDA graph, so neither launch overhead nor a warm cache is measured;
    together their inputs should exceed the L2 cache several times.
    """
    if not ON_GPU:
        began = time.perf_counter()
        calls[0]()
        spent = (time.perf_counter() - began) * 1e6
        return Times(spent, spent, spent)
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [call() for call in calls]  # alive: their memory belongs to the graph
    samples: list[float] = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends or len(samples) < 9:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) * 1e3 / len(calls))
    del kept
    cuts = statistics.quantiles(samples, n=10)
    return Times(statistics.median(samples), cuts[1], cuts[7])


@dataclass(frozen=True)
class Ceilings:
    """What this GPU attains: bytes, 16-bit products (flop) and exp2 a second."""

    bytes_per_s: float
    flop_per_s: float
    exp2_per_s: float


@triton.jit
def _exp2_kernel(to_ptr, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    """Four chains of dependent exp2 a lane; nothing but the special-function units is busy."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = offs.to(tl.float32) * -1e-6
    b, c, d = a - 0.1, a - 0.2, a - 0.3
    for _ in tl.range(0, ROUNDS):
        a, b, c, d = tl.exp2(-a), tl.exp2(-b), tl.exp2(-c), tl.exp2(-d)
    tl.store(to_ptr + offs, a + b + c + d)


def measure_ceilings() -> Ceilings:
    """Return copy bandwidth (bytes read and written), bf16 products and exp2 of this machine."""
    count, side, rounds, programs = (2**30, 8192, 256, 4096) if ON_GPU else (2**12, 64, 2, 2)
    source = torch.empty(count, dtype=torch.float32, device=DEVICE).normal_()
    target = torch.empty_like(source)
    copy = time_calls([lambda: target.copy_(source)])
    left, right = (torch.randn(side, side, device=DEVICE).bfloat16() for _ in range(2))
    product = time_calls([lambda: left @ right])
    block = 1024
    out = torch.empty(programs * block, device=DEVICE)
    exp2 = time_calls(
        [lambda: _exp2_kernel[(programs,)](out, ROUNDS=rounds, BLOCK=block, num_warps=8)]
    )
    return Ceilings(
        bytes_per_s=2 * source.nbytes / copy.p50 * 1e6,
        flop_per_s=2 * side**3 / product.p50 * 1e6,
        exp2_per_s=4 * rounds * programs * block / exp2.p50 * 1e6,
    )


def extra_memory(call: Callable[[], Any]) -> int:
    """Return the bytes that a call takes beside its inputs at its peak; 0 without a GPU."""
    if not ON_GPU:
        call()
        return 0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def machine() -> dict[str, str]:
    """Return GPU, driver, clocks and versions."""
    facts = {"torch": str(torch.__version__), "triton": str(triton.__version__), "gpu": ""}
    if ON_GPU:
        fields = "name,driver_version,clocks.max.sm,clocks.max.memory"
        command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        facts["gpu"] = torch.cuda.get_device_name(0)
        facts["nvidia_smi"] = done.stdout.strip()
        facts["cuda"] = str(torch.version.cuda)
    return facts
