"""Triton's attention sums against the float64 reference: interpreted, or on a GPU where one is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
pytest.importorskip("triton", reason="triton is not installed (extra kernels)")

from recap_kernels import reference  # noqa: E402
from tests.kernels.triton_cases import DEVICE, Layer, make_layer, measure, relative  # noqa: E402

# numpy's words for what a GPU does in silence: lanes that are masked afterwards
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")

F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16
CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "one token": {"tokens": 1, "positions": (0, 5), "offsets": (0, 1), "group": 1},
    "31 tokens, rows before and after": {"tokens": 31, "positions": (40, 0, 30), "offsets": (3, 31)},
    "blocks of one token": {
        "tokens": 9,
        "positions": (8, 3),
        "offsets": tuple(range(10)),
        "kv_heads": 1,
    },
    "no blocks": {"offsets": (0,), "dtype": F16, "paged": torch.int32},
    "no row in a block": {"positions": (149, 148), "offsets": (0, 60, 120)},
    "bf16, 8 heads a group": {"dtype": BF16, "group": 8, "kv_heads": 1, "paged": torch.int64},
    "bf16, 16 heads a group, width 128": {
        "dtype": BF16, "group": 16, "kv_heads": 1, "width": 128, "paged": torch.int32,
        "positions": (149, 90, 149, 148, 0, 130, 131, 132, 133),
    },
    "fp16, 5 heads a group, width 80, sinks": {
        "dtype": F16, "group": 5, "kv_heads": 1, "width": 80, "sinks": True,
    },
    "width 96, tiles of 128": {"width": 96, "tile": 128, "dtype": BF16, "tokens": 260,
                               "positions": (259, 128, 127), "paged": torch.int32},
    "width 256, ungrouped": {"width": 256, "group": 1, "dtype": F16, "kv_heads": 3},
    "width 8": {"width": 8, "kv_heads": 1},
    "window shorter than a tile": {"window": 20, "paged": torch.int32},
    "window longer than a tile, sinks": {"window": 100, "sinks": True, "dtype": BF16},
    "window beyond the history": {"window": 100, "positions": (180, 400, 20)},
    "soft cap": {"softcap": 20.0, "magnitude": 8.0},
    "soft cap, window, sinks": {
        "softcap": 30.0, "window": 64, "sinks": True, "paged": torch.int64, "dtype": F16,
    },
    "huge logits": {"magnitude": 2e3},
    "scale": {"scale": 0.3, "k_scale": 0.25},
}  # fmt: skip


def exact(layer: Layer) -> Any:
    options = dict(layer.options)
    scale = options.pop("scale", None)
    if scale is not None:
        options["scale"] = scale * options.pop("k_scale")
    return reference(layer.q, layer.k, layer.plan, **options)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_sums_are_those_of_the_reference(case: dict[str, Any]) -> None:
    layer = make_layer(**case)
    stats, wanted = measure(layer), exact(layer)
    # a weight is as exact as its exponent: float32, so to 2^-23 of its size
    error = max(1e-6, 2**-23 * float(wanted.lse.abs().nan_to_num(posinf=0).max()))
    assert relative(stats.rho, wanted.rho) <= error
    torch.testing.assert_close(stats.lse.double().cpu(), wanted.lse.cpu(), rtol=0, atol=5 * error)
    if layer.plan.blocks and float(wanted.mass.sum()):
        assert relative(stats.mass, wanted.mass) <= error
    assert not stats.mass.isnan().any()


def test_without_mass_tiles_may_cross_blocks() -> None:
    layer = make_layer(dtype=BF16, paged=torch.int32)
    stats = measure(layer, blocks=False)
    assert stats.mass is None
    assert relative(stats.rho, exact(layer).rho) <= 1e-6


def test_a_known_lse_spares_the_first_pass() -> None:
    layer = make_layer(sinks=True, dtype=F16)
    own = measure(layer)
    given_natural = measure(layer, lse=own.lse)
    assert torch.equal(given_natural.rho, own.rho)
    assert torch.equal(given_natural.mass, own.mass)
    assert torch.equal(given_natural.lse, own.lse)


def test_sums_are_added_to_what_is_there() -> None:
    layer = make_layer()
    once = measure(layer)
    rho, mass = torch.ones_like(once.rho), torch.ones_like(once.mass)
    twice = measure(layer, rho=rho, mass=mass, accumulate=True)
    assert twice.rho is rho
    torch.testing.assert_close(rho, once.rho + 1)
    torch.testing.assert_close(mass, once.mass + 1)


def test_repeated_runs_give_the_same_bits() -> None:
    layer = make_layer(dtype=BF16, sinks=True)
    first, second = measure(layer), measure(layer)
    for one, other in zip(
        (first.rho, first.mass, first.lse), (second.rho, second.mass, second.lse), strict=True
    ):
        assert torch.equal(one, other)


def test_where_a_token_lies_changes_no_bit() -> None:
    layer = make_layer(dtype=F16)
    spread = make_layer(dtype=F16)
    order = torch.randperm(150, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    moved = torch.empty_like(spread.k)
    moved[order] = spread.k
    paged = replace(spread, k=moved, options={"kv_indices": order.int()})
    one, other = measure(layer), measure(paged)
    assert torch.equal(one.rho, other.rho)
    assert torch.equal(one.mass, other.mass)


def test_the_order_of_rows_changes_no_bit() -> None:
    positions = (149, 70, 12, 131, 100)
    rows = [3, 0, 4, 1, 2]
    layer = make_layer(positions=positions)
    other = make_layer(positions=tuple(positions[row] for row in rows))
    shuffled = measure(replace(other, q=layer.q[rows].contiguous(), k=layer.k))
    stats = measure(layer)
    assert torch.equal(stats.rho, shuffled.rho)
    assert torch.equal(stats.mass, shuffled.mass)
    assert torch.equal(stats.lse[rows], shuffled.lse)


def test_queries_and_keys_may_be_views() -> None:
    layer = make_layer(dtype=BF16)
    fused = torch.full((5, 6 + 4, 64), torch.nan, dtype=BF16, device=DEVICE)
    fused[:, :6] = layer.q
    by_head = layer.k.transpose(0, 1).contiguous().transpose(0, 1)
    assert by_head.stride(1) > by_head.stride(0)
    views = measure(replace(layer, q=fused[:, :6], k=by_head))
    assert torch.equal(views.rho, measure(layer).rho)


def test_a_row_that_sees_nothing_gives_nothing() -> None:
    layer = make_layer(positions=(-1, 20, -1), dtype=F16)
    stats = measure(layer)
    assert stats.lse[[0, 2]].isneginf().all()
    assert float(stats.rho.sum()) == pytest.approx(6)
    assert (stats.rho[21:] == 0).all()


def test_slots_may_lie_beyond_two_to_the_31_elements() -> None:
    """Virtual memory: of five billion elements only the rows named are ever touched."""
    if DEVICE == "cuda":
        pytest.skip("needs memory that is not backed")
    torch.use_deterministic_algorithms(False)  # would write all of it
    pool = torch.empty((40_000_000, 1, 64), dtype=F16)
    layer = make_layer(tokens=40, positions=(39,), offsets=(0, 40), kv_heads=1, dtype=F16)
    slots = torch.arange(40) * 1_000_000 + 7
    pool[slots] = layer.k
    far = measure(replace(layer, k=pool, options={"kv_indices": slots.int()}))
    assert torch.equal(far.rho, measure(layer).rho)


@settings(max_examples=10)
@given(
    tokens=st.integers(1, 80),
    rows=st.lists(st.integers(-1, 90), min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 80), max_size=3),
    shape=st.sampled_from([(1, 1, 16), (1, 3, 24), (2, 1, 40)]),
    window=st.sampled_from([0, 0, 1, 17]),
    sinks=st.booleans(),
)
def test_rows_give_away_what_the_reference_says(
    tokens: int,
    rows: list[int],
    cuts: list[int],
    shape: tuple[int, int, int],
    window: int,
    sinks: bool,
) -> None:
    offsets = (0, *sorted(min(cut, tokens) for cut in cuts))
    kv_heads, group, width = shape
    layer = make_layer(
        tokens=tokens, positions=tuple(rows), offsets=offsets, kv_heads=kv_heads, group=group,
        width=width, window=window, sinks=sinks,
    )  # fmt: skip
    stats, wanted = measure(layer), exact(layer)
    close = {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(stats.rho.double().cpu(), wanted.rho.cpu(), **close)
    torch.testing.assert_close(stats.mass.double().cpu(), wanted.mass.cpu(), **close)
    seeing = int(layer.plan.visible().any(1).sum()) * kv_heads * group
    assert float(stats.rho.sum()) <= seeing * (1 + 1e-5)
    if not sinks:
        assert float(stats.rho.sum()) == pytest.approx(seeing, rel=1e-5)


def test_what_no_shape_was_checked_for_is_refused() -> None:
    with pytest.raises(ValueError, match=r"head_dim 256 at most as torch.float16 .*; got 264"):
        measure(make_layer(width=264, dtype=F16))
    with pytest.raises(ValueError, match=r"head_dim 64 at most as torch.float32 .*; got 80"):
        measure(make_layer(width=80))
    with pytest.raises(ValueError, match="tiles of 64 or 128 tokens for backend 'triton'; got 32"):
        measure(make_layer(tile=32))
