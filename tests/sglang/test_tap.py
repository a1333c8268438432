"""The store of query rows: what a prefill and a decode step leave in it."""

from __future__ import annotations

import numpy as np
import torch

from recap.sglang.rows import SPARE
from recap.sglang.tap import Tap, TappedLayer, parts_for

LAYERS = [TappedLayer(0, 2, 4, 0.5, 0.0), TappedLayer(3, 2, 4, 0.5, 0.0)]
ROWS = 5


def tap() -> Tap:
    return Tap(LAYERS, ROWS, requests=3, pool_rows=9, dtype=torch.float32, device="cpu")


def queries(rows: int, base: float = 0.0) -> torch.Tensor:
    return torch.arange(rows * 8, dtype=torch.float32).reshape(rows, 8) + base


def test_a_prefill_keeps_the_staged_rows_of_each_layer() -> None:
    store = tap()
    store.stage_prefill(((0, 6),), np.array([1, 4]), np.array([7, 2]))
    for at in (0, 3):
        store.keep_prefill(at, queries(6, base=at), ((0, 6),))
    kept = store.kept(3, np.array([7, 2]))
    assert torch.equal(kept, (queries(6, base=3)[[1, 4]]).reshape(2, 2, 4))


def test_a_step_of_other_positions_keeps_nothing() -> None:
    store = tap()
    part = store.take()
    assert part is not None
    store.stage_prefill(((0, 6),), np.array([0]), np.array([part * (ROWS + SPARE)]))
    store.keep_prefill(0, queries(4), ((0, 4),))
    store.keep_prefill(0, queries(4), ())
    assert store.kept(0, np.array([part * (ROWS + SPARE)])).isnan().all()


def test_padding_behind_the_staged_requests_does_not_matter() -> None:
    store = tap()
    store.stage_prefill(((0, 6),), np.array([0]), np.array([1]))
    store.keep_prefill(0, queries(7), ((0, 6), (0, 1)))
    assert torch.equal(store.kept(0, np.array([1]))[0], queries(1).reshape(2, 4))


def test_a_decode_step_keeps_the_rows_of_the_table_only() -> None:
    store = tap()
    store.stage_decode({4: 2})
    before = store.kept(0, np.arange(2))
    store.keep_decode(0, queries(3), torch.tensor([5, 4, 0]))
    assert torch.equal(store.kept(0, np.array([2]))[0], queries(3)[1].reshape(2, 4))
    assert torch.equal(store.kept(0, np.arange(2)).nan_to_num(), before.nan_to_num())


def test_the_next_step_forgets_what_was_staged() -> None:
    store = tap()
    store.stage_decode({4: 2})
    store.stage_decode({6: 3})
    store.keep_decode(0, queries(2, base=100), torch.tensor([4, 6]))
    assert torch.equal(store.kept(0, np.array([3]))[0], queries(2, base=100)[1].reshape(2, 4))
    assert not torch.equal(store.kept(0, np.array([2]))[0], queries(2, base=100)[0].reshape(2, 4))


def test_a_part_is_handed_out_once_and_poisoned() -> None:
    store = tap()
    parts = [store.take() for _ in range(4)]
    assert parts[-1] is None
    assert len({p for p in parts[:3] if p is not None}) == 3
    store.stage_decode({1: 0})
    store.keep_decode(0, queries(1), torch.tensor([1]))
    store.give_back(0)
    assert store.take() == 0
    assert store.kept(0, np.arange(ROWS + SPARE)).isnan().all()


def test_parts_fill_the_memory_allowed() -> None:
    part = (ROWS + SPARE) * 2 * (2 * 4) * 4
    assert parts_for(LAYERS, ROWS, torch.float32, 1) == 2**20 // part
