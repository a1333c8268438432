"""The reference: compared with attention written out in full, and with what must hold of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")

from recap_kernels import Quantile, Stats, TimesMedian, finalize_reference, plan, reference  # noqa: E402

EXACT = {"rtol": 1e-12, "atol": 1e-12}
POSITIONS = (2, 5, 5, 8, 11)
OFFSETS = (0, 3, 3, 7, 12)
TOKENS, KV_HEADS, GROUP, WIDTH = 12, 2, 3, 8
HEADS = KV_HEADS * GROUP


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values)


def tensors(seed: int = 0, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return q ``[5, 6, 8]`` and k ``[12, 2, 8]``, float64."""
    source = torch.Generator().manual_seed(seed)
    q = torch.randn(len(POSITIONS), HEADS, WIDTH, generator=source, dtype=torch.float64)
    return q * scale, torch.randn(TOKENS, KV_HEADS, WIDTH, generator=source, dtype=torch.float64)


def test_sums_match_attention_written_out_in_full() -> None:
    q, k = tensors()
    stats = reference(q, k, plan(ints(*POSITIONS), TOKENS, ints(*OFFSETS)))
    rho = [0.0] * TOKENS
    mass = [[0.0] * 4 for _ in range(4)]
    block = [b for b in range(4) for _ in range(OFFSETS[b], OFFSETS[b + 1])]
    for row, position in enumerate(POSITIONS):
        for head in range(HEADS):
            dots = [float(q[row, head] @ k[j, head // GROUP]) for j in range(position + 1)]
            weights = [math.exp(dot / math.sqrt(WIDTH)) for dot in dots]
            for j, weight in enumerate(weights):
                rho[j] += weight / sum(weights)
                mass[block[position]][block[j]] += weight / sum(weights)
            assert float(stats.lse[row, head]) == pytest.approx(math.log(sum(weights)))
    torch.testing.assert_close(stats.rho, torch.tensor(rho, dtype=torch.float64), **EXACT)
    torch.testing.assert_close(stats.mass, torch.tensor(mass, dtype=torch.float64), **EXACT)


@given(seed=st.integers(0, 99), scale=st.floats(0.01, 1e4), softcap=st.sampled_from([0.0, 5.0]))
def test_without_sinks_every_row_and_head_gives_one(
    seed: int, scale: float, softcap: float
) -> None:
    q, k = tensors(seed, scale)
    stats = reference(q, k, plan(ints(*POSITIONS), TOKENS), softcap=softcap)
    assert float(stats.rho.sum()) == pytest.approx(len(POSITIONS) * HEADS, rel=1e-12)
    assert (stats.rho >= 0).all()


@given(seed=st.integers(0, 99))
def test_sinks_take_their_share_of_every_row(seed: int) -> None:
    q, k = tensors(seed)
    turn = plan(ints(*POSITIONS), TOKENS)
    bare, sunk = reference(q, k, turn), reference(q, k, turn, sinks=torch.full((HEADS,), 0.5))
    torch.testing.assert_close(sunk.lse, torch.logaddexp(bare.lse, torch.tensor(0.5).double()))
    given_away = torch.exp(bare.lse - sunk.lse).sum()
    assert float(sunk.rho.sum()) == pytest.approx(float(given_away))
    assert float(sunk.rho.sum()) < len(POSITIONS) * HEADS


def test_each_head_has_its_own_sink() -> None:
    q, k = tensors()
    turn = plan(ints(*POSITIONS), TOKENS)
    sinks = torch.full((HEADS,), -torch.inf)
    sinks[1] = 1e3
    stats = reference(q, k, turn, sinks=sinks)
    assert float(stats.rho.sum()) == pytest.approx(len(POSITIONS) * (HEADS - 1))


def test_tokens_after_every_row_receive_nothing() -> None:
    q, k = tensors()
    stats = reference(q, k, plan(ints(2, 5, 5, 8, 8), TOKENS))
    assert (stats.rho[:9] > 0).all()
    assert (stats.rho[9:] == 0).all()


def test_a_token_just_outside_the_window_receives_nothing() -> None:
    q, k = tensors()
    stats = reference(q[:1], k, plan(ints(8), TOKENS, window=3))
    assert (stats.rho > 0).nonzero().flatten().tolist() == [6, 7, 8]


def test_grouped_heads_equal_repeated_keys() -> None:
    q, k = tensors()
    turn = plan(ints(*POSITIONS), TOKENS, ints(*OFFSETS))
    grouped, repeated = reference(q, k, turn), reference(q, k.repeat_interleave(GROUP, 1), turn)
    assert torch.equal(grouped.rho, repeated.rho)
    assert torch.equal(grouped.mass, repeated.mass)


def test_soft_cap_is_tanh_and_keeps_huge_logits_finite() -> None:
    q, k = tensors()
    turn = plan(ints(*POSITIONS), TOKENS)
    stats = reference(q * 1e6, k, turn, scale=1.0, softcap=30.0)
    assert stats.rho.isfinite().all()
    assert float(stats.lse.abs().max()) <= 30 + math.log(TOKENS)
    first = reference(q[:1], k, plan(ints(0), 1), scale=1.0, softcap=2.0)
    dots = (q[0] * k[0].repeat_interleave(GROUP, 0)).sum(1)
    torch.testing.assert_close(first.lse[0], 2 * torch.tanh(dots / 2))


def test_scale_multiplies_the_logits() -> None:
    q, k = tensors()
    turn = plan(ints(*POSITIONS), TOKENS)
    torch.testing.assert_close(
        reference(q, k, turn, scale=0.5).rho, reference(q * 5, k, turn, scale=0.1).rho
    )
    torch.testing.assert_close(
        reference(q, k, turn, scale=0.0).lse[:, 0].exp(), turn.q_pos.double() + 1
    )


def test_pages_may_lie_anywhere() -> None:
    q, k = tensors()
    turn = plan(ints(*POSITIONS), TOKENS, ints(*OFFSETS))
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))[:TOKENS]
    pool = torch.full((20, KV_HEADS, WIDTH), torch.nan, dtype=torch.float64)
    pool[order] = k
    paged = reference(q, pool, turn, kv_indices=order.int())
    assert torch.equal(paged.rho, reference(q, k, turn).rho)


def test_a_row_of_mass_sums_to_what_falls_on_blocks() -> None:
    q, k = tensors()
    stats = reference(q, k, plan(ints(*POSITIONS), TOKENS, ints(*OFFSETS)))
    rows = torch.tensor([1, 0, 2, 2], dtype=torch.float64)  # of each block
    torch.testing.assert_close(stats.mass.sum(1), rows * HEADS)
    assert (stats.mass.triu(1) == 0).all()
    partly = reference(q, k, plan(ints(*POSITIONS), TOKENS, ints(3, 7)))
    assert 0 < float(partly.mass) < 2 * HEADS


def test_a_row_that_sees_nothing_gives_nothing() -> None:
    q, k = tensors()
    stats = reference(q[:2], k, plan(ints(-1, 3), TOKENS, ints(0, 12)))
    assert stats.lse[0].tolist() == [-math.inf] * HEADS
    assert float(stats.rho.sum()) == pytest.approx(HEADS)


def test_sums_add_over_rows() -> None:
    q, k = tensors()
    whole = reference(q, k, plan(ints(*POSITIONS), TOKENS, ints(*OFFSETS)))
    parts = [
        reference(q[rows], k, plan(ints(*POSITIONS)[rows], TOKENS, ints(*OFFSETS)))
        for rows in (slice(0, 2), slice(2, 5))
    ]
    torch.testing.assert_close(parts[0].rho + parts[1].rho, whole.rho, **EXACT)
    torch.testing.assert_close(parts[0].mass + parts[1].mass, whole.mass, **EXACT)


def test_half_precision_inputs_are_read_exactly() -> None:
    q, k = (t.bfloat16() for t in tensors())
    turn = plan(ints(*POSITIONS), TOKENS)
    assert torch.equal(reference(q, k, turn).rho, reference(q.double(), k.double(), turn).rho)


@pytest.mark.parametrize(
    ("q_shape", "k_shape", "message"),
    [
        ((4, 6, 8), (12, 2, 8), "q must be"),
        ((5, 6, 7), (12, 2, 8), "q must be"),
        ((5, 5, 8), (12, 2, 8), "multiple of key heads"),
        ((5, 6, 8), (11, 2, 8), "k holds 11 tokens, the plan has 12"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    q_shape: tuple[int, ...], k_shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        reference(torch.zeros(q_shape), torch.zeros(k_shape), plan(ints(*POSITIONS), TOKENS))


def test_indices_and_sinks_that_do_not_fit_are_refused() -> None:
    q, k = tensors()
    turn = plan(ints(*POSITIONS), TOKENS)
    with pytest.raises(ValueError, match=r"kv_indices must be \[12\]"):
        reference(q, k, turn, kv_indices=ints(0, 1))
    with pytest.raises(ValueError, match=r"sinks must be \[6\]"):
        reference(q, k, turn, sinks=torch.zeros(2))


def finalized(rho: list[float], **options: object) -> tuple[list[float], float]:
    """Return block means and clip value of blocks of two tokens that one last row sees."""
    tokens = len(rho)
    turn = plan(ints(tokens - 1), tokens, torch.arange(0, tokens + 1, 2))
    empty = torch.zeros(turn.blocks, turn.blocks, dtype=torch.float64)
    stats = Stats(torch.tensor(rho, dtype=torch.float64), empty, torch.zeros(1, 1))
    out = finalize_reference(stats, turn, layers=1, heads=1, **{"drop_first": 0, **options})
    return out.block_mean.tolist(), float(out.clip_value)


def test_importance_is_a_mean_over_layers_heads_and_rows_that_see() -> None:
    turn = plan(ints(1, 3, 3), 4, ints(0, 2, 4))
    stats = Stats(
        torch.tensor([12.0, 12.0, 12.0, 12.0]).double(), torch.ones(2, 2).double(), torch.ones(3, 2)
    )
    out = finalize_reference(stats, turn, layers=2, heads=2, clip=None, drop_first=0)
    assert out.row_count.tolist() == [3, 3, 2, 2]
    assert out.block_mean.tolist() == [1.0, 1.5]
    assert out.mass.tolist() == [[0.5, 0.5], [0.25, 0.25]]
    assert out.clip_value.tolist() == [math.inf]


def test_clipping_cuts_at_the_nearest_rank() -> None:
    assert finalized([1, 2, 3, 100], clip=Quantile(0.75)) == ([1.5, 3.0], 3.0)
    assert finalized([1, 2, 3, 100], clip=Quantile(1.0)) == ([1.5, 51.5], 100.0)
    assert finalized([1, 2, 3, 100], clip=TimesMedian(2)) == ([1.5, 3.5], 4.0)
    assert finalized([1, 2, 3, 100], clip=None) == ([1.5, 51.5], math.inf)


def test_the_first_positions_count_nowhere() -> None:
    assert finalized([100, 2, 3, 4], clip=Quantile(1.0), drop_first=1) == ([2.0, 3.5], 4.0)
    assert finalized([100, 90, 3, 4], clip=Quantile(1.0), drop_first=2) == ([0.0, 3.5], 4.0)


def test_excluded_tokens_count_nowhere() -> None:
    exclude = torch.tensor([False, False, False, True])
    assert finalized([1, 2, 3, 100], clip=Quantile(1.0), exclude=exclude) == ([1.5, 3.0], 3.0)


def test_tokens_no_row_sees_do_not_pull_the_quantile_down() -> None:
    turn = plan(ints(1), 4, ints(0, 2, 4))
    stats = Stats(torch.tensor([4.0, 2.0, 0, 0]).double(), torch.zeros(2, 2), torch.zeros(1, 1))
    out = finalize_reference(stats, turn, layers=1, heads=1, clip=Quantile(0.5), drop_first=0)
    assert (float(out.clip_value), out.block_mean.tolist()) == (2.0, [2.0, 0.0])


def test_nothing_measured_gives_zeros() -> None:
    turn = plan(ints(-1), 4, ints(0, 2, 4))
    stats = reference(torch.zeros(1, 2, 4), torch.zeros(4, 1, 4), turn)
    out = finalize_reference(stats, turn, layers=1, heads=2)
    assert out.block_mean.tolist() == [0.0, 0.0]
    assert float(out.clip_value) == math.inf


@given(seed=st.integers(0, 99))
def test_block_means_and_mass_are_shares(seed: int) -> None:
    q, k = tensors(seed, 3.0)
    turn = plan(ints(*POSITIONS), TOKENS, ints(*OFFSETS))
    out = finalize_reference(reference(q, k, turn), turn, layers=1, heads=HEADS)
    for values in (out.block_mean, out.mass):
        assert ((values >= 0) & (values <= 1 + 1e-12)).all()
