"""The plan: what a row sees, which block a position lies in, and what is refused."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")

from recap_kernels import Quantile, TimesMedian, plan  # noqa: E402


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def test_a_row_sees_itself_and_what_came_before() -> None:
    assert plan(ints(0, 2, 9), 4).visible().int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 1, 0],
        [1, 1, 1, 1],
    ]


def test_a_window_of_two_is_the_row_and_its_predecessor() -> None:
    assert plan(ints(0, 2, 9), 4, window=2).visible().int().tolist() == [
        [1, 0, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 0, 0],
    ]


def test_positions_know_their_block_also_beside_empty_ones() -> None:
    offsets = ints(1, 3, 3, 4)
    assert plan(ints(0), 6, offsets).block_of(torch.arange(6)).tolist() == [-1, 0, 0, 2, -1, -1]


def test_without_offsets_there_are_no_blocks() -> None:
    empty = plan(ints(0), 3)
    assert empty.blocks == 0
    assert empty.block_of(torch.arange(3)).tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    "offsets", [(0, 3, 2), (-1, 2), (0, 9), ()], ids=["falls", "negative", "beyond", "none"]
)
def test_bad_offsets_are_refused(offsets: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="block_offsets must"):
        plan(ints(0), 8, ints(*offsets))


def test_other_shapes_and_types_are_refused() -> None:
    with pytest.raises(ValueError, match="q_pos must be int32 or int64; got torch"):
        plan(torch.zeros(2), 8)
    with pytest.raises(ValueError, match="q_pos must have one dimension"):
        plan(ints(0)[None], 8)
    with pytest.raises(ValueError, match="at least 0"):
        plan(ints(0), 8, window=-1)


@pytest.mark.parametrize("q", [0, -0.1, 1.5, float("nan")])
def test_quantiles_are_shares(q: float) -> None:
    with pytest.raises(ValueError, match="quantile must be"):
        Quantile(q)


@pytest.mark.parametrize("factor", [0, -1, float("inf"), float("nan")])
def test_median_factors_are_positive(factor: float) -> None:
    with pytest.raises(ValueError, match="factor must be"):
        TimesMedian(factor)
