"""The tree: fixed top level, no paths of somebody's computer, every variable documented."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from recap.config import ENVIRONMENT, setting_rows

ROOT = Path(__file__).resolve().parents[2]
TOP_LEVEL = {
    *(
        ".ci",
        ".gitignore",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "MANIFEST.in",
        "README.md",
    ),
    *("bench", "csrc", "docs", "pyproject.toml", "recap", "recap_kernels", "setup.py", "tests"),
}
MACHINE_PATH = re.compile(rb"(?<![\w.])/(work|root)/\w")


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Files under version control."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("no git checkout")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    names = done.stdout.decode().rstrip("\0").split("\0")
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def test_top_level_is_what_was_agreed(tracked: list[Path]) -> None:
    assert {path.relative_to(ROOT).parts[0] for path in tracked} == TOP_LEVEL


def test_no_file_names_a_path_of_this_machine(tracked: list[Path]) -> None:
    this = Path(__file__).resolve()
    assert [p for p in tracked if p != this and MACHINE_PATH.search(p.read_bytes())] == []


def test_every_environment_variable_is_documented(tracked: list[Path]) -> None:
    known = ENVIRONMENT.keys() | {f"RECAP_{row.name.upper()}" for row in setting_rows()}
    known |= {"RECAP_NAME"}  # what texts call the variable of a setting
    used = {
        variable
        for path in tracked
        if path.suffix == ".py" and "tests/config" not in str(path)
        for variable in re.findall(r"\bRECAP_[A-Z]\w+", path.read_text(encoding="utf-8"))
    }
    assert used <= known
    assert ENVIRONMENT.keys() <= used
