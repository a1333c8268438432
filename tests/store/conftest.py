"""The store most tests work on."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from recap.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A new store whose clock ticks once per call."""
    ticks = count(1000)
    with Store.open(tmp_path / "store", clock=lambda: float(next(ticks))) as opened:
        yield opened
