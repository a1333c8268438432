"""Triton's finalize: the clip value bit for bit, means and counts against the float64 reference."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
pytest.importorskip("triton", reason="triton is not installed (extra kernels)")

from recap_kernels import Clip, Quantile, StatsPlan, TimesMedian, finalize, plan  # noqa: E402
from tests.kernels.triton_cases import DEVICE  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")


def turn(positions: list[int], tokens: int, offsets: list[int], window: int = 0) -> StatsPlan:
    where = {"device": DEVICE}
    return plan(
        torch.tensor(positions, **where), tokens, torch.tensor(offsets, **where), window=window
    )


def exact(rho: torch.Tensor, rows: StatsPlan, clip: Clip, **options: Any) -> tuple[float, Any]:
    """Return the clip value by sorting float32 shares, and the reference's result."""
    done = finalize(rho, rows, clip=clip, backend="reference", **options)
    share = rho / (options["layers"] * options["heads"] * done.row_count.clamp(min=1)).float()
    counted = done.row_count > 0
    counted[: options.get("drop_first", 4)] = False
    if options.get("exclude") is not None:
        counted &= ~options["exclude"]
    values = share[counted].sort().values
    if clip is None or not len(values):
        return float("inf"), done
    q, factor = (clip.q, 1.0) if isinstance(clip, Quantile) else (0.5, clip.factor)
    rank = max(1, -int(-q * len(values) // 1))  # ceil of a float64
    return float(values[rank - 1] * factor), done


@settings(max_examples=25)
@given(
    values=st.lists(
        st.floats(0, 64, width=32) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=70
    ),
    rows=st.lists(st.integers(-1, 90), min_size=1, max_size=5),
    cuts=st.lists(st.integers(0, 70), max_size=3),
    clip=st.sampled_from([Quantile(0.95), Quantile(1.0), Quantile(1e-6), TimesMedian(3.0), None]),
    window=st.sampled_from([0, 0, 1, 30]),
    drop_first=st.sampled_from([0, 4]),
)
def test_clip_value_has_the_bits_of_the_nearest_rank(
    values: list[float],
    rows: list[int],
    cuts: list[int],
    clip: Clip,
    window: int,
    drop_first: int,
) -> None:
    rho = torch.tensor(values, device=DEVICE)
    tokens = len(values)
    which = turn(rows, tokens, [0, *sorted(min(cut, tokens) for cut in cuts)], window)
    options = {"layers": 2, "heads": 3, "drop_first": drop_first}
    cut, wanted = exact(rho, which, clip, **options)
    done = finalize(rho, which, clip=clip, backend="triton", **options)
    assert done.clip_value.tolist() == [cut]
    assert torch.equal(done.row_count, wanted.row_count)
    torch.testing.assert_close(done.block_mean, wanted.block_mean, rtol=1e-6, atol=1e-30)


def test_tokens_of_several_programs_are_counted_together() -> None:
    source = torch.Generator().manual_seed(3)
    rho = (torch.randn(4500, generator=source).abs() ** 8).to(DEVICE)
    exclude = (torch.rand(4500, generator=source) < 0.1).to(DEVICE)
    which = turn([4499, 2000, 4400], 4500, [0, 1500, 1500, 3900, 4500])
    for clip in (Quantile(0.95), Quantile(0.123456789)):
        options: dict[str, Any] = {"layers": 8, "heads": 32, "exclude": exclude}
        cut, wanted = exact(rho, which, clip, **options)
        done = finalize(rho, which, clip=clip, backend="triton", **options)
        assert done.clip_value.tolist() == [cut]
        torch.testing.assert_close(done.block_mean, wanted.block_mean, rtol=1e-6, atol=0)


def test_mass_is_a_mean_over_rows_and_heads() -> None:
    which = turn([0, 5, 5, 7], 8, [0, 2, 4, 8])
    mass = torch.arange(9.0, device=DEVICE).view(3, 3)
    rho = torch.ones(8, device=DEVICE)
    done = finalize(rho, which, layers=1, heads=2, mass=mass, backend="triton")
    rows = torch.tensor([1, 1, 3], device=DEVICE)  # a block without rows is not divided by 0
    assert torch.equal(done.mass, mass / (2 * rows[:, None]))


def test_nothing_counted_gives_zeros_and_no_clip() -> None:
    which = turn([-1], 6, [0, 3, 6])
    done = finalize(torch.ones(6, device=DEVICE), which, layers=1, heads=1, backend="triton")
    assert done.block_mean.tolist() == [0.0, 0.0]
    assert done.clip_value.tolist() == [float("inf")]
    assert done.row_count.tolist() == [0] * 6
