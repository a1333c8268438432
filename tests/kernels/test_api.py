"""The public functions: what they refuse and in which words, which backend answers, and captures."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")

import recap_kernels  # noqa: E402
from recap_kernels import attn_stats, capture_rows_, finalize, info, plan, reference  # noqa: E402
from recap_kernels.backends import unavailable  # noqa: E402

ROWS, HEADS, KV_HEADS, WIDTH, TOKENS = 3, 4, 2, 8, 20
OFFSETS = torch.tensor([0, 5, 20])


def arguments() -> dict[str, Any]:
    """Return a call that is fine."""
    return {
        "q": torch.randn(ROWS, HEADS, WIDTH),
        "k": torch.randn(TOKENS, KV_HEADS, WIDTH),
        "plan": plan(torch.tensor([4, 9, 19]), TOKENS, OFFSETS),
        "rho": torch.ones(TOKENS),
        "mass": torch.ones(2, 2),
    }


def with_nan(*shape: int) -> torch.Tensor:
    made = torch.zeros(shape)
    made.view(-1)[-1] = math.nan
    return made


BAD = {
    "q without heads": (
        {"q": torch.zeros(3, 8)},
        r"q must be \[tokens, heads, head_dim\].*got \[3, 8\]",
    ),
    "q of other rows": ({"q": torch.zeros(2, 4, 8)}, "q must be of 3 rows.*got 2 rows"),
    "q of no rows": ({"q": torch.zeros(0, 4, 8)}, "q must be of 3 rows.*got 0 rows"),
    "q of doubles": (
        {"q": torch.zeros(3, 4, 8).double()},
        "q must be torch.float32 or.*got torch.float64",
    ),
    "q of integers": (
        {"q": torch.zeros(3, 4, 8).int()},
        "q must be torch.float32.*got torch.int32",
    ),
    "q with strided vectors": ({"q": torch.zeros(3, 8, 4).mT}, "q must be contiguous in its last"),
    "q with NaN": ({"q": with_nan(3, 4, 8)}, "q must be finite; got NaN or inf"),
    "heads that do not divide": (
        {"q": torch.zeros(3, 5, 8)},
        "q must be of a multiple.*got 5 heads",
    ),
    "k of another width": ({"k": torch.zeros(20, 2, 7)}, "k must be of head_dim 8 as q; got 7"),
    "k of another dtype": (
        {"k": torch.zeros(20, 2, 8).half()},
        "k must be torch.float32; got torch.float16",
    ),
    "k without heads": ({"k": torch.zeros(20, 0, 8)}, "k must be .* with no empty head"),
    "k too short": ({"k": torch.zeros(19, 2, 8)}, "k must be of at least 20 tokens.*got 19 tokens"),
    "k with NaN": ({"k": with_nan(20, 2, 8)}, "k must be finite; got NaN or inf"),
    "k with inf": ({"k": torch.full((20, 2, 8), math.inf)}, "k must be finite; got NaN or inf"),
    "k elsewhere": ({"k": torch.zeros(20, 2, 8, device="meta")}, "k must be on cpu as q; got meta"),
    "few indices": (
        {"kv_indices": torch.arange(19)},
        r"kv_indices must be of shape \[20\]; got \[19\]",
    ),
    "indices of floats": ({"kv_indices": torch.zeros(20)}, "kv_indices must be torch.int32 or"),
    "an index too high": ({"kv_indices": torch.arange(20) + 1}, r"in \[0, 20\); got 1 to 20"),
    "an index below 0": ({"kv_indices": torch.arange(20) - 1}, r"in \[0, 20\); got -1 to 18"),
    "strided indices": ({"kv_indices": torch.arange(40)[::2]}, "kv_indices must be contiguous"),
    "sinks of key heads": ({"sinks": torch.zeros(2)}, r"sinks must be of shape \[4\]; got \[2\]"),
    "sinks with NaN": ({"sinks": with_nan(4)}, "sinks must be finite or -inf"),
    "lse of other shape": (
        {"lse": torch.zeros(4, 3)},
        r"lse must be of shape \[3, 4\]; got \[4, 3\]",
    ),
    "lse of halves": (
        {"lse": torch.zeros(3, 4).half()},
        "lse must be torch.float32; got torch.float16",
    ),
    "lse with NaN": ({"lse": with_nan(3, 4)}, "lse must be finite or -inf"),
    "an unknown base": (
        {"lse": torch.zeros(3, 4), "lse_base": "10"},
        "lse_base must be 'e' or '2'",
    ),
    "rho too short": ({"rho": torch.zeros(19)}, r"rho must be of shape \[20\]; got \[19\]"),
    "rho of doubles": ({"rho": torch.zeros(20).double()}, "rho must be torch.float32"),
    "mass not square": (
        {"mass": torch.zeros(2, 3)},
        r"mass must be of shape \[2, 2\]; got \[2, 3\]",
    ),
    "mass strided": ({"mass": torch.zeros(2, 4)[:, ::2]}, "mass must be contiguous"),
    "scale of NaN": ({"scale": math.nan}, "scale must be finite; got nan"),
    "k_scale of inf": ({"k_scale": math.inf}, "k_scale must be finite; got inf"),
    "softcap below 0": ({"softcap": -1.0}, "softcap must be at least 0 and finite; got -1.0"),
    "an unknown backend": ({"backend": "mps"}, "backend must be one of auto, .*; got 'mps'"),
    "cuda on a CPU": ({"backend": "cuda"}, "backend 'cuda': "),
}


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_arguments_are_refused_before_anything_is_written(
    change: dict[str, Any], message: str, backend: str
) -> None:
    call = {"backend": backend, **arguments(), **change}
    rho, mass = call["rho"].clone(), call["mass"].clone()
    with pytest.raises(ValueError, match=message):
        attn_stats(**call)
    assert torch.equal(call["rho"], rho)
    assert torch.equal(call["mass"], mass)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q_pos": torch.zeros(0).long()}, "q_pos must have one dimension and an element"),
        ({"kv_len": 0}, "kv_len must be at least 1.*got 0"),
        ({"kv_len": 2**31}, "kv_len must be at least 1 and at most"),
        ({"block_offsets": torch.tensor([0, 9, 5])}, "block_offsets must not decrease"),
        ({"block_offsets": torch.tensor([0, 21])}, r"lie in \[0, 20\]; got 0 to 21"),
        ({"block_offsets": torch.tensor([0.0, 9.0])}, "block_offsets must be int32 or int64"),
        ({"window": -1}, "window must be at least 0.*got -1"),
        ({"tile": 48}, "tile must be a power of two from 16 on; got 48"),
        ({"q_pos": torch.tensor([2**31])}, "q_pos must fit 32 bits"),
    ],
)
def test_bad_plans_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(**{"q_pos": torch.tensor([3]), "kv_len": TOKENS, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": torch.zeros(3)}, r"rho must be of shape \[20\]; got \[3\]"),
        ({"mass": torch.zeros(3, 3)}, r"mass must be of shape \[2, 2\]"),
        ({"exclude": torch.zeros(20)}, "exclude must be torch.bool"),
        ({"layers": 0}, "layers must be at least 1; got 0"),
        ({"heads": -1}, "heads must be at least 1; got -1"),
        ({"drop_first": -1}, "drop_first must be at least 0; got -1"),
    ],
)
def test_bad_sums_are_refused(change: dict[str, Any], message: str) -> None:
    call = {"rho": torch.zeros(20), "plan": arguments()["plan"], "layers": 1, "heads": 4, **change}
    with pytest.raises(ValueError, match=message):
        finalize(**call)


def test_outputs_are_added_to_unless_told_otherwise() -> None:
    call = arguments()
    fresh = attn_stats(call["q"], call["k"], call["plan"], mass=torch.zeros(2, 2))
    added = attn_stats(**call)
    assert added.rho is call["rho"]
    assert torch.equal(added.rho, 1 + fresh.rho)
    assert torch.equal(added.mass, 1 + fresh.mass)
    assert torch.equal(attn_stats(**call, accumulate=False).rho, fresh.rho)


def test_an_lse_comes_back_natural_with_sinks_and_as_a_new_tensor() -> None:
    call = arguments()
    sinks = torch.randn(HEADS)
    wanted = reference(call["q"], call["k"], call["plan"], sinks=sinks).lse.float()
    bare = reference(call["q"], call["k"], call["plan"]).lse.float()
    for options in (
        {},
        {"lse": wanted},
        {"lse": wanted / math.log(2), "lse_base": "2"},
        {"lse": bare, "lse_has_sink": False},
    ):
        got = attn_stats(**call, sinks=sinks, **options).lse
        torch.testing.assert_close(got, wanted)
        assert got.data_ptr() != wanted.data_ptr()


def test_scales_multiply() -> None:
    call = arguments()
    first = attn_stats(**call, scale=0.5, k_scale=0.25, accumulate=False).rho.clone()
    assert torch.equal(attn_stats(**call, scale=0.125, accumulate=False).rho, first)


def test_a_backend_that_is_not_there_says_what_is_missing() -> None:
    for name in info().backends:
        if reason := unavailable(name, "cpu"):
            with pytest.raises(ValueError, match=re.escape(f"backend {name!r}: {reason}")):
                attn_stats(**arguments(), backend=name)


def test_rows_are_captured_where_their_slot_says() -> None:
    q_ring, lse_ring = torch.zeros(5, HEADS, WIDTH), torch.zeros(5, HEADS)
    q, lse = torch.randn(4, HEADS, WIDTH), torch.randn(4, HEADS)
    capture_rows_(q_ring, lse_ring, q, lse, torch.tensor([3, -1, 0, -1], dtype=torch.int32))
    assert torch.equal(q_ring[[3, 0]], q[[0, 2]])
    assert torch.equal(lse_ring[[3, 0]], lse[[0, 2]])
    assert float(q_ring[[1, 2, 4]].abs().max()) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slot": torch.tensor([5, 0]).int()}, r"slot must be in \[-1, 5\); got 0 to 5"),
        ({"slot": torch.tensor([-2, 0]).int()}, r"slot must be in \[-1, 5\); got -2 to 0"),
        ({"slot": torch.tensor([1, 0])}, "slot must be int32"),
        ({"q": torch.zeros(2, 3, WIDTH)}, r"q must be \[T, Hq, D\] as q_ring"),
        ({"q": torch.zeros(2, HEADS, WIDTH).half()}, "q must be torch.float32"),
        ({"lse": torch.zeros(2, HEADS)}, "lse must be given exactly when lse_ring is"),
    ],
)
def test_bad_captures_are_refused(change: dict[str, Any], message: str) -> None:
    call = {
        "q_ring": torch.zeros(5, HEADS, WIDTH),
        "lse_ring": None,
        "q": torch.ones(2, HEADS, WIDTH),
        "lse": None,
        "slot": torch.tensor([0, 1], dtype=torch.int32),
        **change,
    }
    with pytest.raises(ValueError, match=message):
        capture_rows_(**call)
    assert float(call["q_ring"].abs().max()) == 0


def test_every_public_name_is_there_and_sorted() -> None:
    assert recap_kernels.__all__ == sorted(recap_kernels.__all__)
    for name in recap_kernels.__all__:
        assert getattr(recap_kernels, name) is not None
    assert not hasattr(recap_kernels, "nothing")


def run_python(code: str) -> str:
    """Run code in a fresh interpreter; return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_package_loads_no_torch() -> None:
    loaded = run_python("import sys, recap_kernels; print('torch' in sys.modules)")
    assert loaded == "False"


