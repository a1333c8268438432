"""The C++ kernels against the float64 reference, for every instruction set this processor has."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")

from recap_kernels import (  # noqa: E402
    Quantile,
    Stats,
    TimesMedian,
    attn_stats,
    finalize,
    finalize_reference,
    info,
    plan,
    reference,
)
from tests.kernels.cases import (  # noqa: E402
    FACTORS,
    Layer,
    case_id,
    layer_of,
    lse_arguments,
    pairwise,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

if info().backends["cpu"]:
    pytest.skip(f"cpu backend {info().backends['cpu']}", allow_module_level=True)

PLAIN = {
    "dtype": "float32",
    "group": 3,
    "width": 64,
    "keys": "contiguous",
    "sinks": False,
    "softcap": 0.0,
    "window": 0,
    "tokens": 4097,
    "blocks": "uneven",
    "rows": "spread",
}


@pytest.fixture(params=info().cpu_isas)
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force an instruction set."""
    monkeypatch.setenv("RECAP_KERNELS_ISA", request.param)
    return str(request.param)


@pytest.fixture
def threads() -> Iterator[None]:
    """Give back the number of threads a test changes."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def measure(layer: Layer, **options: Any) -> Stats:
    """Run the kernel into poisoned outputs."""
    blocks = layer.plan.blocks
    outputs = {
        "rho": torch.full((layer.plan.kv_len,), torch.nan),
        "mass": torch.full((blocks, blocks), torch.nan),
        "accumulate": False,
        "backend": "cpu",
    }
    return attn_stats(layer.q, layer.k, layer.plan, **layer.shared, **{**outputs, **options})


def error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return the relative 2-norm of the difference."""
    size = float(wanted.norm())
    return float((got.double() - wanted).norm()) / size if size else float(got.abs().max())


def assert_same_bits(first: Stats, second: Stats) -> None:
    assert torch.equal(first.rho, second.rho)
    assert torch.equal(first.lse, second.lse)
    assert torch.equal(first.mass, second.mass)


@pytest.mark.parametrize("case", pairwise(FACTORS), ids=case_id)
def test_sums_are_within_1e_6_of_the_reference(isa: str, case: dict[str, Any]) -> None:
    layer = layer_of(case)
    wanted = reference(layer.q, layer.k, layer.plan, **layer.shared)
    got = measure(layer, **lse_arguments(case, layer, wanted.lse))
    assert error(got.rho, wanted.rho) <= 1e-6
    if layer.plan.blocks:
        assert error(got.mass, wanted.mass) <= 1e-6
    seen = wanted.lse.isfinite()
    assert torch.equal(got.lse.isfinite(), seen)
    if seen.any():
        assert float((got.lse - wanted.lse)[seen].abs().max()) <= 5e-6


def test_block_mass_changes_no_sum_beyond_rounding(isa: str) -> None:
    layer = layer_of(PLAIN)
    assert error(measure(layer, mass=None).rho, measure(layer).rho.double()) <= 2e-7


@pytest.mark.parametrize("given", [False, True], ids=["own lse", "lse given"])
@pytest.mark.parametrize("sinks", [False, True])
def test_bits_depend_on_no_thread_count_and_no_repetition(
    isa: str, threads: None, given: bool, sinks: bool
) -> None:
    layer = layer_of({**PLAIN, "sinks": sinks, "tokens": 9000, "group": 16})
    lse = {"lse": measure(layer).lse} if given else {}
    torch.set_num_threads(1)
    alone = measure(layer, **lse)
    for count in (1, 2, 3, 7):
        torch.set_num_threads(count)
        assert_same_bits(measure(layer, **lse), alone)


def test_bits_do_not_depend_on_where_the_pages_lie(isa: str) -> None:
    layer = layer_of(PLAIN)
    order = torch.randperm(5000, generator=torch.Generator().manual_seed(1))[:4097]
    pool = torch.full((5000, *layer.k.shape[1:]), torch.nan)
    pool[order] = layer.k
    paged = Layer(layer.q, pool, layer.plan, {**layer.shared, "kv_indices": order})
    assert_same_bits(measure(paged), measure(layer))


