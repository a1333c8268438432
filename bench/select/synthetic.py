"""Tables and graphs that look like long coding sessions, of any size, from a seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from recap.blocks.segment import Block, BlockKind
from recap.blocks.table import BlockTable, Int32Array, IntArray, TermIndex
from recap.graph.state import ContextGraph

ROW_LENGTH = 60  # identifiers a block, mean: 40 to 80 in the corpus
COMMON = 2_000  # identifiers that any block may hold, drawn by Zipf's law
SHARE_COMMON = 0.4
FRESH = 20  # identifiers a turn brings up; blocks draw on the last few turns' as well
MOST_ONCE = 0.15  # share of a large block's identifiers that occur nowhere else, at most
LINES_PER_CHAR = 0.012  # of at least 16 characters; the corpus has 0.0119
LINES_ONCE = 0.72  # share of a block's lines that occur nowhere else, as in the corpus
TURN_BLOCKS = 25
EDGES_PER_BLOCK = 5


class Session(NamedTuple):
    """What selection takes."""

    table: BlockTable
    graph: ContextGraph
    request: str


def synthetic_session(n: int, seed: int = 0) -> Session:
    """Return a session of ``n`` blocks: Zipf identifiers with locality, log-normal costs."""
    rng = np.random.default_rng(seed)
    is_user = np.arange(n) % TURN_BLOCKS == 0
    cost = (np.where(is_user, 0.1, 1.0) * rng.lognormal(6.4, 1.6, n)).astype(np.int64) + 1
    rows, terms = _incidence(cost, rng)
    names = [f"name_{i}" for i in range(int(terms.max()) + 1)]
    index = _index(n, rows, terms, names, rng)
    rows_of_lines, lines = _lines(cost, rng)
    line_names = [f"{i:08x}" for i in range(int(lines.max()) + 1)]
    table = _table(n, index, _index(n, rows_of_lines, lines, line_names, rng), cost, rng)
    recent = terms[rows >= n - 10]
    request = " ".join(names[i] for i in rng.choice(recent, 8))
    return Session(table, _graph(table.ids, rng), request)


def _incidence(cost: IntArray, rng: np.random.Generator) -> tuple[Int32Array, Int32Array]:
    """Return distinct (block, identifier) pairs, sorted; identifiers in order of first use.

    An identifier is common to the session, or belongs to the work of these turns, or (in large
    outputs mostly) occurs once. So small blocks seldom hold anything new, as in real sessions.
    """
    length = (0.36 * cost**0.82 * rng.lognormal(0.0, 0.5, cost.size)).astype(np.int64) + 1
    rows = np.repeat(np.arange(cost.size), length)
    kind = rng.random(rows.size)
    is_once = kind < np.minimum(MOST_ONCE, length / 6000)[rows]
    common = np.minimum(rng.zipf(1.3, rows.size), COMMON)
    newest = COMMON + FRESH * (rows // TURN_BLOCKS + 2)
    local = np.maximum(COMMON, newest - rng.zipf(1.2, rows.size).clip(max=6 * FRESH))
    drawn = np.where(kind > 1 - SHARE_COMMON, common, local)
    drawn[is_once] = newest.max() + np.arange(np.count_nonzero(is_once))
    return _distinct(rows, drawn)


def _lines(cost: IntArray, rng: np.random.Generator) -> tuple[Int32Array, Int32Array]:
    """Return distinct (block, line) pairs: most lines occur once, others in the turns around."""
    rows = np.repeat(np.arange(cost.size), rng.poisson(LINES_PER_CHAR * cost) + 1)
    drawn = FRESH * (rows // TURN_BLOCKS) + rng.zipf(1.2, rows.size).clip(max=6 * FRESH)
    is_once = rng.random(rows.size) < LINES_ONCE
    drawn[is_once] = drawn.max() + 1 + np.arange(np.count_nonzero(is_once))
    return _distinct(rows, drawn)


def _distinct(rows: IntArray, drawn: IntArray) -> tuple[Int32Array, Int32Array]:
    """Return the distinct pairs, sorted, their terms numbered in order of first use."""
    pairs = np.unique(np.stack([rows, drawn]), axis=1)
    _, first, inverse = np.unique(pairs[1], return_index=True, return_inverse=True)
    renamed = np.empty(first.size, np.int64)
    renamed[np.argsort(first)] = np.arange(first.size)
    order = np.lexsort((renamed[inverse], pairs[0]))
    return pairs[0][order].astype(np.int32), renamed[inverse][order].astype(np.int32)


def _index(
    n: int, rows: Int32Array, terms: Int32Array, names: list[str], rng: np.random.Generator
) -> TermIndex:
    m = len(names)
    wrote = rng.random(terms.size) < 0.35
    last_use = np.zeros(m, np.int32)
    np.maximum.at(last_use, terms, rows)
    return TermIndex(
        vocabulary={name: i for i, name in enumerate(names)},
        size=m,
        starts=np.searchsorted(rows, np.arange(n + 1)).astype(np.int64),
        terms=terms,
        wrote=wrote,
        document_frequency=np.bincount(terms, minlength=m).astype(np.int32),
        last_use=last_use,
        acts=np.bincount(terms[wrote], minlength=m).astype(np.int32),
    )


def _table(
    n: int, index: TermIndex, lines: TermIndex, cost: IntArray, rng: np.random.Generator
) -> BlockTable:
    ids = tuple(f"{x:016x}" for x in rng.integers(0, 2**63, n).tolist())
    blocks = tuple(
        Block(ids[i], _kind(i), (), c, i // TURN_BLOCKS, True, (f"file{i % 97}",) * (i % 6 == 3))
        for i, c in enumerate(cost.tolist())
    )
    return BlockTable(
        messages=(),
        blocks=blocks,
        fixed=(),
        excluded=(),
        ids=ids,
        cost_chars=cost,
        turn=(np.arange(n) // TURN_BLOCKS).astype(np.int32),
        is_active=np.ones(n, np.bool_),
        is_user=np.arange(n) % TURN_BLOCKS == 0,
        index=index,
        lines=lines,
    )


def _kind(i: int) -> BlockKind:
    return "user" if i % TURN_BLOCKS == 0 else "reply" if i % 8 == 7 else "tools"


def _graph(ids: tuple[str, ...], rng: np.random.Generator) -> ContextGraph:
    n = len(ids)
    target = np.repeat(np.arange(1, n), EDGES_PER_BLOCK)
    source = target - np.minimum(target, rng.zipf(1.4, target.size))
    pairs = np.unique(target * np.int64(n) + source)
    return ContextGraph(
        observer="reuse",
        turns=n // TURN_BLOCKS,
        ids=ids,
        importance=(rng.random(n) ** 4).astype(np.float32),
        is_observed=rng.random(n) < 0.9,
        superseded_by=np.where(
            rng.random(n) < 0.05, np.minimum(np.arange(n) + 3, n - 1), -1
        ).astype(np.int32),
        source=(pairs % n).astype(np.int32),
        target=(pairs // n).astype(np.int32),
        mass=rng.uniform(0.05, 0.6, pairs.size).astype(np.float32),
    )