def test_without_torch_one_line_says_what_to_install() -> None:
    """A name of the package says so when it is used; ``info`` answers all the same."""
    code = """
import sys
sys.modules["torch"] = None
import recap_kernels
print(recap_kernels.info().backends["cpu"])
try:
    recap_kernels.plan
except ModuleNotFoundError as err:
    print(err)
"""
    hint = 'pip install "recap-context[kernels]"'
    assert run_python(code).splitlines() == [
        f"torch is not installed: {hint}",
        f"recap_kernels needs torch: {hint}",
    ]


def test_submodules_do_not_hide_the_functions_of_their_name() -> None:
    code = """
import recap_kernels.reference, recap_kernels.plan
from recap_kernels import plan, reference
print(callable(plan), callable(reference))
"""
    assert run_python(code) == "True True"


def test_a_missing_cpu_module_falls_back_to_the_reference_and_says_so_once() -> None:
    code = """
import logging, sys
sys.modules["recap_kernels._cpu"] = None
logging.basicConfig(stream=sys.stdout, format="%(message)s")
import torch
from recap_kernels import attn_stats, plan
turn = plan(torch.tensor([3]), 4)
for _ in range(2):
    print(float(attn_stats(torch.zeros(1, 1, 4), torch.zeros(4, 1, 4), turn).rho.sum()))
"""
    first, *sums = run_python(code).splitlines()
    assert first.startswith("backend 'cpu': is not built")
    assert sums == ["1.0", "1.0"]