def test_slots_may_lie_beyond_two_gigabytes(tmp_path: Path) -> None:
    layer = layer_of({**PLAIN, "dtype": "float16", "tokens": 33})
    slots = 2**31 // (2 * 2 * 64) + 40
    file = tmp_path / "pool"
    with file.open("wb") as opened:
        opened.truncate(slots * 2 * 2 * 64)  # sparse
    pool = torch.from_file(str(file), shared=True, size=slots * 128, dtype=torch.float16)
    pool = pool.view(slots, 2, 64)
    order = torch.arange(slots - 33, slots)
    pool[order] = layer.k
    paged = Layer(layer.q, pool, layer.plan, {**layer.shared, "kv_indices": order})
    assert_same_bits(measure(paged), measure(layer))


def test_sums_add_up_over_calls(isa: str) -> None:
    layer = layer_of(PLAIN)
    once = measure(layer)
    twice = measure(layer, rho=once.rho.clone(), mass=once.mass.clone(), accumulate=True)
    assert torch.equal(twice.rho, 2 * once.rho)
    assert torch.equal(twice.mass, 2 * once.mass)


@given(seed=st.integers(0, 999), cut=st.integers(1, 8), softcap=st.sampled_from([0.0, 3.0]))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_give_one_per_head_together_and_in_parts(
    isa: str, seed: int, cut: int, softcap: float
) -> None:
    layer = layer_of({**PLAIN, "tokens": 700, "softcap": softcap}, seed)
    whole = measure(layer)
    assert float(whole.rho.double().sum()) == pytest.approx(9 * 6, rel=1e-6)
    offsets = layer.plan.block_offsets
    parts = [
        measure(
            Layer(layer.q[rows], layer.k, plan(layer.plan.q_pos[rows], 700, offsets), layer.shared)
        )
        for rows in (slice(0, cut), slice(cut, 9))
    ]
    assert error(parts[0].rho + parts[1].rho, whole.rho.double()) <= 5e-7
    assert error(parts[0].mass + parts[1].mass, whole.mass.double()) <= 5e-7


@pytest.mark.parametrize("size", [1e2, 1e4])
@pytest.mark.parametrize("sign", [1, -1])
def test_huge_logits_keep_their_order(isa: str, size: float, sign: int) -> None:
    """Logits rise or fall by ``size`` over the history, so references move all the time."""
    tokens = 5000
    k = torch.zeros(tokens, 1, 64)
    k[:, 0, 0] = torch.linspace(-size, size, tokens) * sign
    q = torch.zeros(3, 2, 64)
    q[..., 0] = 8.0
    layer = Layer(
        q, k, plan(torch.tensor([2500, 4999, 4999]), tokens, torch.tensor([0, 9, tokens])), {}
    )
    wanted = reference(q, k, layer.plan)
    got = measure(layer)
    assert error(got.rho, wanted.rho) <= 1e-3  # what rounding logits of this size to float32 leaves
    assert float((got.lse - wanted.lse).abs().max()) <= 1e-6 * size
    assert float(got.rho.sum()) == pytest.approx(6, rel=1e-5)


def test_a_row_that_sees_nothing_gives_nothing(isa: str) -> None:
    layer = layer_of({**PLAIN, "tokens": 40, "rows": "blind"})
    got = measure(layer)
    assert got.lse[:3].tolist() == [[-math.inf] * 6] * 3
    assert float(got.rho.sum()) == pytest.approx(6 * 6)


@pytest.mark.parametrize("poison", [math.nan, math.inf])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_key_that_is_not_finite_is_refused_and_nothing_written(
    isa: str, poison: float, dtype: str
) -> None:
    layer = layer_of({**PLAIN, "dtype": dtype, "tokens": 3000})
    layer.k[2999, 1, 63] = poison
    rho, mass = torch.ones(3000), torch.ones(2, 2)
    with pytest.raises(ValueError, match="k must be finite; got NaN or inf"):
        measure(layer, rho=rho, mass=mass)
    assert torch.equal(rho, torch.ones(3000))
    assert torch.equal(mass, torch.ones(2, 2))


