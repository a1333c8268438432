"""Kernel tests run in poisoned memory, so that nothing unwritten passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def poisoned_memory() -> Iterator[None]:
    """Deterministic mode fills what torch.empty returns with NaN."""
    import torch

    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
