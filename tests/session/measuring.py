"""An observer whose observations are a pure function of a turn, what was served and its seed."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from recap.graph.observation import TurnObservation
from recap.transcript.model import digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from recap.blocks.table import BlockTable
    from recap.config import Settings

GATE = "TEST_GATE"
"""Environment variable: the file that lets ``held`` go on."""


@dataclass(frozen=True)
class Measured:
    turn: int
    observation: TurnObservation | None
    reason: str = ""


@dataclass
class Drawn:
    """Draws use and mass of a turn from a hash of everything that an observer is given."""

    fingerprint: str = "drawn"
    seconds: float = 0.0
    drop_every: int = 4
    gate: Path | None = None
    turns: list[int] = field(default_factory=list)
    served: list[Collection[str] | None] = field(default_factory=list)

    def observe(
        self,
        table: BlockTable,
        turns: range,
        seeds: Sequence[int],
        served: Sequence[Collection[str] | None],
    ) -> Iterator[Measured]:
        for turn, seed, shown in zip(turns, seeds, served, strict=True):
            while turn > turns.start and self.gate and not self.gate.exists():
                time.sleep(0.005)
            time.sleep(self.seconds)
            self.turns.append(turn)
            self.served.append(shown)
            yield self.measured(table, turn, seed, shown)

    def measured(
        self, table: BlockTable, turn: int, seed: int, shown: Collection[str] | None
    ) -> Measured:
        ids = [
            id
            for id, of in zip(table.ids, table.turn.tolist(), strict=True)
            if of == turn or (of < turn and (shown is None or id in shown))
        ]
        draw = random.Random(digest(str(seed), *ids))
        if turn % self.drop_every == self.drop_every - 1:
            return Measured(turn, None, "does not fit")
        pairs = [(b, a) for b in range(len(ids)) for a in range(b) if draw.random() < 0.1]
        return Measured(
            turn,
            TurnObservation.of(
                turn,
                ids,
                [draw.random() for _ in ids],
                [b for b, _ in pairs],
                [a for _, a in pairs],
                [draw.random() for _ in pairs],
            ),
        )


def drawn(settings: Settings) -> Drawn:
    return Drawn()


def slow(settings: Settings) -> Drawn:
    return Drawn(seconds=0.02)


def held(settings: Settings) -> Drawn:
    """Measures a turn, and the others once a test has made the gate: till then it is at work."""
    return Drawn(seconds=0.02, gate=Path(os.environ[GATE]))


def deadly(settings: Settings) -> Drawn:
    import os

    os._exit(9)
