"""The torch operators: schema, fakes, and compiled graphs."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")

from recap_kernels import StatsPlan, attn_stats, finalize, info, ops, plan  # noqa: E402

TOKENS = 40
BACKENDS = [name for name in ("cpu", "reference") if not info().backends[name]]


def turn() -> StatsPlan:
    return plan(torch.tensor([3, 39, 10, 10, 22]), TOKENS, torch.tensor([0, 5, 5, 30, 40]), tile=16)


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator().manual_seed(0)
    return torch.randn(5, 6, 8, generator=source), torch.randn(TOKENS, 2, 8, generator=source)


def passes(operator: Any, arguments: tuple[Any, ...]) -> bool:
    return set(torch.library.opcheck(operator, arguments).values()) == {"SUCCESS"}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("blocks", [0, 4])
@pytest.mark.parametrize("given", [False, True])
def test_attn_stats_is_a_sound_operator(backend: str, blocks: int, given: bool) -> None:
    q, k = tensors()
    mass = torch.zeros(blocks, blocks) if blocks else None
    lse = attn_stats(q, k, turn(), backend="reference").lse if given else None
    call = (torch.zeros(TOKENS), mass, q, k, turn().tensors(), TOKENS, 0, 16, None, 0.3, 0.0)
    options = (torch.zeros(6), lse, "e", False, True, backend)
    if given:
        call = (*call[:9], 8**-0.5, 0.0)
    assert passes(ops.attn_stats_, (*call, *options))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("with_mass", [False, True])
def test_finalize_is_a_sound_operator(backend: str, with_mass: bool) -> None:
    mass = torch.rand(4, 4) if with_mass else None
    exclude = torch.zeros(TOKENS, dtype=torch.bool)
    call = (torch.rand(TOKENS), mass, turn().tensors(), TOKENS, 0, 16, 1, 6, 0.9, 0.0, 4, exclude)
    assert passes(ops.finalize, (*call, backend))


@pytest.mark.parametrize("with_lse", [False, True])
def test_capture_rows_is_a_sound_operator(with_lse: bool) -> None:
    q, _ = tensors()
    rings = torch.zeros(4, 6, 8), torch.zeros(4, 6) if with_lse else None
    slot = torch.tensor([0, -1, 3, 1, -1], dtype=torch.int32)
    lse = torch.rand(5, 6) if with_lse else None
    assert passes(torch.ops.recap.capture_rows_.default, (*rings, q, lse, slot))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_turn_gives_the_same_bits(backend: str) -> None:
    q, k = tensors()
    shared = turn()

    def measure(rho: torch.Tensor, mass: torch.Tensor) -> tuple[torch.Tensor, ...]:
        stats = attn_stats(q, k, shared, rho=rho, mass=mass, backend=backend)
        done = finalize(stats.rho, shared, layers=1, heads=6, mass=stats.mass, backend=backend)
        return stats.lse, done.block_mean, done.mass, done.row_count

    plain = torch.zeros(TOKENS), torch.zeros(4, 4)
    compiled = torch.zeros(TOKENS), torch.zeros(4, 4)
    wanted = measure(*plain)
    got = torch.compile(measure, fullgraph=True, backend="aot_eager")(*compiled)
    assert all(torch.equal(a, b) for a, b in zip((*wanted, *plain), (*got, *compiled), strict=True))


def test_tracing_refuses_what_a_call_refuses() -> None:
    q, _ = tensors()
    shared = turn()
    with (
        torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True),
        pytest.raises(ValueError, match="k must be of head_dim 8"),
    ):
        attn_stats(q, torch.empty(TOKENS, 2, 7), shared)
