"""Statistics of a finished turn: sampled rows against the cached keys, over all ranks' heads.

**The reduction over ranks and everything on a GPU is read, not run.**
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from recap.capture.collector import Collector
from recap.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    from torch import Tensor

    from recap.capture.collector import LayerOptions
    from recap.capture.spans import Segments
    from recap.config import Settings
    from recap.graph.observation import TurnObservation

    LayerInput = tuple[int, Tensor, Tensor, LayerOptions]


NO_ROOM = "no-room"
"""Reason of a CaptureError of a rank that kept no rows: no fault, where no rank has one."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishedTurn:
    """What is measured.

    Attributes:
        turn: 0-based number of the turn.
        seed: Of (session, turn).
        segments: Tokens and blocks up to ``end``.
        positions: int64 ``[w]``: sampled rows, ascending.
        end: Tokens that have a key.
        edge_layer: Layer that edges are read from.
    """

    turn: int
    seed: int
    segments: Segments
    positions: npt.NDArray[Any]
    end: int
    edge_layer: int


def measure(
    turn: FinishedTurn,
    layers: Iterator[LayerInput],
    settings: Settings,
    device: torch.device | str,
    group: Any = None,
) -> TurnObservation:
    """Return what the turn used; of the pairs of blocks those alone that a graph takes for edges.

    A long session has hundreds of thousands of pairs and a few edges a block.

    Every rank takes part in the reduction, also one that failed: the others would wait for it. A
    failure of one is a failure of all, and of the same kind: ranks count alike.

    Args:
        turn: What is measured.
        layers: Index, rows ``[w, Hq, D]``, keys ``[slots, Hkv, D]`` and options of each layer.
        settings: Of the collector.
        device: Where rows and keys lie.
        group: SGLang's group of ranks that share the heads; None for one rank.

    Raises:
        CaptureError: The turn cannot be measured, or another rank failed.
        Exception: Whatever else failed on this rank.
    """
    failure: Exception | None = None
    collector: Collector | None = None
    try:
        collector = Collector(
            turn.segments,
            turn.positions,
            turn.end,
            settings,
            seed=turn.seed,
            edge_layer=turn.edge_layer,
            device=device,
        )
        for layer, q, k, options in layers:
            collector.add(layer, q, k, **options)
    except Exception as err:  # noqa: BLE001 - raised again below, after the other ranks know
        failure = err
    if group is not None:
        failure = _reduce(turn, None if failure else collector, failure, device, group)
    if failure is not None:
        raise failure
    assert collector is not None
    seen = collector.observation(turn.turn)
    is_edge = seen.mass > settings.edge_threshold
    return replace(
        seen, later=seen.later[is_edge], earlier=seen.earlier[is_edge], mass=seen.mass[is_edge]
    )


def _reduce(
    turn: FinishedTurn,
    collector: Collector | None,
    failure: Exception | None,
    device: torch.device | str,
    group: Any,
) -> Exception | None:
    """Add up the sums of all ranks in place; return what this rank says where one failed."""
    blocks = len(turn.segments.owner)
    sums = (
        (torch.zeros(turn.end + blocks * blocks + 2, device=device),)
        if collector is None
        else collector.sums()
    )
    has_room = not (isinstance(failure, CaptureError) and failure.reason == NO_ROOM)
    failed = torch.tensor([float(failure is not None and has_room), float(not has_room)])
    total = group.all_reduce(torch.cat([failed.to(device), *(part.flatten() for part in sums)]))
    faults, full = total[:2].tolist()
    if faults:
        is_own = failure is not None and has_room
        return failure if is_own else CaptureError("other-rank", "another rank failed")
    if full:
        return CaptureError(NO_ROOM, "a rank kept no rows of the request")
    at = 2
    for part in sums:
        part.copy_(total[at : at + part.numel()].view_as(part))
        at += part.numel()
    return None
