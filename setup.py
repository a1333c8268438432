"""Builds the native modules of csrc/ where there is a compiler; without one the package installs too.

RECAP_KERNELS_CPU, RECAP_KERNELS_CUDA and RECAP_LINES: ``auto`` (default: build if possible, else one
line says why not), ``1`` (fail when it cannot be built), ``0`` (never).
RECAP_CUDA_ARCHS: GPU architectures, default ``80;90a;100;120``, less what nvcc does not know.
RECAP_NVCC: the nvcc to use.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent
CSRC = Path("csrc")
CPU, CUDA, LINES = "recap_kernels._cpu", "recap_kernels._cuda", "recap.cmv._lines"
IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
# Each instruction set is compiled with its own flags and chosen when the package runs.
ISAS = {
    "base": (),
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl"),
}
FLAGS = ("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-ffp-contract=fast", "-pthread")
CUDA_ARCHS = "80;90a;100;120"


class CannotBuildError(Exception):
    """Why a native module cannot be built here."""


def wanted(switch: str) -> str:
    """Return ``auto``, ``1`` or ``0``."""
    value = os.environ.get(switch, "auto")
    if value not in ("auto", "1", "0"):
        sys.exit(f"{switch} must be auto, 1 or 0; got {value!r}")
    return value


class BuildNative(build_ext):
    """Compiles each module, or says in one line why it does without."""

    def build_extension(self, ext: Extension) -> None:
        """Build one module, unless its switch or this computer forbids it."""
        switch, build = {
            CPU: ("RECAP_KERNELS_CPU", self.build_cpu),
            CUDA: ("RECAP_KERNELS_CUDA", self.build_cuda),
            LINES: ("RECAP_LINES", self.build_lines),
        }[ext.name]
        if wanted(switch) == "0":
            return
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with beside(target) as fresh:
                build(fresh)
        except CannotBuildError as err:
            if wanted(switch) == "1":
                sys.exit(f"recap: {ext.name} cannot be built: {err}")
            tell(f"recap: installing without {ext.name}: {err}")

    def copy_file(self, infile: str, outfile: str, *rest: Any, **named: Any) -> tuple[str, bool]:
        """Copy a module that was built to its place among the sources."""
        with beside(Path(outfile)) as fresh:
            super().copy_file(infile, str(fresh), *rest, **named)
        return outfile, True

    def build_cpu(self, target: Path) -> None:
        """Compile csrc/cpu and its bindings with the C++ compiler."""
        compiler = cxx()
        isas = ISAS if IS_X86 else {"base": ()}
        units = {f"cpu/isa_{name}.cpp": flags for name, flags in isas.items()}
        units |= {"cpu/dispatch.cpp": (), "cpu/finalize.cpp": (), "bind_cpu.cpp": pybind_flags()}
        define = ("-DRECAP_X86",) if IS_X86 else ()
        link(compiler, self.compile_all(compiler, units, (*FLAGS, *define)), target)

    def build_lines(self, target: Path) -> None:
        """Compile csrc/lines and its bindings with the C++ compiler."""
        sources = sorted(path.relative_to(CSRC) for path in (CSRC / "lines").glob("*.cpp"))
        units: dict[str, tuple[str, ...]] = {str(path): () for path in sources}
        units["bind_lines.cpp"] = pybind_flags()
        link(cxx(), self.compile_all(cxx(), units, FLAGS), target)

    def build_cuda(self, target: Path) -> None:
        """Compile csrc/cuda with nvcc and its bindings with the C++ compiler; nvcc links."""
        sources = sorted(path.relative_to(CSRC) for path in (CSRC / "cuda").glob("*.cu"))
        if not sources:
            raise CannotBuildError("csrc/cuda holds no sources")
        compiler = nvcc()
        archs = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in cuda_archs(compiler)]
        units = {str(path): () for path in sources}
        flags = ("-O3", "-std=c++17", "-Xcompiler", "-fPIC,-fvisibility=hidden", *archs)
        objects = self.compile_all(compiler, units, flags)
        objects += self.compile_all(cxx(), {"bind_cuda.cpp": pybind_flags()}, FLAGS)
        run(compiler, "-shared", "--cudart=static", *map(str, objects), "-o", str(target))

    def compile_all(
        self, compiler: str, units: dict[str, tuple[str, ...]], flags: tuple[str, ...]
    ) -> list[Path]:
        """Compile each source with the common flags and its own; return the objects."""
        folder = Path(self.build_temp)
        folder.mkdir(parents=True, exist_ok=True)

        def compile_one(source: str) -> Path:
            made = folder / (source.replace("/", "_") + ".o")
            run(compiler, *flags, *units[source], "-c", str(CSRC / source), "-o", str(made))
            return made

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return list(pool.map(compile_one, units))


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """Yield a name to write a module under; without an error it then takes the module's place.

    Processes that have the old module mapped keep it: written in its place, it would end them. Those
    that load it meanwhile never find half of it.
    """
    fresh = target.with_name(f"{target.name}.new-{os.getpid()}")
    try:
        yield fresh
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def link(compiler: str, objects: list[Path], target: Path) -> None:
    """Link a module for Python."""
    free = ("-undefined", "dynamic_lookup") if sys.platform == "darwin" else ()
    run(compiler, "-shared", "-pthread", *map(str, objects), "-o", str(target), *free)


def run(*command: str) -> None:
    """Run a compiler; its own words reach the user only when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr)
        first = next((line for line in done.stderr.splitlines() if "error" in line), "see above")
        raise CannotBuildError(f"{Path(command[0]).name} failed: {first}")


