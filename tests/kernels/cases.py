"""Layers to measure, chosen pairwise: any two values of two factors meet in some case."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass
from typing import Any

import torch

from recap_kernels import StatsPlan, plan

FACTORS: dict[str, tuple[Any, ...]] = {
    "dtype": ("float32", "bfloat16", "float16"),
    "group": (1, 3, 4, 5, 8, 16),
    "width": (64, 80, 96, 128, 256, 7),
    "keys": ("contiguous", "paged", "paged wide", "heads first"),
    "lse": ("own", "e", "2", "e without sink"),
    "sinks": (False, True),
    "softcap": (0.0, 20.0),
    "window": (0, 100),
    "tokens": (1, 31, 32, 33, 300, 2049, 4097),
    "blocks": ("none", "one", "of one token", "with empty ones", "uneven"),
    "rows": ("last", "spread", "repeated", "first", "blind", "past the end"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Arguments of ``attn_stats`` and what ``reference`` needs of them."""

    q: torch.Tensor
    k: torch.Tensor
    plan: StatsPlan
    shared: dict[str, Any]


def pairwise(factors: dict[str, tuple[Any, ...]], seed: int = 0) -> list[dict[str, Any]]:
    """Return cases that cover each pair of values of each two factors; greedy, same every time."""
    source = random.Random(seed)
    names = sorted(factors, key=lambda name: -len(factors[name]))
    missing = {
        ((a, x), (b, y))
        for a, b in itertools.combinations(names, 2)
        for x in factors[a]
        for y in factors[b]
    }
    cases = []
    while missing:
        case = dict(source.choice(sorted(missing, key=repr)))
        for name in names:
            if name not in case:
                case[name] = max(
                    source.sample(factors[name], len(factors[name])),
                    key=lambda value: len(missing & _pairs({**case, name: value}, names)),
                )
        missing -= _pairs(case, names)
        cases.append(case)
    return cases


def _pairs(case: dict[str, Any], names: list[str]) -> set[Any]:
    known = [(name, case[name]) for name in names if name in case]
    return set(itertools.combinations(known, 2))


def case_id(case: dict[str, Any]) -> str:
    """Return a name for a case."""
    return "-".join(str(value).replace(" ", "_") for value in case.values())


def layer_of(case: dict[str, Any], seed: int = 0, rows: int = 9) -> Layer:
    """Return random tensors of a case; logits have a standard deviation of about two."""
    source = torch.Generator().manual_seed(seed)
    tokens, width, kv_heads = case["tokens"], case["width"], 2
    dtype = getattr(torch, case["dtype"])
    q = 2 * torch.randn(rows, kv_heads * case["group"], width, generator=source)
    k, kv_indices = _keys(case["keys"], tokens, kv_heads, width, source)
    sinks = torch.randn(q.shape[1], generator=source) if case["sinks"] else None
    turn = plan(
        _positions(case["rows"], rows, tokens, source),
        tokens,
        _offsets(case["blocks"], tokens),
        window=case["window"],
        tile=64,
    )
    shared = {"kv_indices": kv_indices, "sinks": sinks, "softcap": case["softcap"]}
    return Layer(q.to(dtype), k.to(dtype), turn, shared)


def lse_arguments(case: dict[str, Any], layer: Layer, lse: torch.Tensor) -> dict[str, Any]:
    """Return the LSE as the case wants it given, from the reference's."""
    if case["lse"] == "own":
        return {}
    if case["lse"] == "2":
        return {"lse": (lse / math.log(2)).float(), "lse_base": "2"}
    sinks = layer.shared["sinks"]
    if case["lse"] == "e" or sinks is None:
        return {"lse": lse.float()}
    apart = lse + torch.log1p(-torch.exp(sinks.double() - lse))
    return {"lse": apart.float(), "lse_has_sink": False}


def _keys(
    kind: str, tokens: int, kv_heads: int, width: int, source: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor | None]:
    if kind == "heads first":
        return torch.randn(kv_heads, tokens, width, generator=source).transpose(0, 1), None
    if kind == "contiguous":
        return torch.randn(tokens, kv_heads, width, generator=source), None
    slots = tokens + 50
    order = torch.randperm(slots, generator=source)[:tokens]
    pool = torch.full((slots, kv_heads, width), torch.nan)
    pool[order] = torch.randn(tokens, kv_heads, width, generator=source)
    return pool, order if kind == "paged wide" else order.int()


def _positions(kind: str, rows: int, tokens: int, source: torch.Generator) -> torch.Tensor:
    return {
        "last": torch.arange(tokens - rows, tokens),
        "spread": torch.randint(0, tokens, (rows,), generator=source),
        "repeated": torch.full((rows,), tokens // 2),
        "first": torch.arange(rows) // 2,
        "blind": torch.arange(rows) - 3,
        "past the end": tokens + torch.arange(rows) * 40,
    }[kind]


def _offsets(kind: str, tokens: int) -> torch.Tensor | None:
    half, third = tokens // 2, tokens // 3
    return {
        "none": None,
        "one": torch.tensor([0, tokens]),
        "of one token": torch.arange(half, min(half + 40, tokens) + 1),
        "with empty ones": torch.tensor([0, third, third, half, half, tokens]),
        "uneven": torch.tensor([third, min(third + 17, tokens), tokens]),
    }[kind]
