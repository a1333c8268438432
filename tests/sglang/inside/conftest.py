"""The real SGLang on a CPU. Run in the environment that .ci/install_sglang_cpu.sh makes::

VENV/bin/python -m pytest tests/sglang/inside [--full-sglang]

Everywhere else these tests are skipped. Without ``--full-sglang`` two servers are started, one with the
flag and one without; with it, also those that compact, retract, are refused or lack a name.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sglang.inside.client import Client
    from tests.sglang.inside.in_process import InProcess
    from tests.sglang.inside.server import Server

HERE = Path(__file__).resolve().parent
SHIM = HERE.parent / "shim"
IS_HERE = importlib.util.find_spec("sglang") is not None
SERVERS = frozenset({"flagged", "plain", "another_server"})
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
    """Skip where there is no SGLang; let it warn where there is, and start servers last."""
    items.sort(key=lambda item: not SERVERS.isdisjoint(getattr(item, "fixturenames", ())))
    absent = pytest.mark.skip(reason="SGLang is not installed: .ci/install_sglang_cpu.sh VENV")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))
            item.add_marker(pytest.mark.timeout(900))
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
def starting(
    model: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[dict[str, Server]]:
    """The servers that all tests share and that this run asks for; they start side by side."""
    from tests.sglang.inside.server import EVERY_PAIR, KEY, ROOM, Server

    config = json.dumps({"tenant_header": "x-tenant", **EVERY_PAIR})
    options = {"flagged": ("--enable-recap", "--recap-config", config, *ROOM), "plain": ROOM}
    keys = {"flagged": KEY}
    asked = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    servers = {
        name: Server(model, tmp_path_factory.mktemp(name), *given, key=keys.get(name, ""))
        for name, given in options.items()
        if name in asked
    }
    yield servers
    for one in servers.values():
        one.stop()


@pytest.fixture(scope="session")
def flagged(starting: dict[str, Server]) -> Iterator[Client]:
    """The server with the flag that all tests share: small chunks, a key, tenants by header."""
    from tests.sglang.inside.client import Client

    with starting["flagged"] as running:
        yield Client(running)


@pytest.fixture(scope="session")
def plain(starting: dict[str, Server]) -> Iterator[Client]:
    """The same server without the flag."""
    from tests.sglang.inside.client import Client

    with starting["plain"] as running:
        yield Client(running)


@pytest.fixture(scope="session")
def server(flagged: Client) -> Server:
    """The shared server with the flag."""
    return flagged.server


@pytest.fixture(scope="session")
def another_server(request: pytest.FixtureRequest) -> None:
    """Mark a test that starts one more server: it is run with --full-sglang alone."""
    if not request.config.getoption("--full-sglang"):
        pytest.skip("starts one more server (--full-sglang)")
