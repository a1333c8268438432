"""Fixtures of the tests of versions."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from recap.store import Store
from tests.cmv.worlds import CASES, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A home folder without sessions, and a store whose clock ticks once per call."""
    ticks = count(1_700_000_000)
    with Store.open(tmp_path / "store", clock=lambda: float(next(ticks))) as store:
        yield World(tmp_path / "home", store)


@pytest.fixture(scope="session")
def case() -> Callable[[str], dict[str, Any]]:
    """Return the crafted case of an id's beginning, with its input under ``data``."""
    file = CASES / "cases.json"
    if not file.is_file():
        pytest.skip(f"cases not found at {file}")
    cases = json.loads(file.read_text(encoding="utf-8"))["cases"]

    def find(id: str) -> dict[str, Any]:
        found = next(each for each in cases if each["id"].startswith(id))
        data = (CASES / found["input"]).read_bytes() if "input" in found else b""
        return {**found, "data": data}

    return find
