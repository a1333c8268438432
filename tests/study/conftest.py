"""Small made sessions, and a study of them that tests share."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from recap.config import Settings
from recap.study.runs import Plan, Study, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

METHODS = ("coverage", "paper", "recency", "random")
RETENTIONS = ("0.05", "0.2", "0.5")
NAMES = ("a<b>&", "beta", "gamma", "delta", "epsilon")


def write_session(path: Path, turns: int = 5, first: str = "") -> Path:
    """Write a session of a person who comes back to earlier files; long from its second request on.

    Files are read, lines of files of any earlier turn are written again.
    """
    name = first or path.stem
    rng = Random(name)  # a session is its name's
    messages: list[dict[str, Any]] = []
    shown: list[str] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Look at part_{turn}.py in {name}"})
        for at in range(5):
            lines = [
                f"    value_{turn}_{at}_{i} = load('{name}')" for i in range(rng.randint(20, 140))
            ]
            again = rng.sample(shown, min(len(shown), 6))
            messages += read(f"toolu_{turn}_{at}", f"src/{turn}_{at}.py", lines, again)
            shown += rng.sample(lines, 8)
        messages.append({"role": "assistant", "content": f"part_{turn}.py is read"})
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


def read(call_id: str, path: str, lines: list[str], again: list[str]) -> list[dict[str, Any]]:
    """Return a call, with what the agent writes to it, and its result."""
    call = {"type": "tool_use", "id": call_id, "name": "Read", "input": {"file_path": path}}
    said = {"type": "text", "text": "\n".join(["I saw", *again])}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": "\n".join(lines)}
    return [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [answer]}]


def write_sessions(folder: Path) -> dict[str, Path]:
    """Write five sessions of different lengths, of both halves."""
    return {
        f"{name}.json": write_session(folder / f"{name}.json", turns=4 + at)
        for at, name in enumerate(NAMES)
    }


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Torch on one thread, as the judge runs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The made sessions by name."""
    return write_sessions(tmp_path_factory.mktemp("sessions"))


@pytest.fixture(scope="session")
def study(files: Mapping[str, Path]) -> Study:
    """The study of them, in this process."""
    return run(files, Plan(METHODS, RETENTIONS, Settings()))
