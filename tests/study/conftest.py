"""Small made sessions, and a study of them that tests share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from recap.config import Settings
from recap.study.runs import Plan, Study, run
from tests.testing import conversation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

METHODS = ("coverage", "paper", "recency", "random")
RETENTIONS = ("0.05", "0.2", "0.5")
NAMES = ("a<b>&", "beta", "gamma", "delta", "epsilon")


def write_session(path: Path, turns: int = 5, size: int = 3_000, first: str = "") -> Path:
    """Write a session; its history is long enough from the third request on."""
    messages = conversation(turns, steps=3, size=size)
    messages[0]["content"] += f" {first or path.stem}"
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


def write_sessions(folder: Path) -> dict[str, Path]:
    """Write five sessions of different lengths, of both halves."""
    return {
        f"{name}.json": write_session(folder / f"{name}.json", turns=4 + at)
        for at, name in enumerate(NAMES)
    }


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The made sessions by name."""
    return write_sessions(tmp_path_factory.mktemp("sessions"))


@pytest.fixture(scope="session")
def study(files: Mapping[str, Path]) -> Study:
    """The study of them, in this process."""
    return run(files, Plan(METHODS, RETENTIONS, Settings()))
