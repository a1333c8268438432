"""Tables, graphs and random selection cases, made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from hypothesis import strategies as st

from recap.blocks.segment import Block, BlockKind
from recap.blocks.table import BlockTable, TermIndex
from recap.config import Settings
from recap.graph.state import ContextGraph
from recap.select import Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMES = ("parse_row", "load_file", "api.py", "Cache", "retry_count", "main.go", "cfg.toml")


class Row(NamedTuple):
    """A block: its cost, what it holds and the agent wrote, who speaks, what it edits, its lines."""

    cost: int
    held: str = ""
    wrote: str = ""
    kind: BlockKind = "tools"
    is_active: bool = True
    edited: tuple[str, ...] = ()
    lines: str = ""
    wrote_lines: str = ""


def block_id(number: int) -> str:
    return f"{number:016x}"


def table_of(rows: Sequence[Row], ids: Sequence[str] | None = None) -> BlockTable:
    """Return the table of the rows; its blocks have ids 0, 1, ... and no messages."""
    ids = tuple(map(block_id, range(len(rows)))) if ids is None else tuple(ids)
    return BlockTable(
        messages=(),
        blocks=tuple(
            Block(
                ids[i],
                row.kind,
                (),
                row.cost,
                i // 3,
                row.is_active,
                row.edited,
                has_words=row.kind == "user",
            )
            for i, row in enumerate(rows)
        ),
        fixed=(),
        excluded=(),
        ids=ids,
        cost_chars=np.array([row.cost for row in rows], np.int64),
        turn=np.arange(len(rows), dtype=np.int32) // 3,
        is_active=np.array([row.is_active for row in rows], np.bool_),
        is_user=np.array([row.kind == "user" for row in rows], np.bool_),
        index=index_of([(row.held, row.wrote) for row in rows]),
        lines=index_of([(row.lines, row.wrote_lines) for row in rows]),
    )


def index_of(rows: Sequence[tuple[str, str]]) -> TermIndex:
    """Return the index of rows: what each holds, and what of it the agent wrote."""
    vocabulary: dict[str, int] = {}
    terms: list[list[int]] = []
    wrote: list[int] = []
    for held, written in rows:
        names = dict.fromkeys((held + " " + written).split())
        own = written.split()
        terms.append(sorted(vocabulary.setdefault(name, len(vocabulary)) for name in names))
        own_ids = {vocabulary[name] for name in own}
        wrote += [term in own_ids for term in terms[-1]]
    flat = [term for row_terms in terms for term in row_terms]
    size = len(vocabulary)
    last_use = np.zeros(size, np.int32)
    for at, row_terms in enumerate(terms):
        last_use[row_terms] = at
    return TermIndex(
        vocabulary=vocabulary,
        size=size,
        starts=np.cumsum([0, *map(len, terms)], dtype=np.int64),
        terms=np.array(flat, np.int32),
        wrote=np.array(wrote, np.bool_),
        document_frequency=np.bincount(flat, minlength=size).astype(np.int32),
        last_use=last_use,
        acts=np.bincount(flat, wrote, size).astype(np.int32),
    )


def graph_of(
    ids: Sequence[str],
    *,
    importance: Mapping[int, float] | None = None,
    observed: Sequence[int] = (),
    superseded: Mapping[int, int] | None = None,
    edges: Sequence[tuple[int, int, float]] = (),
) -> ContextGraph:
    """Return a graph over the ids; ``edges`` are (source, target, mass)."""
    n = len(ids)
    ordered = sorted(edges, key=lambda edge: (edge[1], -np.float32(edge[2]), edge[0]))
    source, target, mass = zip(*ordered, strict=True) if ordered else ((), (), ())
    values = np.zeros(n, np.float32)
    for at, value in (importance or {}).items():
        values[at] = value
    superseded_by = np.full(n, -1, np.int32)
    for at, by in (superseded or {}).items():
        superseded_by[at] = by
    return ContextGraph(
        observer="reuse",
        turns=1,
        ids=tuple(ids),
        importance=values,
        is_observed=np.isin(np.arange(n), list(observed)),
        superseded_by=superseded_by,
        source=np.array(source, np.int32),
        target=np.array(target, np.int32),
        mass=np.array(mass, np.float32),
    )


class Case(NamedTuple):
    """Arguments of ``select``."""

    graph: ContextGraph | None
    table: BlockTable
    request: Request
    settings: Settings
    pins: tuple[str, ...]


KINDS: tuple[tuple[BlockKind, tuple[str, ...]], ...] = (
    ("tools", ()),
    ("tools", ("a.py",)),
    ("tools", ("b.py",)),
    ("tools", ("a.py", "b.py")),
    ("reply", ()),
    ("machine", ()),
    ("user", ()),
)
SETS = st.integers(0, 2 ** len(NAMES) - 1).map(
    lambda bits: " ".join(name for at, name in enumerate(NAMES) if bits >> at & 1)
)  # one draw a set: a strategy of lists would cost most of the test's time
ROWS = st.builds(
    lambda cost, held, wrote, kind, is_active, lines, own: Row(
        cost, held, wrote, kind[0], is_active, kind[1], lines, own
    ),
    st.integers(0, 12) | st.integers(0, 90),
    SETS,
    SETS,
    st.sampled_from(KINDS),
    st.sampled_from((True, True, True, False)),
    SETS,
    st.just("") | SETS,
)
SETTINGS = st.builds(
    Settings,
    retention=st.sampled_from(("0.05", "0.1", "0.29", "1/3", "0.5", "0.9", "1")),
    query_weight=st.just(0.37),  # no two blocks of different evidence tie by symmetry
    expansion=st.sampled_from(("0", "0.2", "1")),
    edit_cap=st.sampled_from((None, 0, 10, 60)),
    recency_share=st.sampled_from((0.0, 0.0, 0.3, 1.0)),
    line_share=st.sampled_from((0.0, 0.37, 1.0)),
    edge_share=st.sampled_from((0.5, 0.0, 1.0)),
    importance_gain=st.sampled_from((0.0, 0.0, 1.7)),
    act_power=st.sampled_from((0.5, 0.0, 1.3)),
)


@st.composite
def graphs(draw: st.DrawFn, ids: tuple[str, ...]) -> ContextGraph:
    """Graphs that know some of the ids and one that the table does not hold."""
    hidden = draw(st.integers(0, len(ids)))
    known = [*(x for at, x in enumerate(ids) if at != hidden), block_id(999)]
    n = len(known)
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).map(sorted).map(tuple)
    seen = draw(st.integers(0, 2**n - 1))
    edges = draw(st.dictionaries(pair, st.integers(1, 8), max_size=12))
    return graph_of(
        known,
        importance=dict(enumerate(x / 255 for x in draw(st.binary(min_size=n, max_size=n)))),
        observed=[i for i in range(n) if seen >> i & 1],
        superseded={a: b for a, b in draw(st.lists(pair, max_size=3)) if a < b},
        edges=[(a, b, mass / 8) for (a, b), mass in edges.items() if a < b],
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small tables with everything that can matter: zero costs, pins, edits, inactive blocks."""
    table = table_of(draw(st.lists(ROWS, max_size=9)))
    graph = draw(st.none() | graphs(table.ids))
    words = draw(SETS) + draw(st.sampled_from(("", " cache", " unseen_name")))
    pins = draw(st.lists(st.sampled_from(table.ids), max_size=1)) if table.ids else []
    request = Request(words, draw(st.sampled_from((b"", b"a", b"b"))))
    return Case(graph, table, request, draw(SETTINGS), tuple(pins))
