"""A real server with the real command line, as a person starts it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECONDS = 300
"""How long a server may take to answer; it does in 30 s on two idle cores."""


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(
    model: Path, folder: Path, port: int, *options: str, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a launcher; what it prints goes to ``log`` in the folder."""
    command = [
        *(sys.executable, "-m", "sglang.launch_server", "--model-path", str(model)),
        *("--device", "cpu", "--dtype", "float32", "--host", "127.0.0.1", "--port", str(port)),
        *("--max-total-tokens", "1024", "--context-length", "1000", "--max-running-requests", "4"),
        *("--chunked-prefill-size", "64", "--grammar-backend", "none", "--skip-server-warmup"),
        *options,
    ]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=folder,  # metadata of a checkout in the current folder would hide the entry point
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | dict(environ or {}),
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a launcher and what it started."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


class Server:
    """A running server, ended when the block is left."""

    def __init__(self, model: Path, folder: Path, *options: str, **environ: str) -> None:
        self.port = free_port()
        self.log = folder / "log"
        backend = ("--attention-backend", "torch_native")
        self._process = start(model, folder, self.port, *backend, *options, environ=environ)
        self._wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self._process)

    def _wait(self) -> None:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(self._url("/health_generate"), timeout=30):
                    return
            except OSError:
                time.sleep(0.5)
        stop(self._process)
        raise RuntimeError(f"the server did not start:\n{self.log.read_text()[-3000:]}")

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the JSON answer to a request."""
        request = urllib.request.Request(
            self._url(path), json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer) if answer.length != 0 else None
