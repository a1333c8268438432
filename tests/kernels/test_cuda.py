"""The CUDA backend beside Triton's, and CUDA graphs; most of it needs a GPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")

from recap_kernels import Quantile, TimesMedian, attn_stats, capture_rows_, cuda, finalize  # noqa: E402
from recap_kernels.backends import unavailable  # noqa: E402
from tests.kernels.triton_cases import make_layer  # noqa: E402

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
with_cuda = pytest.mark.skipif(
    bool(unavailable("cuda", "cuda")), reason="_cuda is not built, or no GPU"
)


def test_what_is_missing_is_said() -> None:
    reason = unavailable("cuda", "cpu")
    assert "is not built" in reason or "works on a GPU, not on 'cpu'" in reason
    with pytest.raises(ValueError, match="backend 'cuda': "):
        finalize(torch.ones(150), make_layer().plan.to("cpu"), layers=1, heads=1, backend="cuda")


def test_rows_in_pieces_are_refused() -> None:
    q, ring = torch.zeros(2, 4, 3).transpose(1, 2), torch.zeros(5, 3, 4)
    with pytest.raises(ValueError, match="q must have contiguous rows"):
        cuda.capture_rows(ring, None, q, None, torch.zeros(2, dtype=torch.int32))
    slot = torch.zeros(4, dtype=torch.int32)[::2]
    with pytest.raises(ValueError, match="slot must be contiguous"):
        cuda.capture_rows(ring, None, torch.zeros(2, 3, 4), None, slot)


@pytest.mark.gpu
@with_cuda
@pytest.mark.parametrize("clip", [Quantile(0.95), TimesMedian(3.0), None])
def test_cuda_and_triton_finalize_to_the_same_bits(clip: Quantile | TimesMedian | None) -> None:
    layer = make_layer(
        tokens=9000, positions=(8999, 5000, 7000, 7000), offsets=(0, 4000, 4001, 9000)
    )
    stats = attn_stats(layer.q, layer.k, layer.plan, mass=torch.zeros(3, 3, device="cuda"))
    shared = {"layers": 1, "heads": 6, "mass": stats.mass, "clip": clip}
    one = finalize(stats.rho, layer.plan, backend="cuda", **shared)
    other = finalize(stats.rho, layer.plan, backend="triton", **shared)
    for name in ("block_mean", "mass", "clip_value", "row_count"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.gpu
@with_cuda
def test_cuda_captures_what_triton_captures() -> None:
    from recap_kernels.triton.capture import capture_rows

    q, lse = torch.randn(7, 8, 128, device="cuda").bfloat16(), torch.randn(7, 8, device="cuda")
    slot = torch.tensor([3, -1, 0, 4, -1, 8, 2], dtype=torch.int32, device="cuda")
    rings = [(q.new_zeros(9, 8, 128), lse.new_zeros(9, 8)) for _ in range(2)]
    cuda.capture_rows(*rings[0], q, lse, slot)
    capture_rows(*rings[1], q, lse, slot)
    assert torch.equal(rings[0][0], rings[1][0])
    assert torch.equal(rings[0][1], rings[1][1])


@pytest.mark.gpu
@on_gpu
def test_capture_replays_in_a_cuda_graph() -> None:
    q, ring = torch.randn(4, 8, 64, device="cuda"), torch.zeros(5, 8, 64, device="cuda")
    slot = torch.tensor([2, -1, 0, -1], dtype=torch.int32, device="cuda")
    capture_rows_(ring, None, q, None, slot)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        capture_rows_(ring, None, q, None, slot)
    q.normal_()
    slot.copy_(torch.tensor([-1, 4, -1, 1], dtype=torch.int32))
    graph.replay()
    assert torch.equal(ring[[4, 1]], q[[1, 3]])


@pytest.mark.gpu
@on_gpu
def test_statistics_replay_in_a_cuda_graph() -> None:
    layer = make_layer(tokens=3000, positions=(2999, 1500, 1500, 7), offsets=(0, 700, 3000),
                       dtype=torch.bfloat16, width=128, paged=torch.int32)  # fmt: skip
    rho, mass = torch.zeros(3000, device="cuda"), torch.zeros(2, 2, device="cuda")

    def measure() -> torch.Tensor:
        return attn_stats(
            layer.q, layer.k, layer.plan, rho=rho, mass=mass, accumulate=False, **layer.options
        ).lse

    eager, eager_rho, eager_mass = measure().clone(), rho.clone(), mass.clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        lse = measure()
    rho.fill_(torch.nan)
    mass.fill_(torch.nan)
    graph.replay()
    assert torch.equal(lse, eager)
    assert torch.equal(rho, eager_rho)
    assert torch.equal(mass, eager_mass)
