"""The real SGLang on a CPU. Run in the environment that .ci/install_sglang_cpu.sh makes::

VENV/bin/python -m pytest tests/sglang/inside

Everywhere else these tests are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sglang.inside.in_process import InProcess
    from tests.sglang.inside.server import Server

HERE = Path(__file__).resolve().parent
SHIM = HERE.parent / "shim"
IS_HERE = importlib.util.find_spec("sglang") is not None
ENVIRONMENT = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "SGLANG_CPU_OMP_THREADS_BIND": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "RECAP_CONFIG": os.devnull,
    "PYTHONPATH": os.pathsep.join(filter(None, (str(SHIM), os.environ.get("PYTHONPATH")))),
}

if IS_HERE:
    os.environ.update(ENVIRONMENT)  # before SGLang is imported; child processes inherit it
    sys.path.insert(0, str(SHIM))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip where there is no SGLang; let it warn where there is."""
    absent = pytest.mark.skip(reason="SGLang is not installed: .ci/install_sglang_cpu.sh VENV")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
            item.add_marker(pytest.mark.timeout(400))
            if not IS_HERE:
                item.add_marker(absent)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny Llama whose attention is not flat."""
    from tests.sglang.inside.tiny import make_model

    return make_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def in_process(model: Path) -> InProcess:
    """A model runner in this process, its attention backend wrapped."""
    from tests.sglang.inside.in_process import InProcess

    return InProcess(model)


@pytest.fixture(scope="session")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the flag: small chunks, and a request is retracted every 60 steps."""
    from tests.sglang.inside.server import Server

    environ = {"SGLANG_TEST_RETRACT": "1", "SGLANG_TEST_RETRACT_INTERVAL": "60"}
    with Server(model, tmp_path_factory.mktemp("server"), "--enable-recap", **environ) as running:
        yield running
