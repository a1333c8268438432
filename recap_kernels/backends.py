"""The backends behind ``recap_kernels.api``: what one has to offer, and which one a call takes.

A backend is a module named in ``MODULES``. It imports neither another backend nor the reference,
may import torch at its top, and offers

* ``unavailable(device: str) -> str``: why it cannot run on tensors of that device type here, with
  the next step; "" when it can.
* ``attn_stats(call: AttnCall) -> Tensor``: adds to (or overwrites) ``call.rho`` and ``call.mass`` and
  returns the natural-log LSE, float32 ``[W, Hq]``, sink included; ``call.lse`` itself when given.
* ``finalize(call: FinalizeCall) -> BlockStats``: new float32 tensors, ``row_count`` int32.
* optionally ``capture_rows(q_ring, lse_ring, q, lse, slot) -> None``: CUDA-graph safe.

* optionally ``CHECKS_FINITE = True``: NaN and inf in ``q`` and ``k`` are found where they are read.

A backend without one of them leaves the name out. Calls arrive checked (``check.py``), with every
default filled in; a backend refuses what only it cannot do with a ``ValueError`` before it writes.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from torch import Tensor

    from recap_kernels.plan import Clip, StatsPlan

LOG = logging.getLogger(__name__)

BackendName = Literal["auto", "triton", "cuda", "cpu", "reference"]

MODULES = {
    "triton": "recap_kernels.triton.backend",
    "cuda": "recap_kernels.cuda",
    "cpu": "recap_kernels.cpu",
    "reference": "recap_kernels.eager",
}
AUTO = {"cpu": ("cpu", "reference"), "cuda": ("triton", "cuda")}
"""What ``auto`` tries, by device type; the first that is available takes the call."""


@dataclass(frozen=True, slots=True, eq=False)
class AttnCall:
    """One layer to measure; ``api.attn_stats`` documents the values.

    Attributes:
        q: ``[W, Hq, D]``, last dimension contiguous.
        k: ``[S, Hkv, D]``, last dimension contiguous, other strides any.
        plan: On the device of ``q``.
        kv_indices: int32 or int64 ``[N]``, contiguous, or None for row j of ``k``.
        scale: Factor of the logits, the key scale included.
        softcap: 0 for none.
        sinks: float32 ``[Hq]`` contiguous, or None.
        lse: float32 ``[W, Hq]`` contiguous, natural log, sink included, or None to compute it.
        rho: float32 ``[N]`` contiguous.
        mass: float32 ``[B, B]`` contiguous, or None.
        accumulate: Add to ``rho`` and ``mass``; otherwise overwrite every element, which may be NaN.
    """

    q: Tensor
    k: Tensor
    plan: StatsPlan
    kv_indices: Tensor | None
    scale: float
    softcap: float
    sinks: Tensor | None
    lse: Tensor | None
    rho: Tensor
    mass: Tensor | None
    accumulate: bool


@dataclass(frozen=True, slots=True, eq=False)
class FinalizeCall:
    """Sums to turn into block statistics.

    The clip value is the k-th smallest counted ``rho[j] / (layers * heads * row_count[j])``, one
    float32 division, with k = max(1, ceil(q * n)) in float64 over the n counted tokens: so every
    backend returns the same bits. Counted tokens and formulas: ``reference.finalize_reference``.

    Attributes:
        rho: float32 ``[N]`` contiguous.
        mass: float32 ``[B, B]`` contiguous, or None.
        plan: On the device of ``rho``.
        layers: Layers summed in ``rho``.
        heads: Query heads of a layer.
        clip: How to winsorise.
        drop_first: First positions that never count.
        exclude: bool ``[N]`` contiguous, or None.
    """

    rho: Tensor
    mass: Tensor | None
    plan: StatsPlan
    layers: int
    heads: int
    clip: Clip
    drop_first: int
    exclude: Tensor | None


def choose(name: str, operation: str, device: str) -> Any:
    """Return the backend module that takes a call.

    Args:
        name: What the caller asked for, ``"auto"`` included.
        operation: ``attn_stats`` or ``finalize``.
        device: Device type of the tensors.

    Raises:
        ValueError: Unknown name, or nothing that can do it here; says what is missing.
    """
    if name != "auto" and name not in MODULES:
        wanted = ", ".join(("auto", *MODULES))
        raise ValueError(f"backend must be one of {wanted}; got {name!r}")
    reasons: list[str] = []
    for candidate in AUTO.get(device, ()) if name == "auto" else (name,):
        reason = unavailable(candidate, device)
        if not reason and hasattr(_module(candidate), operation):
            if reasons:
                _say_once("; ".join(reasons))
            return _module(candidate)
        reasons.append(f"backend {candidate!r}: {reason or f'has no {operation}'}")
    raise ValueError("; ".join(reasons) or f"no backend for tensors on {device!r}")


def capture_module() -> Any:
    """Return the backend that captures rows on a GPU: CUDA where it is built, else Triton."""
    for name in ("cuda", "triton"):
        if not unavailable(name, "cuda") and hasattr(_module(name), "capture_rows"):
            return _module(name)
    return choose("auto", "capture_rows", "cuda")


def unavailable(name: str, device: str) -> str:
    """Return why a backend cannot take tensors of this device type; "" when it can."""
    if importlib.util.find_spec("torch") is None:
        return 'torch is not installed: pip install "recap-context[kernels]"'
    try:
        return str(_module(name).unavailable(device))
    except ImportError as err:
        return f"cannot be imported: {err}"


@cache
def _say_once(reasons: str) -> None:
    """Log why a slower backend answers."""
    LOG.warning("%s; a slower backend takes its place", reasons)


@cache
def _module(name: str) -> Any:
    return importlib.import_module(MODULES[name])


@dataclass(frozen=True, slots=True)
class Info:
    """What of recap_kernels works in this process.

    Attributes:
        torch: Version of torch, "" when it is not installed.
        backends: For each backend "" when it can run on its own device, else why not.
        cpu_isa: Instruction set the CPU backend uses here, "" without it.
        cpu_isas: Instruction sets that it was built with and this processor has.
    """

    torch: str
    backends: dict[str, str]
    cpu_isa: str
    cpu_isas: tuple[str, ...]


def info() -> Info:
    """Return which backends work here, and why others do not; needs neither torch nor a GPU."""
    devices = {"triton": "cuda", "cuda": "cuda", "cpu": "cpu", "reference": "cpu"}
    reasons = {name: unavailable(name, device) for name, device in devices.items()}
    version, isa, isas = "", "", ()
    if importlib.util.find_spec("torch") is not None:
        import torch

        version = str(torch.__version__)
    if not reasons["cpu"]:
        isa, isas = _module("cpu").isa(), _module("cpu").isas()
    return Info(version, reasons, isa, isas)
