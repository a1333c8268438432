"""Native modules take their names whole: a process that runs one, or loads it, never sees a build."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("setuptools", reason="setuptools is not installed here; pip builds without it")

ROOT = Path(__file__).resolve().parents[2]
MODULE = f"_lines{sysconfig.get_config_var('EXT_SUFFIX')}"
OLD, NEW = b"old" * 5000, b"newer" * 5000

COMPILER = f"""#!{sys.executable}
import sys
out = sys.argv[sys.argv.index("-o") + 1]
is_linked = "-shared" in sys.argv
with open("linked", "a") as log:  # a linker that writes in the place of what is there
    log.write(out + "\\n" if is_linked else "")
with open(out, "r+b" if __import__("os").path.exists(out) else "wb") as stream:
    stream.write({NEW!r} if is_linked else b"object")
"""

BUILD = """
import json, os, runpy, sys
target, log = os.path.realpath(sys.argv.pop(1)), []

def watch(event, args):
    if event in ("os.remove", "os.rename", "os.truncate") or event == "open" and args[1] not in ("r", "rb"):
        paths = [each for each in args[:2] if isinstance(each, str)]
        if target in map(os.path.realpath, paths[-1:]):
            log.append(event)

sys.addaudithook(watch)
sys.argv[0] = "setup.py"
runpy.run_path("setup.py", run_name="__main__")
print(json.dumps(log))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of the native module of ``recap.cmv`` alone, whose compiler makes no code."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    shutil.copytree(ROOT / "csrc", tmp_path / "csrc")
    package = tmp_path / "recap" / "cmv"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (tmp_path / "pybind11.py").write_text("def get_include(): return 'include'\n")
    (tmp_path / "setup.cfg").write_text("[options]\npackages = recap, recap.cmv\n")
    (tmp_path / "cxx").write_text(COMPILER)
    (tmp_path / "cxx").chmod(0o755)
    (package / MODULE).write_bytes(OLD)
    return tmp_path


def built(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Build, and write the events of the audit hook on the module's name as JSON at the end."""
    environment = {
        **os.environ, "RECAP_LINES": "1", "RECAP_KERNELS_CPU": "0", "RECAP_KERNELS_CUDA": "0",
        "CXX": str(project / "cxx"), "PYTHONPATH": str(project),
    }  # fmt: skip
    words = [sys.executable, "-c", BUILD, str(module_of(project)), "-q", "build_ext", *command]
    return subprocess.run(
        words, cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def module_of(project: Path) -> Path:
    return project / "recap" / "cmv" / MODULE


@pytest.mark.parametrize("where", ["--inplace", "--build-lib=."])
def test_a_build_in_place_takes_the_name_in_one_step(project: Path, where: str) -> None:
    target = module_of(project)
    with target.open("rb") as stream, mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        done = built(project, where)
        assert done.returncode == 0, done.stderr
        assert mapped[:] == OLD
    assert target.read_bytes() == NEW
    assert json.loads(done.stdout.splitlines()[-1]) == ["os.rename"]
    assert len((project / "linked").read_text().splitlines()) == 1
    assert not list(project.rglob("*.new-*"))


def test_a_build_that_fails_leaves_the_module_that_is_there(project: Path) -> None:
    (project / "cxx").write_text("#!/bin/sh\necho error: no >&2\nexit 1\n")
    done = built(project, "--inplace")
    assert done.returncode != 0
    assert "recap.cmv._lines cannot be built: cxx failed: error: no" in done.stderr
    assert module_of(project).read_bytes() == OLD
    assert not list(project.rglob("*.new-*"))
