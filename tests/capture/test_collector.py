"""The collector against sums written out in float64 over the whole attention matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from recap.capture.collector import Collector  # noqa: E402
from recap.capture.sampling import sample_rows  # noqa: E402
from recap.capture.spans import Segments  # noqa: E402
from recap.config import Settings  # noqa: E402
from recap.errors import CaptureError  # noqa: E402
from tests.capture.whole_matrix import Expected, expected  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from recap.graph.observation import TurnObservation

SEED = 7
TOKENS, QUERY_HEADS, KEY_HEADS, WIDTH = 60, 4, 2, 8
EDGE_LAYER = 1
SETTINGS = Settings(rows=12, rows_per_block=2, drop_first=3, clip_quantile=0.8)

# "b" stands in two places around "c", "d" behind the last row; 0:5 and 30:34 are nobody's
SEGMENTS = Segments(
    ("a", "b", "c", "d"),
    np.array([0, 5, 18, 25, 30, 34, 44, 57, 60]),
    np.array([-1, 0, 1, 2, -1, 1, 2, 3], np.int32),
)
POSITIONS = sample_rows(SEED, 25, 56, SETTINGS.rows)
Layers = list[tuple[int, "Tensor", "Tensor"]]


def layers_of(seed: int = 0, *, sharpness: float = 3.0) -> Layers:
    """Return (layer, q of all tokens, k) of three layers."""
    random = torch.Generator().manual_seed(seed)
    return [
        (
            layer,
            torch.randn(TOKENS, QUERY_HEADS, WIDTH, generator=random) * sharpness,
            torch.randn(TOKENS, KEY_HEADS, WIDTH, generator=random),
        )
        for layer in (0, 1, 3)
    ]


def collected(
    layers: Layers,
    segments: Segments = SEGMENTS,
    positions: np.ndarray = POSITIONS,
    **options: object,
) -> TurnObservation:
    collector = Collector(segments, positions, TOKENS, SETTINGS, seed=SEED, edge_layer=EDGE_LAYER)
    for layer, q, k in layers:
        collector.add(layer, q[positions], k, **options)
    return collector.observation(3)


def weights_of(q: Tensor, k: Tensor) -> np.ndarray:
    """Return float64 [rows, heads, tokens]: causal attention of the sampled rows."""
    repeated = k.double().repeat_interleave(QUERY_HEADS // KEY_HEADS, dim=1)
    logits = torch.einsum("rhd,jhd->rhj", q[POSITIONS].double(), repeated) / WIDTH**0.5
    is_hidden = torch.arange(TOKENS)[None] > torch.from_numpy(POSITIONS)[:, None]
    return logits.masked_fill(is_hidden[:, None], -torch.inf).softmax(-1).numpy()


def expected_of(layers: Layers) -> Expected:
    weights = {layer: weights_of(q, k) for layer, q, k in layers}
    return expected(weights, SEGMENTS, POSITIONS, SETTINGS, SEED, EDGE_LAYER)


@pytest.mark.parametrize("seed", range(5))
def test_use_and_mass_are_those_of_the_whole_matrix(seed: int) -> None:
    layers = layers_of(seed)
    wanted, seen = expected_of(layers), collected(layers)
    assert seen.turn == 3
    assert dict(zip(seen.ids, seen.use, strict=True)) == pytest.approx(wanted.use, rel=1e-5)
    pairs = [(seen.ids[b], seen.ids[a]) for b, a in zip(seen.later, seen.earlier, strict=True)]
    assert dict(zip(pairs, seen.mass, strict=True)) == pytest.approx(wanted.mass, rel=1e-5)


def test_a_block_that_no_row_can_see_is_not_observed() -> None:
    assert "d" not in collected(layers_of()).ids


def test_a_span_shifted_by_one_token_changes_the_result() -> None:
    shifted = Segments(SEGMENTS.ids, SEGMENTS.offsets + ([0] + [1] * 7 + [0]), SEGMENTS.owner)
    layers = layers_of()
    wanted = expected_of(layers)
    assert collected(layers, shifted).use != pytest.approx(list(wanted.use.values()), rel=1e-3)


def test_edges_come_from_the_edge_layer_alone() -> None:
    layers, other = layers_of(0), layers_of(1)
    changed = [
        mine if mine[0] == EDGE_LAYER else theirs
        for mine, theirs in zip(layers, other, strict=True)
    ]
    one, two = collected(layers), collected(changed)
    assert one.mass.tolist() == two.mass.tolist()
    assert one.use.tolist() != two.use.tolist()


def test_head_shards_add_up_to_the_whole() -> None:
    layers = layers_of()
    halves = [
        Collector(SEGMENTS, POSITIONS, TOKENS, SETTINGS, seed=SEED, edge_layer=EDGE_LAYER)
        for _ in range(2)
    ]
    for layer, q, k in layers:
        for half, collector in enumerate(halves):
            heads = slice(half * QUERY_HEADS // 2, (half + 1) * QUERY_HEADS // 2)
            collector.add(layer, q[POSITIONS][:, heads], k[:, half : half + 1])
    for mine, theirs in zip(halves[0].sums(), halves[1].sums(), strict=True):
        mine += theirs
    whole, reduced = collected(layers), halves[0].observation(3)
    assert reduced.use == pytest.approx(whole.use, rel=1e-5)
    assert reduced.mass == pytest.approx(whole.mass, rel=1e-5)


def test_a_log_sum_exp_of_the_engine_gives_the_same() -> None:
    layers = layers_of()
    collector = Collector(SEGMENTS, POSITIONS, TOKENS, SETTINGS, seed=SEED, edge_layer=EDGE_LAYER)
    for layer, q, k in layers:
        repeated = k.repeat_interleave(QUERY_HEADS // KEY_HEADS, dim=1)
        logits = torch.einsum("rhd,jhd->rhj", q[POSITIONS], repeated) / WIDTH**0.5
        is_hidden = torch.arange(TOKENS)[None] > torch.from_numpy(POSITIONS)[:, None]
        lse = logits.masked_fill(is_hidden[:, None], -torch.inf).logsumexp(-1)
        collector.add(layer, q[POSITIONS], k, lse=lse)
    assert collector.observation(0).use == pytest.approx(collected(layers).use, rel=1e-4)


@pytest.mark.parametrize("options", [{"softcap": 2.0}, {"scale": 0.1}, {"sinks": torch.ones(4)}])
def test_what_a_layer_adds_reaches_the_kernels(options: dict[str, object]) -> None:
    plain, other = collected(layers_of()), collected(layers_of(), **options)
    assert other.use != pytest.approx(plain.use, rel=1e-3)
    assert other.mass != pytest.approx(plain.mass, rel=1e-3)


@given(
    cuts=st.sets(st.integers(1, TOKENS - 1), min_size=1, max_size=12),
    owners=st.lists(st.integers(-1, 3), min_size=13, max_size=13),
    count=st.integers(1, 20),
    seed=st.integers(0, 2**64 - 1),
)
def test_every_layout_gives_a_legal_observation(
    cuts: set[int], owners: list[int], count: int, seed: int
) -> None:
    offsets = np.array([0, *sorted(cuts), TOKENS])
    used = sorted({owner for owner in owners[: len(offsets) - 1] if owner >= 0})
    owner = np.array(
        [used.index(o) if o >= 0 else -1 for o in owners[: len(offsets) - 1]], np.int32
    )
    segments = Segments(tuple("abcd"[i] for i in used), offsets, owner)
    positions = sample_rows(seed, 10, TOKENS, count)
    is_seen = np.repeat(owner, np.diff(offsets))[SETTINGS.drop_first : positions[-1] + 1] >= 0
    if is_seen.any():
        seen = collected(layers_of(), segments, positions)
        assert set(seen.ids) <= set(segments.ids)
        assert (seen.mass > 0).all()
    else:
        with pytest.raises(CaptureError, match="block"):
            collected(layers_of(), segments, positions)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_number_that_is_not_finite_gives_a_reason_and_no_observation(bad: float) -> None:
    layers = layers_of()
    layers[2][1][POSITIONS[0], 0, 0] = bad
    with pytest.raises(CaptureError, match="NaN or inf") as caught:
        collected(layers)
    assert caught.value.reason == "not-finite"


def test_a_sum_that_is_not_finite_gives_a_reason_and_no_observation() -> None:
    collector = Collector(SEGMENTS, POSITIONS, TOKENS, SETTINGS, seed=SEED, edge_layer=EDGE_LAYER)
    for layer, q, k in layers_of():
        collector.add(layer, q[POSITIONS], k)
    collector.sums()[1][2, 1] = torch.nan
    with pytest.raises(CaptureError) as caught:
        collector.observation(0)
    assert caught.value.reason == "not-finite"


def test_without_rows_blocks_or_layers_there_is_a_reason_and_no_observation() -> None:
    nobody = Segments((), np.array([0, TOKENS]), np.array([-1], np.int32))
    none: Sequence[tuple[Segments, np.ndarray, str]] = [
        (SEGMENTS, POSITIONS[:0], "no-rows"),
        (nobody, POSITIONS, "no-blocks"),
    ]
    for segments, positions, reason in none:
        with pytest.raises(CaptureError) as caught:
            collected(layers_of(), segments, positions)
        assert caught.value.reason == reason
    with pytest.raises(CaptureError) as caught:
        collected([layers_of()[0]])
    assert caught.value.reason == "no-layers"


def test_tokens_behind_the_keys_give_a_reason_and_no_observation() -> None:
    with pytest.raises(CaptureError) as caught:
        Collector(SEGMENTS, POSITIONS, TOKENS - 1, SETTINGS, seed=SEED, edge_layer=0)
    assert caught.value.reason == "refused"
