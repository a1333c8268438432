"""Graph operations over sizes of a session, in processor time.

Per block: update and alignment copy a few arrays of 1 to 8 bytes; the codec moves 13 bytes a block
and 5 or 6 an edge. Building a graph finds repeats (linear in identifiers) and passes over all blocks
once a turn (turns x blocks, a few nanoseconds each).
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import pytest

from bench.select.synthetic import synthetic_session
from recap.capture.reuse import build_graph, observe_turns, turn_count
from recap.config import Settings
from recap.graph.codec import decode, encode
from recap.graph.repeats import find_repeats
from recap.graph.state import align
from recap.graph.update import update

if TYPE_CHECKING:
    from recap.blocks.table import BlockTable
    from recap.graph.observation import TurnObservation
    from recap.graph.state import ContextGraph

pytestmark = pytest.mark.benchmark(timer=time.process_time)

SETTINGS = Settings()
sizes = pytest.mark.parametrize("blocks", [100, 1_000, 10_000])


class Case(NamedTuple):
    table: BlockTable
    before: ContextGraph  # without the last turn
    last: TurnObservation
    graph: ContextGraph


@cache
def case(blocks: int) -> Case:
    """Return a session with its graph, and what its last turn adds."""
    table = synthetic_session(blocks).table
    last_turn = turn_count(table) - 1
    before = build_graph(table, SETTINGS, turns=last_turn)
    (last,) = observe_turns(table, range(last_turn, last_turn + 1))
    return Case(table, before, last, build_graph(table, SETTINGS, graph=before))


def note(benchmark, graph: ContextGraph) -> None:
    benchmark.extra_info["blocks"] = len(graph.ids)
    benchmark.extra_info["edges"] = len(graph.mass)
    benchmark.extra_info["turns"] = graph.turns
    benchmark.extra_info["bytes"] = len(encode(graph))


@sizes
def bench_update_by_one_turn(benchmark, blocks):
    _, before, last, _ = case(blocks)
    note(benchmark, benchmark(update, before, last, SETTINGS))


@sizes
def bench_align_to_the_tables_own_order(benchmark, blocks):
    table, _, _, graph = case(blocks)
    note(benchmark, graph)
    assert len(benchmark(align, graph, table.ids).importance) == blocks


@sizes
def bench_align_to_another_order(benchmark, blocks):
    table, _, _, graph = case(blocks)
    note(benchmark, graph)
    ids = table.ids[1::2] + table.ids[::2]
    assert len(benchmark(align, graph, ids).importance) == blocks


@sizes
def bench_encode(benchmark, blocks):
    graph = case(blocks).graph
    note(benchmark, graph)
    benchmark(encode, graph)


@sizes
def bench_decode(benchmark, blocks):
    graph = case(blocks).graph
    note(benchmark, graph)
    assert benchmark(decode, encode(graph)) == graph


@sizes
def bench_observe_last_turn(benchmark, blocks):
    table, _, last, graph = case(blocks)
    note(benchmark, graph)
    turns = range(last.turn, last.turn + 1)
    benchmark(lambda: list(observe_turns(table, turns)))


@sizes
def bench_find_repeats(benchmark, blocks):
    table, _, _, graph = case(blocks)
    note(benchmark, graph)
    benchmark(find_repeats, table, SETTINGS.stale_overlap)


@sizes
def bench_build_graph(benchmark, blocks):
    table = case(blocks).table
    note(benchmark, benchmark(build_graph, table, SETTINGS))
