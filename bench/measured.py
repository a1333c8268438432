"""What the scripts share: the least time of several runs, and rows with where they were measured."""

from __future__ import annotations

import json
import platform
import time
from typing import TYPE_CHECKING, Any

from bench.conftest import commit, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


def least_ms(work: Callable[[], object], runs: int) -> float:
    """Return the least milliseconds of processor time of several runs."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1000 * min(times)


def where(*packages: str, **facts: object) -> dict[str, object]:
    """Return the system, the versions of Python and of packages, the commit, and further facts."""
    versions = {name: version_of(name) for name in packages}
    system = {"platform": platform.platform(), "python": platform.python_version()}
    return {**system, **versions, **facts, "commit": commit()}


def keep(result: Path, rows: Sequence[Any], measured: dict[str, object], **more: object) -> None:
    """Write rows, where they were measured, and what else is said of all of them."""
    result.parent.mkdir(exist_ok=True)
    result.write_text(json.dumps({"where": measured, "rows": rows, **more}, indent=1) + "\n")
