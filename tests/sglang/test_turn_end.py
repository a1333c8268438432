"""Ranks that share the heads: their sums add up, and a failure of one is a failure of all."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from recap.capture.spans import Segments
from recap.config import Settings
from recap.errors import CaptureError
from recap.graph.observation import TurnObservation
from recap.graph.state import ContextGraph
from recap.graph.update import update
from recap.sglang.turn_end import FinishedTurn, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recap.sglang.turn_end import LayerInput

TOKENS, ROWS, HEADS, KEY_HEADS, WIDTH = 50, 12, 8, 4, 16
SETTINGS = Settings(edge_threshold=0.0)
SEGMENTS = Segments(
    ("a", "b", "c"), np.array([0, 10, 30, 40, TOKENS]), np.array([0, 1, -1, 2], np.int32)
)


class Ranks:
    """A group of threads that add up tensors, as SGLang's groups of processes do."""

    def __init__(self, size: int) -> None:
        self.parts: list[torch.Tensor] = []
        self.barrier = Barrier(size, timeout=300)

    def all_reduce(self, tensor: torch.Tensor) -> torch.Tensor:
        self.parts.append(tensor)
        self.barrier.wait()
        total = torch.stack(self.parts).sum(0)
        if self.barrier.wait() == 0:
            self.parts.clear()
        self.barrier.wait()
        return total


def turn() -> FinishedTurn:
    positions = np.sort(np.random.default_rng(1).permutation(np.arange(20, TOKENS))[:ROWS])
    return FinishedTurn(2, 9, SEGMENTS, positions, TOKENS, edge_layer=1)


def layers(heads: slice, key_heads: slice, fails: bool = False) -> Iterator[LayerInput]:
    for layer in (0, 1):
        made = torch.Generator().manual_seed(layer)
        q = torch.randn(ROWS, HEADS, WIDTH, generator=made)
        k = torch.randn(TOKENS, KEY_HEADS, WIDTH, generator=made)
        yield layer, q[:, heads].contiguous(), k[:, key_heads].contiguous(), {}
        if fails:
            raise RuntimeError("out of memory")


def on_ranks(work: list[Callable[[], TurnObservation]]) -> list[TurnObservation | Exception]:
    done: list[TurnObservation | Exception] = [RuntimeError()] * len(work)

    def run(rank: int) -> None:
        try:
            done[rank] = work[rank]()
        except (RuntimeError, CaptureError) as err:
            done[rank] = err

    threads = [Thread(target=run, args=(rank,)) for rank in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def test_two_ranks_measure_what_one_does() -> None:
    whole = measure(turn(), layers(slice(None), slice(None)), SETTINGS, "cpu")
    group = Ranks(2)
    halves = on_ranks(
        [
            lambda: measure(turn(), layers(slice(0, 4), slice(0, 2)), SETTINGS, "cpu", group),
            lambda: measure(turn(), layers(slice(4, 8), slice(2, 4)), SETTINGS, "cpu", group),
        ]
    )
    for half in halves:
        assert isinstance(half, TurnObservation)
        np.testing.assert_allclose(half.use, whole.use, rtol=1e-5)
        np.testing.assert_allclose(half.mass, whole.mass, rtol=1e-5)


def test_pairs_that_are_no_edges_of_a_graph_stay_out() -> None:
    every = measure(turn(), layers(slice(None), slice(None)), SETTINGS, "cpu")
    threshold = float(np.median(every.mass))
    settings = SETTINGS.replace(edge_threshold=threshold)
    strong = measure(turn(), layers(slice(None), slice(None)), settings, "cpu")
    is_edge = every.mass > threshold
    assert 0 < is_edge.sum() < len(is_edge)
    assert strong.mass.tolist() == every.mass[is_edge].tolist()
    assert strong.later.tolist() == every.later[is_edge].tolist()
    assert strong.earlier.tolist() == every.earlier[is_edge].tolist()
    empty = ContextGraph.empty("engine")
    assert update(empty, strong, settings) == update(empty, every, settings)


def test_a_rank_that_fails_makes_the_others_drop_the_turn_and_wait_for_nothing() -> None:
    group = Ranks(2)
    good, bad = on_ranks(
        [
            lambda: measure(turn(), layers(slice(0, 4), slice(0, 2)), SETTINGS, "cpu", group),
            lambda: measure(turn(), layers(slice(4, 8), slice(2, 4), True), SETTINGS, "cpu", group),
        ]
    )
    assert isinstance(good, CaptureError)
    assert good.reason == "other-rank"
    assert str(bad) == "out of memory"


def test_a_rank_without_room_and_one_that_fails_both_say_that_something_is_wrong() -> None:
    def full() -> Iterator[LayerInput]:
        raise CaptureError("no-room", "the rows of the request were not kept")
        yield

    group = Ranks(3)
    every = on_ranks(
        [
            lambda: measure(turn(), layers(slice(0, 4), slice(0, 2)), SETTINGS, "cpu", group),
            lambda: measure(turn(), layers(slice(4, 8), slice(2, 4), True), SETTINGS, "cpu", group),
            lambda: measure(turn(), full(), SETTINGS, "cpu", group),
        ]
    )
    assert [getattr(one, "reason", str(one)) for one in every] == [
        "other-rank",
        "out of memory",
        "other-rank",
    ]


def test_a_rank_without_room_is_no_fault_of_any() -> None:
    def full() -> Iterator[LayerInput]:
        raise CaptureError("no-room", "the rows of the request were not kept")
        yield

    group = Ranks(2)
    every = on_ranks(
        [
            lambda: measure(turn(), layers(slice(0, 4), slice(0, 2)), SETTINGS, "cpu", group),
            lambda: measure(turn(), full(), SETTINGS, "cpu", group),
        ]
    )
    assert [getattr(one, "reason", "") for one in every] == ["no-room", "no-room"]


def test_a_row_that_was_never_written_drops_the_turn() -> None:
    def poisoned() -> Iterator[LayerInput]:
        for layer, q, k, options in layers(slice(None), slice(None)):
            q[3] = torch.nan
            yield layer, q, k, options

    with pytest.raises(CaptureError) as dropped:
        measure(turn(), poisoned(), SETTINGS, "cpu")
    assert dropped.value.reason == "not-finite"
