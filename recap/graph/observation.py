"""TurnObservation: the narrow waist between whatever measured use and the context graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class TurnObservation:
    """What one completed turn used (ReCAP section 4.1, in block form).

    Producers call ``of``, which checks; the bare constructor trusts its arguments.

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

    @classmethod
    def of(
        cls,
        turn: int,
        ids: Iterable[str],
        use: npt.ArrayLike,
        later: npt.ArrayLike = (),
        earlier: npt.ArrayLike = (),
        mass: npt.ArrayLike = (),
    ) -> TurnObservation:
        """Return a checked observation; arguments as the attributes, as anything numpy takes.

        Raises:
            ValueError: Lengths differ, an id stands twice, a number is negative, not finite or out
                of its range, an index is no block, or an edge does not point from a block to an
                earlier one.
        """
        known = tuple(ids)
        observation = cls(
            turn,
            known,
            np.asarray(use, np.float64),
            _indices("later", later, len(known)),
            _indices("earlier", earlier, len(known)),
            np.asarray(mass, np.float64),
        )
        _check(observation)
        return observation


def _indices(name: str, values: npt.ArrayLike, count: int) -> npt.NDArray[np.int32]:
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers, got {given.dtype}")
    if given.size and not (given.min() >= 0 and given.max() < count):
        raise ValueError(f"{name} must index the {count} observed blocks")
    return given.astype(np.int32)


def _check(observation: TurnObservation) -> None:
    ids, use, mass = observation.ids, observation.use, observation.mass
    later, earlier = observation.later, observation.earlier
    if observation.turn < 0:
        raise ValueError(f"turn must be 0 or more, got {observation.turn!r}")
    if len(set(ids)) != len(ids):
        raise ValueError("an observed block stands twice in ids")
    if use.shape != (len(ids),):
        raise ValueError(f"use must have one number per block, got {use.shape} for {len(ids)}")
    if not (np.isfinite(use) & (use >= 0)).all():
        raise ValueError("use must be finite and not negative")
    if not later.shape == earlier.shape == mass.shape == (mass.size,):
        raise ValueError(
            f"later, earlier and mass must be lists of one length, got shapes {later.shape}, "
            f"{earlier.shape}, {mass.shape}"
        )
    if not ((mass >= 0) & (mass <= 1)).all():
        raise ValueError("mass must lie in [0, 1]")
    if not (earlier < later).all():
        raise ValueError("an edge must lead from a block to an earlier one")
