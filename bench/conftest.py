"""What every benchmark row says about where it was measured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("recap-context", "numpy", "msgspec", "torch", "triton")


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Add usable cores, package versions, GPU and commit to the JSON of pytest-benchmark."""
    machine_info["usable_cores"] = len(os.sched_getaffinity(0))
    machine_info["platform"] = platform.platform()
    machine_info["packages"] = {name: version_of(name) for name in PACKAGES}
    machine_info["commit"] = commit()
    machine_info["gpu"] = gpu()


def version_of(package: str) -> str:
    """Return the installed version, "" for none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def commit() -> str:
    """Return the commit measured, with ``+changes`` for a work tree that differs; "" outside git."""
    done = subprocess.run(
        ["git", "describe", "--always", "--abbrev=12", "--dirty=+changes"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip()


def gpu() -> str:
    """Return the name of the first CUDA device, "" for none."""
    if not version_of("torch"):
        return ""
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else ""
