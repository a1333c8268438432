"""Kernel tests run in poisoned memory, so that nothing unwritten passes; Triton's without a GPU too."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

if importlib.util.find_spec("torch"):
    import torch

    # read when a kernel is defined, so it is set before any test module is imported
    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(autouse=True)
def poisoned_memory() -> Iterator[None]:
    """Deterministic mode fills what torch.empty returns with NaN."""
    import torch

    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
