"""CPU backend: the C++ module ``recap_kernels._cpu``, built when the package is installed."""

from __future__ import annotations


def unavailable(device: str) -> str:
    """Return why this cannot run on tensors of that device type; "" when it can."""
    if device != "cpu":
        return f"works on a CPU, not on {device!r}"
    return "is not built: install again where a C++ compiler is"
