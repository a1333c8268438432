"""A real server with the real command line, as a person starts it."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from recap.sglang.options import ENABLE, TRANSPORT

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "key-of-the-server"
ROOM = ("--max-total-tokens", "8192", "--context-length", "4000")
EVERY_PAIR = {"edge_threshold": 0}
"""Configuration in which results hold the mass of every pair of blocks, to be compared."""
PROBE = Path(__file__).parent / "probe"
SECONDS = 600
"""How long an answer may take on a loaded computer."""


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on.

    A server binds it only when it has loaded, so it is none that the system gives to a connection.
    """
    for port in random.sample(range(20000, 30000), 1000):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


def start(
    model: Path, folder: Path, port: int, *options: str, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a launcher; what it prints goes to ``log`` in the folder."""
    command = [
        *(sys.executable, "-m", "sglang.launch_server", "--model-path", str(model)),
        *("--device", "cpu", "--dtype", "float32", "--host", "127.0.0.1", "--port", str(port)),
        *("--max-total-tokens", "1024", "--context-length", "1000", "--max-running-requests", "4"),
        *("--chunked-prefill-size", "64", "--grammar-backend", "none", "--skip-server-warmup"),
        "--sleep-on-idle",
        *options,
    ]
    inherited = {n: v for n, v in os.environ.items() if n not in (ENABLE, TRANSPORT)}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=folder,  # metadata of a checkout in the current folder would hide the entry point
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=inherited | dict(environ or {}),
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a launcher and what it started, at once."""
    with suppress(ProcessLookupError):  # all of them ended by themselves
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Server:
    """A server that starts; it answers when a block of it is entered, and ends when that is left."""

    def __init__(
        self, model: Path, folder: Path, *options: str, key: str = "", **environ: str
    ) -> None:
        self.port = free_port()
        self.key = key
        self.log = folder / "log"
        self._probe = folder / "probe"
        fixed = ("--attention-backend", "torch_native", *(("--api-key", key) if key else ()))
        path = os.pathsep.join(filter(None, (str(PROBE), os.environ.get("PYTHONPATH"))))
        environ = {"PYTHONPATH": path, "PROBE_FILE": str(self._probe), **environ}
        self._process = start(model, folder, self.port, *fixed, *options, environ=environ)

    def __enter__(self) -> Self:
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it."""
        stop(self._process)

    def _wait(self) -> None:
        """Wait until it answers or ends; pytest's own timeout ends one that hangs."""
        while self._process.poll() is None:
            try:
                with urllib.request.urlopen(self._url("/health_generate"), timeout=SECONDS):
                    return
            except OSError:
                time.sleep(0.5)
        raise RuntimeError(f"the server did not start:\n{self.log.read_text()[-3000:]}")

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the JSON answer to a request."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(self._url(path), json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer) if answer.length != 0 else None

    def held(self) -> dict[str, int]:
        """Return what the worker's recorder holds: requests, and free parts of its store."""
        self._probe.unlink(missing_ok=True)
        (worker,) = [one for one in self._processes() if "scheduler" in " ".join(one.cmdline())]
        worker.send_signal(signal.SIGUSR2)
        deadline = time.monotonic() + SECONDS
        while not self._probe.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        held: dict[str, int] = json.loads(self._probe.read_text())
        return held

    def resident(self) -> int:
        """Return bytes of memory of its own that all of its processes have."""
        return sum(one.memory_info().rss - one.memory_info().shared for one in self._processes())

    def _processes(self) -> list[Any]:
        import psutil

        launcher = psutil.Process(self._process.pid)
        return [launcher, *launcher.children(recursive=True)]
