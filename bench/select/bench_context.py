"""Time from a warm table to a rendered, unchecked context: selection and rendering together.

    python -m bench.select.bench_context           # the sweep to 100,000 blocks, written to results

Processor time of one thread, least of several runs, at retention 0.1. The messages are objects a Python
caller holds; blocks are calls with results, replies and user messages. Limits: 10 ms at 1,000 blocks,
120 ms at 10,000, slope 1.15. The check of the result is timed apart.
"""

from __future__ import annotations

import gc
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.measured import keep, where
from bench.select.synthetic import synthetic_session
from recap.blocks.segment import Block, segment
from recap.select.render import RenderOptions, render
from recap.select.selection import Request, select
from recap.transcript.check import check
from recap.transcript.lists import read_messages
from recap.transcript.tree import to_object

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

POLICIES = ("coverage", "paper")
SIZES = (1_000, 3_162, 10_000, 31_623, 100_000)
LIMIT_MS = {1_000: 10.0, 10_000: 120.0}
SLOPE_LIMIT = 1.15
RESULT = Path(__file__).parents[1] / "results" / "context.json"


def message_list(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return messages with the kinds and sizes of the blocks, and a request at the end."""
    messages: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        text = "x" * max(1, block.cost_chars)
        if block.kind == "user":
            messages.append({"role": "user", "content": text})
        elif block.kind == "tools":
            call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"path": "a"}}
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
            messages += [
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]},
            ]
        else:
            messages.append({"role": "assistant", "content": text})
    return [*messages, {"role": "user", "content": "go on"}]


def least_ms(function: Callable[[], Any], runs: int) -> float:
    """Return the least processor time of several runs, without garbage collection in between."""
    times = []
    gc.collect()
    gc.disable()
    for _ in range(runs):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    gc.enable()
    return min(times) * 1e3


def row(size: int, policy: str) -> dict[str, Any]:
    """Return one measurement."""
    session = synthetic_session(size)
    messages = read_messages(message_list(session.table.blocks), "anthropic").messages
    whole = segment(messages)
    history = whole.blocks[: len(session.table)]
    table = replace(session.table, messages=messages, blocks=history)
    request = Request(session.request, b"bench")

    def context() -> list[Any]:
        selection = select(session.graph, table, request, policy=policy)
        kept = selection.is_kept.nonzero()[0].tolist()
        options = RenderOptions("anthropic", selection.budget_chars)
        return [
            to_object(tree)
            for tree in render(messages, whole, kept, len(messages) - 1, options).messages
        ]

    runs = max(3, 30_000 // size)
    rendered = context()
    return {
        "policy": policy,
        "blocks": size,
        "ms": round(least_ms(context, runs), 2),
        "check_ms": round(least_ms(lambda: check(rendered, "anthropic"), runs), 2),
        "messages": len(rendered),
    }


def main(sizes: Sequence[int]) -> None:
    """Print the sweep and write it to the results."""
    rows = []
    for policy in POLICIES:
        for size in sizes:
            rows.append(row(size, policy))
            limit = LIMIT_MS.get(size)
            print(rows[-1], f"limit {limit} ms" if limit else "")
        mine = [r for r in rows if r["policy"] == policy]
        logs = np.log([[r["blocks"] for r in mine], [r["ms"] for r in mine]])
        if len(mine) > 1:
            print(f"{policy}: slope {np.polyfit(*logs, 1)[0]:.2f} (limit {SLOPE_LIMIT})")
    keep(RESULT, rows, where("numpy"))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or SIZES)