def tell(line: str) -> None:
    """Say a line to the person, where the installer shows it."""
    sys.stderr.write(line + "\n")


def cxx() -> str:
    """Return the C++ compiler."""
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    raise CannotBuildError("no C++ compiler found (CXX, c++, g++, clang++)")


def pybind_flags() -> tuple[str, ...]:
    """Return the include flags of Python and pybind11."""
    try:
        import pybind11
    except ImportError:
        raise CannotBuildError("pybind11 is not installed") from None
    import sysconfig

    return (f"-I{sysconfig.get_path('include')}", f"-I{pybind11.get_include()}")


def nvcc() -> str:
    """Return a CUDA compiler that is new enough."""
    homes = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [os.environ.get("RECAP_NVCC", ""), os.environ.get("CUDACXX", "")]
    places += [str(Path(home) / "bin" / "nvcc") for home in homes if home]
    for place in (*places, "nvcc", "/usr/local/cuda/bin/nvcc"):
        if place and (found := shutil.which(place)):
            break
    else:
        raise CannotBuildError("no nvcc found")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"release (\d+)\.(\d+)", said)
    if not version or tuple(map(int, version.groups())) < (12, 4):
        raise CannotBuildError("nvcc is older than 12.4")
    return found


def cuda_archs(compiler: str) -> list[str]:
    """Return the architectures to compile for: those wanted that this nvcc knows."""
    said = subprocess.run(
        [compiler, "--list-gpu-arch"], capture_output=True, text=True, check=False
    )
    known = set(re.findall(r"compute_(\d+)", said.stdout))
    names = [name for name in os.environ.get("RECAP_CUDA_ARCHS", CUDA_ARCHS).split(";") if name]
    usable = [name for name in names if name.rstrip("a") in known]
    if not usable:
        raise CannotBuildError(f"nvcc knows none of {names}")
    return usable


def extensions() -> list[Extension]:
    """Return the modules to try; a wheel without any is pure Python."""
    modules = [
        Extension(CPU, [str(CSRC / "bind_cpu.cpp")], optional=True),
        Extension(LINES, [str(CSRC / "bind_lines.cpp")], optional=True),
    ]
    if (CSRC / "bind_cuda.cpp").exists():
        modules.append(Extension(CUDA, [str(CSRC / "bind_cuda.cpp")], optional=True))
    return modules


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildNative})
