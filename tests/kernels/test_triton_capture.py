"""Triton's row capture: what has a slot is copied there, nothing else is touched."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
pytest.importorskip("triton", reason="triton is not installed (extra kernels)")

from recap_kernels.triton.capture import capture_rows  # noqa: E402
from tests.kernels.triton_cases import DEVICE  # noqa: E402


def test_rows_go_to_their_slots_and_the_rest_stays() -> None:
    q, lse = torch.randn(4, 3, 40, device=DEVICE).bfloat16(), torch.randn(4, 3, device=DEVICE)
    ring, kept = q.new_full((5, 3, 40), 9.0), lse.new_full((5, 3), 9.0)
    capture_rows(ring, kept, q, lse, torch.tensor([2, -1, 4, 0], dtype=torch.int32, device=DEVICE))
    assert torch.equal(ring[[2, 4, 0]], q[[0, 2, 3]])
    assert torch.equal(kept[[2, 4, 0]], lse[[0, 2, 3]])
    assert (ring[[1, 3]] == 9).all()
    assert (kept[[1, 3]] == 9).all()


def test_views_are_captured_without_lse() -> None:
    fused = torch.randn(2, 9, 16, device=DEVICE)
    ring = fused.new_zeros(6, 2, 16).transpose(0, 1)
    slot = torch.tensor([1, 0], dtype=torch.int32, device=DEVICE)
    capture_rows(ring, None, fused[:, 2:8], None, slot)
    assert torch.equal(ring, fused[:, 2:8].flip(0))
    capture_rows(ring, None, fused[:0, 2:8], None, slot[:0])


def test_more_values_than_one_step_are_copied() -> None:
    q = torch.randn(1, 24, 64, device=DEVICE).half()
    ring = q.new_zeros(1, 24, 64)
    capture_rows(ring, None, q, None, torch.zeros(1, dtype=torch.int32, device=DEVICE))
    assert torch.equal(ring, q)
