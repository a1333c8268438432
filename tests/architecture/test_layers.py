"""The import contracts of pyproject.toml hold, and each of them bites."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="import-linter is not installed (extra dev)")

ROOT = Path(__file__).resolve().parents[2]
PLANTS = {
    "recap/transcript/planted.py": "import recap.graph.state",  # upward
    "recap_kernels/planted.py": "import recap.errors",
    "recap/graph/planted.py": "import torch",
    "recap/transcript/planted_array.py": "import numpy",
    "recap/select/planted.py": "import rich",
    "recap/study/metrics/planted.py": "import recap.blocks.table",
    "recap/study/planted.py": "import litellm",
    "recap/store/planted.py": "import recap.graph.state",
    "recap/session/planted.py": "import sglang",
    "recap/cli/planted.py": "import sglang",
}


def verdicts(root: Path) -> dict[str, str]:
    """Return contract -> KEPT or BROKEN for the packages under ``root``."""
    code = "from importlinter.cli import lint_imports_command as run; run()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache", "--no-logo"],
        cwd=root, capture_output=True, text=True,
        env={"PYTHONPATH": str(root), "COLUMNS": "400", "NO_COLOR": "1"},
    )  # fmt: skip
    found = re.findall(r"^(.+?) (KEPT|BROKEN)", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    return dict(found)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the packages and their contracts."""
    for package in ("recap", "recap_kernels"):
        shutil.copytree(ROOT / package, tmp_path / package)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_is_kept(tree: Path) -> None:
    kept = verdicts(tree)
    assert len(kept) == len(PLANTS)
    assert set(kept.values()) == {"KEPT"}


def test_every_contract_bites(tree: Path) -> None:
    for name, code in PLANTS.items():
        (tree / name).write_text(f"{code}\n")
    assert set(verdicts(tree).values()) == {"BROKEN"}