def test_logits_that_overflow_are_refused(isa: str) -> None:
    layer = layer_of({**PLAIN, "tokens": 64})
    for options in ({}, {"lse": torch.zeros(9, 6)}):
        with pytest.raises(ValueError, match=r"finite logits|lse must be"):
            measure(Layer(layer.q * 1e30, layer.k * 1e30, layer.plan, layer.shared), **options)


def test_an_lse_below_the_logits_is_refused(isa: str) -> None:
    layer = layer_of({**PLAIN, "tokens": 64})
    with pytest.raises(ValueError, match="is lse_base right"):
        measure(layer, lse=measure(layer).lse - 20)


def test_small_halves_are_read_exactly(isa: str) -> None:
    """Denormal float16 numbers count although denormal float32 ones are flushed while it runs."""
    halves = torch.arange(-(2**15), 2**15).to(torch.int16).view(torch.float16)
    k = halves[halves.abs() < 2e-4].view(-1, 1, 1)
    q = torch.full((1, 1, 1), 2.0**15, dtype=torch.float16)
    turn = plan(torch.tensor([len(k)]), len(k))
    assert error(attn_stats(q, k, turn, backend="cpu").rho, reference(q, k, turn).rho) <= 1e-6


def test_memory_without_an_lse_stays_below_32_megabytes() -> None:
    """At the length and number of blocks where most is kept; memory by Linux's own count."""
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if not os.access(reset, os.W_OK):
        pytest.skip("no count of memory at its peak here")
    tokens = 131072
    offsets = torch.linspace(0, tokens, 1001).int()
    turn = plan(torch.arange(tokens - 64, tokens), tokens, offsets)
    layer = Layer(torch.randn(64, 2, 8), torch.randn(tokens, 1, 8), turn, {})
    outputs = {"rho": torch.zeros(tokens), "mass": torch.zeros(1000, 1000), "backend": "cpu"}

    def kilobytes(field: str) -> int:
        return int(status.read_text().split(f"{field}:")[1].split()[0])

    measure(layer_of({**PLAIN, "tokens": 64}))  # torch loads what a first call needs
    reset.write_text("5")
    before = kilobytes("VmRSS")
    attn_stats(layer.q, layer.k, layer.plan, **outputs)
    assert kilobytes("VmHWM") - before < 32_000


def test_denormals_are_what_they_were_after_a_call(isa: str) -> None:
    measure(layer_of({**PLAIN, "tokens": 64}))
    assert float(torch.tensor(1e-40) * 1) > 0


def test_the_module_brings_no_openmp_of_its_own() -> None:
    from recap_kernels import _cpu

    assert b"libgomp" not in Path(_cpu.__file__).read_bytes()


def test_an_unknown_instruction_set_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECAP_KERNELS_ISA", "mmx")
    with pytest.raises(ValueError, match=r"isa must be one of base.*got 'mmx'"):
        measure(layer_of({**PLAIN, "tokens": 64}))


@given(seed=st.integers(0, 999), window=st.sampled_from([0, 30]), drop_first=st.integers(0, 5))
@settings(max_examples=25)
def test_finalize_clips_at_the_bits_of_the_reference(
    seed: int, window: int, drop_first: int
) -> None:
    layer = layer_of({**PLAIN, "tokens": 300, "blocks": "with empty ones", "window": window}, seed)
    stats = measure(layer)
    exclude = torch.rand(300, generator=torch.Generator().manual_seed(seed)) < 0.1
    for clip in (Quantile(0.95), Quantile(1.0), TimesMedian(8.0), None):
        options = {"layers": 1, "heads": 6, "clip": clip, "drop_first": drop_first}
        wanted = finalize_reference(stats, layer.plan, **options, exclude=exclude)
        got = finalize(
            stats.rho, layer.plan, **options, mass=stats.mass, exclude=exclude, backend="cpu"
        )
        assert torch.equal(got.clip_value.double(), wanted.clip_value.double())
        assert torch.equal(got.row_count, wanted.row_count.int())
        torch.testing.assert_close(got.block_mean, wanted.block_mean.float(), rtol=3e-7, atol=0)
        torch.testing.assert_close(got.mass, wanted.mass.float(), rtol=3e-7, atol=0)
