"""TurnObservation: the narrow waist between whatever measured use and the context graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class TurnObservation:
    """What one completed turn used (ReCAP section 4.1, in block form).

    Attributes:
        turn: 0-based number of the completed turn.
        ids: Ids of the observed blocks R_t, chronological, n of them.
        use: float64 ``[n]``, >= 0: mean use (rho-bar) of each block in this turn, any scale.
        later: int32 ``[e]``: index into ``ids`` of the block b that gave attention.
        earlier: int32 ``[e]``: index into ``ids`` of the block a that received it, a < b.
        mass: float64 ``[e]`` in [0, 1]: mean attention mass M[b, a].
    """

    turn: int
    ids: tuple[str, ...]
    use: npt.NDArray[np.float64]
    later: npt.NDArray[np.int32]
    earlier: npt.NDArray[np.int32]
    mass: npt.NDArray[np.float64]
