"""``python -m recap_kernels.aot``: compile every shipped Triton kernel without a GPU, and judge it.

A kernel fails when it spills registers, needs more shared memory than there is, has an atomic on
global memory, or takes a product that does not run on the architecture's tensor cores. Needs triton, whose wheel carries ptxas and nvdisasm.
Exit status: 0 clean, 1 findings, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap_kernels.triton.shipped import Case

TENSOR_CORES = {90: "HGMMA", 100: "UTCHMMA", 103: "UTCHMMA"}
"""Opcode of a 16-bit product by architecture; HMMA on the others."""

SHARED = {80: 163, 86: 99, 89: 99, 90: 227, 100: 227, 103: 227, 120: 99}
"""Shared memory that one program may have, in KiB; the keys are the architectures known here."""

_OPCODE = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_]*)", re.MULTILINE)
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)")


@dataclass(frozen=True, slots=True)
class Compiled:
    """What became of one case on one architecture.

    Attributes:
        arch: Compute capability, 90 for sm_90.
        name: The case.
        registers: Of one thread.
        shared: Bytes of shared memory of a program.
        spills: Loads and stores of local memory in the machine code, and bytes of stack.
        products: Instructions on tensor cores.
        async_copies: Instructions that copy to shared memory in the background (cp.async, TMA).
        exponentials: exp2 and other special-function instructions.
        instructions: All instructions.
        seconds: Wall time of the compilation; 0.0 and a little when it came from Triton's cache.
        faults: Why it fails; empty when it is clean.
    """

    arch: int
    name: str
    registers: int
    shared: int
    spills: int
    products: int
    async_copies: int
    exponentials: int
    instructions: int
    seconds: float
    faults: tuple[str, ...]


def judge(
    arch: int, case: Case, *, usage: str, sass: str, ptx: str, shared: int, seconds: float
) -> Compiled:
    """Return a verdict from the reports of cuobjdump (``-res-usage``), nvdisasm and the PTX.

    "LOCAL" of the usage report is 0 even with spills, so stack and LDL/STL are counted.
    """
    found = _USAGE.search(usage)
    registers, stack, _ = map(int, found.groups()) if found else (0, 0, 0)
    codes = Counter(_OPCODE.findall(sass))
    spills = codes["LDL"] + codes["STL"] + stack
    product = TENSOR_CORES.get(arch, "HMMA")
    faults = []
    if not found or not codes:
        faults.append("unreadable machine code")
    if spills:
        faults.append(f"spills (stack {stack}, {codes['LDL']} loads, {codes['STL']} stores)")
    if case.tensor_cores and not codes[product]:
        faults.append(f"no {product}")
    atomics = sum(codes[code] for code in ("ATOM", "ATOMG", "RED", "REDG"))
    if atomics or re.search(r"\b(?:atom|red)\.(?:\w+\.)*global", ptx):
        faults.append("atomics on global memory")
    if shared > SHARED[arch] * 1024:
        faults.append(f"more shared memory than {SHARED[arch]} KiB")
    return Compiled(
        arch=arch,
        name=case.name,
        registers=registers,
        shared=shared,
        spills=spills,
        products=codes[product],
        async_copies=codes["LDGSTS"] + codes["UTMALDG"],
        exponentials=codes["MUFU"],
        instructions=sum(codes.values()),
        seconds=round(seconds, 1),
        faults=tuple(faults),
    )


def compile_case(case: Case, arch: int) -> Compiled:
    """Return the verdict on one case, compiled for ``sm_<arch>``."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from recap_kernels.triton.shipped import ALIGNED

    names = case.kernel.arg_names
    aligned = [name for name in names if name.endswith(ALIGNED)]
    source = ASTSource(
        case.kernel,
        case.signature(),
        {(names.index(name),): value for name, value in case.constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in aligned},
    )
    options = {"num_warps": case.warps, "num_stages": case.stages, "enable_fp_fusion": True}
    began = time.perf_counter()
    built = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    seconds = time.perf_counter() - began
    tools = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        cubin.write(built.asm["cubin"])
        cubin.flush()
        return judge(
            arch,
            case,
            usage=_output(tools / "cuobjdump", "-res-usage", cubin.name),
            sass=_output(tools / "nvdisasm", "-c", cubin.name),
            ptx=built.asm["ptx"],
            shared=built.metadata.shared,
            seconds=seconds,
        )


def _output(*command: Path | str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _usage_fault() -> str:
    """Return why nothing can be compiled here; "" when it can."""
    try:
        from recap_kernels.triton.common import is_interpreted
    except ModuleNotFoundError as err:
        return f'{err.name} is not installed: pip install "recap-context[kernels]"'
    return "unset TRITON_INTERPRET: it replaces the compiler" if is_interpreted() else ""


def _architectures(text: str) -> list[int]:
    values = [int(part) for part in text.split(",")]
    if unknown := [value for value in values if value not in SHARED]:
        wanted = ",".join(map(str, SHARED))
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {wanted}")
    return values


def _rows(results: Iterator[Compiled]) -> Iterator[Compiled]:
    """Print a line per result as it comes."""
    head = (
        f"{'regs':>4} {'shared':>7} {'spills':>6} {'mma':>4} {'async':>5} {'ex2':>4} {'instr':>6}"
    )
    print(f"{'sm':>3}  {'kernel':<58} {head} {'s':>5}")
    for result in results:
        numbers = (
            f"{result.registers:>4} {result.shared:>7} {result.spills:>6} {result.products:>4} "
            f"{result.async_copies:>5} {result.exponentials:>4} {result.instructions:>6}"
        )
        fault = "  FAILS: " + "; ".join(result.faults) if result.faults else ""
        print(
            f"{result.arch:>3}  {result.name:<58} {numbers} {result.seconds:>5}{fault}", flush=True
        )
        yield result


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, print a table or JSON, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m recap_kernels.aot", description=__doc__)
    parser.add_argument("--arch", type=_architectures, default=[80, 90, 100], metavar="80,90,100")
    parser.add_argument("--small", action="store_true", help="only the two main kernels")
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--json", action="store_true", help="print one JSON document, no table")
    chosen = parser.parse_args(arguments)
    if fault := _usage_fault():
        print(f"aot: {fault}", file=sys.stderr)
        return 2
    import triton

    from recap_kernels.triton.shipped import SHIPPED, SMALL

    cases = [case for case in (SMALL if chosen.small else SHIPPED) if chosen.match in case.name]
    compiled: Any = (
        compile_case(case, arch) for arch in chosen.arch for case in cases if arch >= case.least
    )
    results = list(compiled if chosen.json else _rows(compiled))
    failed = [result for result in results if result.faults]
    if chosen.json:
        print(json.dumps({"triton": triton.__version__, "kernels": [asdict(r) for r in results]}))
    else:
        print(f"{len(results)} compiled with triton {triton.__version__}, {len(failed)} failed")
    if not results:
        print("aot: no case matches", file=sys.stderr)
        return 2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
