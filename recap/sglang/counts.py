"""What happened in the main process, in numbers: for ``/recap/status`` and for Prometheus."""

from __future__ import annotations

from collections import Counter
from threading import RLock
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Name = Literal[
    "requests",  # chat requests that the server converted
    "prepared",  # by outcome: "asked" of a scheduler, or why not
    "results",  # by outcome: "recorded", or why not
    "compactions",  # by what the boundary policy did
    "kept_whole",  # compactions by reason of why a request went out as it came
    "malformed",  # labels, tenants and payloads of clients that are none
    "errors",  # faults of ours, by kind of error
]

HELP: Mapping[Name, tuple[str, str]] = {
    "requests": ("", "Chat requests that were converted."),
    "prepared": ("outcome", "Chat requests by whether a worker was asked to measure them."),
    "results": ("outcome", "Measured requests by what became of them."),
    "compactions": ("action", "Requests in mode turn or epoch by what the boundary policy did."),
    "kept_whole": ("reason", "Requests that no selection was made for, by reason."),
    "malformed": ("what", "Labels and tenants of clients that were refused."),
    "errors": ("kind", "Faults of Recap; the request was served without it."),
}


class Counts:
    """Counters of one process. For any thread."""

    def __init__(self) -> None:
        # A request may be collected, and counted, while this very thread is in here.
        self._lock = RLock()
        self._counts: dict[Name, Counter[str]] = {name: Counter() for name in HELP}
        self._seconds = 0.0
        self._timed = 0

    def add(self, name: Name, what: str = "", times: int = 1) -> None:
        """Count an event."""
        with self._lock:
            self._counts[name][what] += times

    def took(self, seconds: float) -> None:
        """Note how long a request waited for us."""
        with self._lock:
            self._seconds += seconds
            self._timed += 1

    def of(self, name: Name) -> dict[str, int]:
        """Return the counts of a name, by outcome."""
        with self._lock:
            return dict(self._counts[name])

    def text(self, gauges: Mapping[str, tuple[float, str]], evicted: Mapping[str, int]) -> str:
        """Return all in Prometheus' text format.

        Args:
            gauges: Name -> value and help.
            evicted: Sessions that left memory, by the limit that was reached.
        """
        lines: list[str] = []
        for name, (label, about) in HELP.items():
            lines += _counter(name, label, about, self.of(name))
        lines += _counter("evicted", "limit", "Sessions that left memory, by limit.", evicted)
        with self._lock:
            lines += _head("recap_request_seconds", "summary", "Time that a request waited for us.")
            lines.append(f"recap_request_seconds_sum {self._seconds:.6f}")
            lines.append(f"recap_request_seconds_count {self._timed}")
        for gauge, (value, about) in gauges.items():
            lines += [*_head(f"recap_{gauge}", "gauge", about), f"recap_{gauge} {value:g}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _counter(name: str, label: str, about: str, counts: Mapping[str, int]) -> list[str]:
    full = f"recap_{name}_total"
    head = _head(full, "counter", about)
    if not label:
        return [*head, f"{full} {sum(counts.values())}"]
    return head + [f'{full}{{{label}="{what}"}} {n}' for what, n in sorted(counts.items())]
