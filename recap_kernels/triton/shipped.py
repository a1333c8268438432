"""The one table of kernel configurations that are shipped, as Triton's compiler takes them.

A case names a kernel, its compile-time arguments and the types of the others; the compile check goes
through the table for each architecture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from recap_kernels.triton import capture, colstats, finalize, lse, mass, reduce
from recap_kernels.triton.configs import column_shape, lse_shape
from recap_kernels.triton.layer import block_width

POINTERS = {
    "order_ptr": "*i64",
    "exclude_ptr": "*i8",
    **dict.fromkeys(("kv_ptr", "pos_ptr", "slot_ptr", "offsets_ptr"), "*i32"),
    **dict.fromkeys(("start_ptr", "end_ptr", "lo_ptr", "mid_ptr", "hi_ptr"), "*i32"),
    **dict.fromkeys(("tile_range_ptr", "row_range_ptr", "row_count_ptr", "key_ptr"), "*i32"),
    **dict.fromkeys(("histogram_ptr", "before_ptr", "state_ptr", "next_ptr"), "*i32"),
}
"""Types of what is pointed at, where it is not float32."""

SCALARS = {"slope": "fp32", "cap": "fp32", "factor": "fp32", "quantile_bits": "i64"}
ALIGNED = ("_ptr", "_stride")
"""Ends of the names of arguments that are multiples of 16 wherever speed matters."""


@dataclass(frozen=True, slots=True)
class Case:
    """One compilation.

    Attributes:
        name: Kernel and what sets the case apart.
        kernel: The function under ``triton.jit``.
        constants: Its compile-time arguments.
        warps: Warps of a program.
        stages: Steps in flight.
        types: Argument name to type where it is not what ``signature`` assumes.
        tensor_cores: Whether a product has to run on them.
        least: First architecture that has the types.
    """

    name: str
    kernel: Any
    constants: dict[str, int | bool]
    warps: int = 4
    stages: int = 3
    types: dict[str, str] | None = None
    tensor_cores: bool = False
    least: int = 80

    def signature(self) -> dict[str, str]:
        """Return argument name to Triton type, "constexpr" for compile-time arguments."""
        types = self.types or {}
        return {
            name: "constexpr" if name in self.constants else types.get(name) or _type(name)
            for name in self.kernel.arg_names
        }


def _type(name: str) -> str:
    if name.endswith("_ptr"):
        return POINTERS.get(name, "*fp32")
    return SCALARS.get(name, "i32")


def _product(
    kernel: str,
    width: int = 128,
    *,
    q: str = "bf16",
    k: str | None = None,
    group: int = 8,
    tokens: int = 128,
    rows: int = 512,
    flags: str = "paged",
) -> Case:
    """Return a case of ``column_kernel`` or ``lse_partial_kernel``; flags are words."""
    size = 4 if q == "fp32" else 2
    is_column = kernel == "column"
    paged = "paged" in flags.split()
    shape = column_shape(size, tokens) if is_column else lse_shape(size, rows, paged=paged)
    constants: dict[str, int | bool] = {
        "G": group,
        "D": width,
        "BLOCK_N": shape.tokens,
        "BLOCK_M": shape.rows,
        "BLOCK_D": block_width(width),
        "UPCAST": False,
        **{word.upper(): word in flags.split() for word in ("paged", "window", "softcap")},
    }
    if is_column:
        constants["MASS"] = "mass" in flags.split()
    types = q if k is None else f"{q}*{k}"
    tile = f"{shape.tokens}x{shape.rows}"
    return Case(
        name=f"{kernel} {types} d{width} g{group} {tile} {flags}".rstrip(),
        kernel=colstats.column_kernel if is_column else lse.lse_partial_kernel,
        constants=constants,
        warps=shape.warps,
        stages=shape.stages,
        types={"q_ptr": f"*{q}", "k_ptr": f"*{k or q}"},
        tensor_cores=q != "fp32",
        least=89 if k == "fp8e4nv" else 80,
    )


def _products() -> list[Case]:
    """Return the kernels over queries and keys."""
    every = "paged window softcap"
    cases = [
        case
        for width in (64, 128, 256)
        for case in (
            _product("column", width),
            _product("column", width, flags="paged mass"),
            _product("column", width, flags=every),
            _product("column", width, flags=f"{every} mass"),
            _product("column", width, flags=""),
            _product("column", width, tokens=64),
            _product("column", width, tokens=64, flags="paged mass"),
            _product("lse", width),
            _product("lse", width, flags=every),
            _product("lse", width, flags=""),
            _product("lse", width, rows=64),
        )
    ]
    cases += [
        _product("column", group=5, flags="paged mass"),
        _product("column", 64, q="fp32", flags="paged mass"),
        _product("column", 64, q="fp32", tokens=64, flags="paged mass"),
        _product("lse", 64, q="fp32"),
    ]
    for kernel in ("column", "lse"):
        cases += [
            _product(kernel, q="fp16"),
            _product(kernel, 80),
            _product(kernel, group=1),
            _product(kernel, group=5),
            _product(kernel, k="fp8e4nv"),
            _product(kernel, k="fp8e5"),
        ]
    return cases


def _sums() -> list[Case]:
    """Return the kernels that only add, count and copy."""
    merge = {"G": 8, "BLOCK": lse.MERGE_BLOCK, "STEP": lse.MERGE_STEP}
    heads = {"BLOCK": reduce.BLOCK}
    between = {"BLOCK": mass.BLOCK, "STEP": mass.STEP}
    tokens, block = {"BLOCK": finalize.TOKENS}, {"BLOCK": finalize.MEAN_BLOCK}
    search = {**tokens, "STEPS": 7}
    return [
        Case("lse merge", lse.lse_merge_kernel, {**merge, "SINK": False}),
        Case("lse merge sink", lse.lse_merge_kernel, {**merge, "SINK": True}),
        Case("head sum", reduce.head_sum_kernel, {**heads, "ADD": False}),
        Case("head sum add", reduce.head_sum_kernel, {**heads, "ADD": True}),
        Case("received", mass.received_kernel, {**between, "ENTRIES": 1}),
        Case("received g5", mass.received_kernel, {**between, "ENTRIES": 5}),
        Case("mass", mass.mass_kernel, {**between, "ADD": False}),
        Case("mass add", mass.mass_kernel, {**between, "ADD": True}),
        Case(
            "importance",
            finalize.importance_kernel,
            {**search, "WINDOW": False, "EXCLUDE": False},
            warps=8,
        ),
        Case(
            "importance window exclude",
            finalize.importance_kernel,
            {**search, "WINDOW": True, "EXCLUDE": True},
            warps=8,
        ),
        *(
            Case(f"digit {digit}", finalize.digit_kernel, {**tokens, "DIGIT": digit}, warps=8)
            for digit in range(4)
        ),
        Case("clip", finalize.clip_kernel, {}),
        Case("block", finalize.block_kernel, {**block, "MASS": False}),
        Case("block mass", finalize.block_kernel, {**block, "MASS": True}),
        Case(
            "capture",
            capture.capture_kernel,
            {"LSE": True, "BLOCK": capture.BLOCK},
            types={"q_ptr": "*bf16", "ring_ptr": "*bf16"},
        ),
    ]


def _ones(cases: list[Case]) -> list[Case]:
    """Return one case a kernel with every size 1: Triton makes constants of those, not arguments."""
    first = {case.kernel: case for case in reversed(cases)}
    return [
        replace(case, name=f"{case.name} ones", constants={**case.constants, **_sizes(case)})
        for case in first.values()
    ]


def _sizes(case: Case) -> dict[str, int]:
    types = case.signature()
    return {name: 1 for name, kind in types.items() if kind == "i32" and "stride" not in name}


SHIPPED = (*_products(), *_sums(), *_ones([*_products(), *_sums()]))
SMALL = (_product("column", flags="paged mass"), _product("lse"))
"""The two that matter most: what the tests compile for every architecture."""
