"""The compile check: what it finds in reports, and that the kernels that matter most are clean."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
pytest.importorskip("triton", reason="triton is not installed (extra kernels)")

from recap_kernels import aot
from recap_kernels.triton.shipped import SHIPPED, SMALL, Case

USAGE = "Function k:\n  REG:{regs} STACK:{stack} SHARED:0 LOCAL:0"
PRODUCT = "        /*0010*/                   HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8] ;\n"
ADD = "        /*0020*/              @!P0 FADD R1, R2, R3 ;\n"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that compiles, which one that interprets cannot."""
    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-m", "recap_kernels.aot", *arguments],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def judged(
    sass: str, *, stack: int = 0, ptx: str = "", arch: int = 90, shared: int = 512
) -> aot.Compiled:
    case = Case("k", None, {}, tensor_cores=True)
    usage = USAGE.format(regs=40, stack=stack)
    return aot.judge(arch, case, usage=usage, sass=sass, ptx=ptx, shared=shared, seconds=0.2)


def test_clean_machine_code_passes() -> None:
    clean = judged(PRODUCT * 2 + ADD)
    assert (clean.registers, clean.products, clean.instructions, clean.faults) == (40, 2, 3, ())


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"sass": PRODUCT + ADD.replace("FADD", "STL")}, "spills (stack 0, 0 loads, 1 stores)"),
        ({"sass": PRODUCT, "stack": 8}, "spills (stack 8"),
        ({"sass": ADD}, "no HGMMA"),
        ({"sass": PRODUCT, "arch": 80}, "no HMMA"),
        ({"sass": PRODUCT + ADD.replace("FADD", "REDG.E.ADD.F32")}, "atomics"),
        ({"sass": PRODUCT, "ptx": "atom.relaxed.gpu.global.add.f32 %r1"}, "atomics"),
        ({"sass": ""}, "unreadable"),
        ({"sass": PRODUCT, "shared": 240_000}, "more shared memory than 227 KiB"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], fault: str) -> None:
    assert any(found.startswith(fault) for found in judged(**changes).faults)


def test_shared_memory_atomics_of_a_histogram_are_no_fault() -> None:
    ptx = "atom.shared.add.u32 %r1, [%r2], 1;"
    assert judged(PRODUCT + ADD.replace("FADD", "ATOMS.POPC.INC"), ptx=ptx).faults == ()


def test_every_case_has_a_name_of_its_own_and_fits_its_kernel() -> None:
    names = [case.name for case in SHIPPED]
    assert len(names) == len(set(names))
    assert {case.name for case in SMALL} <= set(names)
    for case in SHIPPED:
        parameters = set(case.kernel.arg_names)
        assert set(case.constants) <= parameters
        assert set(case.types or {}) <= parameters
        assert {name for name in parameters if name.isupper()} <= set(case.constants)


@pytest.mark.slow
def test_the_main_kernels_compile_clean_for_every_architecture() -> None:
    done = run("--arch", "80,90,100", "--small", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    kernels = json.loads(done.stdout)["kernels"]
    assert [kernel["arch"] for kernel in kernels] == [80, 80, 90, 90, 100, 100]
    assert all(kernel["products"] and kernel["async_copies"] for kernel in kernels)


@pytest.mark.slow
def test_kernels_that_select_compile_clean_and_are_listed() -> None:
    done = run("--arch", "90", "--match", "digit 2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "digit 2" in done.stdout
    assert "1 compiled with triton" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (("--arch", "91"), {}, "91 is none of 80,86"),
        ((), {"TRITON_INTERPRET": "1"}, "unset TRITON_INTERPRET"),
    ],
)
def test_wrong_usage_has_status_two(
    arguments: tuple[str, ...], environment: dict[str, str], message: str
) -> None:
    done = run(*arguments, **environment)
    assert done.returncode == 2
    assert message in done.stderr
