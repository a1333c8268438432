"""What lies between the Triton kernels is small, and cutting the work to keep it so changes no sum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
pytest.importorskip("triton", reason="triton is not installed (extra kernels)")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from recap_kernels import plan, reference  # noqa: E402
from recap_kernels.backends import AttnCall  # noqa: E402
from recap_kernels.triton import backend, workspace  # noqa: E402
from tests.kernels.triton_cases import DEVICE, Layer, make_layer, measure, relative  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")

MODELS = {"Qwen3-Coder-30B-A3B": (32, 4, 128), "gpt-oss-20b": (64, 8, 64)}


def call_of(layer: Layer, *, lse: Any = None, mass: bool = True) -> AttnCall:
    """Return what the backend is handed, without the checks and defaults of the operator."""
    blocks = layer.plan.blocks
    return AttnCall(
        q=layer.q, k=layer.k, plan=layer.plan, kv_indices=None, scale=0.125, softcap=0.0, sinks=None,
        lse=lse, rho=torch.zeros(layer.plan.kv_len, device=DEVICE),
        mass=torch.zeros(blocks, blocks, device=DEVICE) if mass else None, accumulate=True,
    )  # fmt: skip


def meta_call(
    model: tuple[int, int, int], tokens: int, rows: int, blocks: int, *, tile: int = 128
) -> AttnCall:
    """Return a call of which only the plan takes memory."""
    heads, kv_heads, width = model
    generator = torch.Generator().manual_seed(tokens + rows)
    cuts = torch.randint(0, tokens + 1, (blocks + 1,), generator=generator).sort().values
    turn = plan(torch.arange(tokens - rows, tokens), tokens, cuts, tile=tile)
    q = torch.empty(rows, heads, width, dtype=torch.bfloat16, device="meta")
    k = torch.empty(tokens, kv_heads, width, dtype=torch.bfloat16, device="meta")
    return replace(call_of(Layer(q, k, turn), mass=False), mass=torch.empty(0, device="meta"))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("tokens", [32768, 131072])
@pytest.mark.parametrize("rows", [16, 64, 256, 512])
@pytest.mark.parametrize("blocks", [1, 100, 1000])
def test_a_layer_takes_less_than_eight_megabytes(
    model: tuple[int, int, int], tokens: int, rows: int, blocks: int
) -> None:
    call = meta_call(model, tokens, rows, blocks)
    assert workspace.workspace(call).bytes <= workspace.LIMIT
    assert workspace.workspace(replace(call, mass=None)).bytes <= workspace.LIMIT


@settings(max_examples=15)
@given(
    kv_heads=st.integers(1, 40),
    group=st.integers(1, 20),
    tokens=st.integers(1, 131072),
    rows=st.integers(1, 512),
    blocks=st.integers(0, 1000),
    tile=st.sampled_from([64, 128]),
)
def test_any_number_of_heads_stays_near_it(
    kv_heads: int, group: int, tokens: int, rows: int, blocks: int, tile: int
) -> None:
    """One chunk, or one tile, of one key head is the least that can be worked on."""
    call = meta_call((kv_heads * group, kv_heads, 64), tokens, rows, blocks, tile=tile)
    space = workspace.workspace(call)
    least = rows * group * 4
    assert space.column_bytes <= workspace.LIMIT + kv_heads * least
    assert space.lse_bytes <= max(workspace.LSE_BYTES, 2 * kv_heads * least)
    assert 1 <= space.heads <= kv_heads
    assert space.tiles >= 1
    assert space.chunk % workspace.CHUNK == 0


class Allocations(TorchDispatchMode):
    """Counts the bytes of the tensors that are made."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        if function.overloadpacket.__name__ in {"empty", "new_empty", "new_zeros", "zeros"}:
            self.bytes += made.nbytes
        return made


@pytest.mark.parametrize(("kv_heads", "group"), [(1, 4), (2, 3)])
def test_a_layer_takes_what_is_said(kv_heads: int, group: int) -> None:
    layer = make_layer(kv_heads=kv_heads, group=group, width=16)
    call = call_of(layer, mass=False)
    with Allocations() as own:
        lse = backend.attn_stats(call)
    space = workspace.workspace(call)
    assert own.bytes == space.lse_bytes + space.column_bytes + lse.nbytes
    call = call_of(layer, lse=lse)
    with Allocations() as given_with_mass:
        backend.attn_stats(call)
    assert given_with_mass.bytes == workspace.workspace(call).bytes


@pytest.mark.parametrize(
    ("case", "entries"),
    [
        ({"group": 4}, 1),
        ({"group": 3}, 3),
        ({"group": 5, "window": 70, "sinks": True, "dtype": torch.bfloat16}, 5),
        ({"group": 8, "positions": (99, 98, 59), "offsets": (0, 60, 60, 61, 98)}, 1),
        ({"group": 2, "tokens": 9, "offsets": tuple(range(10)), "positions": (8, 3, 4)}, 1),
    ],
)
def test_in_the_smallest_pieces_the_sums_are_the_same(
    monkeypatch: pytest.MonkeyPatch, case: dict[str, Any], entries: int
) -> None:
    layer = make_layer(
        **{"width": 16, "tokens": 100, "positions": (99, 98, 12, 59, 99), "kv_heads": 2,
           "offsets": (0, 40, 41, 41, 99), **case}
    )  # fmt: skip
    whole = measure(layer)
    for name in ("LIMIT", "LEAST_ROWSUM_BYTES", "COLUMN_BYTES"):
        monkeypatch.setattr(workspace, name, 0)
    monkeypatch.setattr(workspace, "LSE_BYTES", 1)
    monkeypatch.setattr(workspace, "CHUNK", 64)
    space = workspace.workspace(call_of(layer))
    assert (space.tiles, space.heads, space.entries) == (1, 1, entries)
    assert space.chunk == 64 * math.ceil(layer.plan.kv_len / 64)
    pieces, wanted = measure(layer), reference(layer.q, layer.k, layer.plan, **layer.options)
    for name in ("rho", "mass", "lse"):
        torch.testing.assert_close(getattr(pieces, name), getattr(whole, name))
    assert relative(pieces.rho, wanted.rho) <= 1e-6
    assert relative(pieces.mass, wanted.mass) <= 1e-6
    again = measure(layer)
    assert torch.equal(pieces.mass, again.mass)
    assert torch.equal(pieces.rho, again.rho)
