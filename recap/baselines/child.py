"""A process with another interpreter that answers JSON lines, for packages with pins of their own."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from recap.errors import MethodError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Child:
    """A running process. It ends when this process does, since its input ends then.

    Raises:
        MethodError: It cannot start, or says why it does not.
    """

    def __init__(self, python: str, script: Path, config: Mapping[str, Any]) -> None:
        # isolated: beside the script lie modules named like the packages it imports
        command = [python, "-I", str(script)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **OFFLINE},
                encoding="utf-8",
            )
        except OSError as err:
            raise MethodError(f"cannot start {python}: {err.strerror}") from err
        self._lock = Lock()
        try:
            self.ask(config)
        except MethodError:
            self.close()
            raise
        atexit.register(self.close)

    @property
    def is_running(self) -> bool:
        """True until the process ends."""
        return self._process.poll() is None

    def ask(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a task.

        Raises:
            MethodError: The process failed at it, or ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps(task) + "\n")
                self._process.stdin.flush()
                line = self._process.stdout.readline()
            except OSError:
                line = ""
        if not line:
            self.close()
            raise MethodError(f"the child process ended with status {self._process.returncode}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise MethodError(f"the child process failed: {answer['error']:.300}")
        return answer

    def close(self) -> None:
        """End the process; once is enough."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            try:
                stream.close()
            except OSError:  # what it was about to be told
                continue


@cache
def has_package(python: str, package: str) -> bool:
    """Return True when an interpreter starts and finds a package."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    try:
        found = subprocess.run([python, "-I", "-c", code], capture_output=True, check=False)
    except OSError:
        return False
    return found.returncode == 0
