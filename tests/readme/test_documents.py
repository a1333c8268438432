"""Documents cannot lie: marked blocks run, links lead somewhere, generated tables are current."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from recap.cli import recap

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path for pattern in ("*.md", "docs/*.md", "[!.]*/README.md") for path in ROOT.glob(pattern)
)
FENCE = re.compile(r"^```(python|bash) run *\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SEPARATORS = ("&&", "||", "|", ";")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


class Block(NamedTuple):
    """A code block marked ``run``: its language, its code, the line it begins at."""

    language: str
    code: str
    line: int


def blocks_of(document: Path) -> list[Block]:
    """Return the blocks of a document that are marked: three backticks, language, ``run``."""
    text = document.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(text)
    ]


def run(block: Block, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a block in a folder, with the packages of this interpreter and nobody's settings."""
    own = {"HOME": str(folder), "COLUMNS": "100"}
    environ = {n: v for n, v in os.environ.items() if not n.startswith(("RECAP_", "XDG_"))} | own
    environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environ["PATH"]))
    command = {
        "python": [sys.executable, "-c", block.code],
        "bash": ["bash", "-euo", "pipefail", "-c", block.code],
    }[block.language]
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks_of(d)], ids=name_of)
def test_marked_blocks_run_in_order(document: Path, tmp_path: Path) -> None:
    for block in blocks_of(document):
        done = run(block, tmp_path)
        assert done.returncode == 0, f"{document.name}:{block.line}\n{done.stdout}{done.stderr}"


def test_the_readme_has_marked_blocks() -> None:
    assert blocks_of(ROOT / "README.md")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_line_shown_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    lines = "\n".join(re.findall(r"^```bash.*?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for line in lines.splitlines():
        for words in commands_of(line):
            command = recap.get_command(click.Context(recap), words[1])
            if isinstance(command, click.Group):
                command = command.commands.get(words[2])
            assert command is not None, line
            options = {name for parameter in command.params for name in parameter.opts}
            given = {w.partition("=")[0] for w in words[2:] if w.startswith("-") and w != "-"}
            assert given <= options, line


def commands_of(line: str) -> list[list[str]]:
    """Return the words of each call of ``recap`` in a line of shell."""
    words = shlex.split(line, comments=True)
    calls = [list(call) for is_end, call in groupby(words, SEPARATORS.__contains__) if not is_end]
    return [call for call in calls if call[0] == "recap" and len(call) > 1]


def test_a_failing_block_is_seen(tmp_path: Path) -> None:
    assert run(Block("bash", "false\ntrue\n", 1), tmp_path).returncode == 1
    assert run(Block("python", "import recap\nrecap.nothing\n", 1), tmp_path).returncode == 1


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_to_files(document: Path) -> None:
    targets = LINK.findall(document.read_text(encoding="utf-8"))
    assert [t for t in targets if not (document.parent / t).exists()] == []


def test_generated_tables_are_current() -> None:
    pytest.importorskip("cogapp", reason="cog is not installed (extra dev)")
    done = subprocess.run(
        [sys.executable, "-m", "cogapp", "-P", "--check", "--diff", *map(str, DOCUMENTS)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"run: cog -rP FILE\n{done.stdout}{done.stderr}"
