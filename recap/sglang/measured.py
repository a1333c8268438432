"""Turns as the served model measured them: the observer of a session, filled from outside.

A turn has a request for each of its steps, and rows of what those requests ran anew alone: the rest
was cached. What they measured is put together when a later message of the person closes the turn.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.capture.observer import Observed
from recap.capture.sampling import row_seed
from recap.graph.observation import TurnObservation
from recap.transcript.model import digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from recap.blocks.table import BlockTable
    from recap.turns import SessionKey

OBSERVER = "engine"

TAIL = "answer"
"""Id of the block that a request's own answer becomes; no block has one like it."""

MOST_TURNS = 256
"""Turns that are remembered, so that a session whose last turn is taken back is folded anew."""

MOST_STEPS = 512
"""Requests of one turn that count; later ones add little to the mean."""

ID_BYTES = 80
"""Memory of a block's id that came from another process."""

NOT_MEASURED = "not-measured"


def turn_seed(session: SessionKey, turn_key: str) -> int:
    """Return what a turn's rows are drawn by; it names the turn as well."""
    name = digest(session.tenant, session.id, session.agent, session.root).hex()
    return row_seed(name, turn_key)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What one request of a turn measured.

    Attributes:
        observation: Its blocks; ``TAIL`` is its answer.
        rows: Its sampled rows; of several requests together those of each block.
        answer_line: 1-based element of the message list that its answer became; 0 for none.
    """

    observation: TurnObservation
    rows: int | Sequence[int]
    answer_line: int = 0

    @property
    def size(self) -> int:
        """Bytes of memory it takes, about."""
        return observation_bytes(self.observation)


def observation_bytes(seen: TurnObservation) -> int:
    """Return the bytes of memory that an observation takes, about."""
    columns = (seen.use, seen.later, seen.earlier, seen.mass)
    return ID_BYTES * len(seen.ids) + sum(column.nbytes for column in columns)


class MeasuredTurns:
    """Steps of a session's turns, by the seed of the turn. An ``observing.Observer``.

    Attributes:
        fingerprint: Tells the served model from others.
        size: Bytes of memory they take, about.
    """

    def __init__(self, fingerprint: str) -> None:
        """Begin with none; ``fingerprint`` tells the served model from others."""
        self.fingerprint = fingerprint
        self.size = 0
        self._turns: OrderedDict[int, list[Step]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._turns)

    def add(self, seed: int, step: Step) -> None:
        """Take a step of a turn."""
        steps = self._turns.setdefault(seed, [])
        if len(steps) < MOST_STEPS:
            steps.append(step)
            self.size += step.size
        if len(self._turns) > MOST_TURNS:
            _, gone = self._turns.popitem(last=False)
            self.size -= sum(each.size for each in gone)

    def observe(
        self,
        table: BlockTable,
        turns: range,
        seeds: Sequence[int],
        served: Sequence[Collection[str] | None],
    ) -> Iterator[Observed]:
        """Yield what became of each turn, in order. Its steps are kept as one from then on."""
        answers = _answers(table)
        for turn, seed in zip(turns, seeds, strict=True):
            steps = self._turns.get(seed)
            if steps:
                whole = together(turn, steps, table.ids, answers)
                self.size += whole.size - sum(each.size for each in steps)
                self._turns[seed] = [whole]
                yield Observed(turn, whole.observation, "")
            else:
                yield Observed(turn, None, NOT_MEASURED)


def _answers(table: BlockTable) -> dict[int, str]:
    """Return the block that begins with each element of the message list as it is now."""
    first = ((table.messages[block.refs[0].message], block) for block in table.blocks)
    return {
        message.line: block.id
        for message, block in first
        if message.is_active and block.kind in ("reply", "tools")
    }


def together(
    turn: int, steps: Iterable[Step], ids: Sequence[str], answers: Mapping[int, str]
) -> Step:
    """Return the steps of a turn as one.

    Use is the mean over the sampled rows of the steps that a block was part of; a pair of blocks
    has the greatest mass of any step, as edges of a graph do.

    Args:
        turn: 0-based number.
        steps: What was measured.
        ids: Blocks of the session, chronological; others are left out.
        answers: Block of each element of the message list, for the steps' own answers.
    """
    place = {id: at for at, id in enumerate(ids)}
    use: dict[int, _Mean] = {}
    mass: dict[tuple[int, int], float] = {}
    for step in steps:
        seen = step.observation
        names = (answers.get(step.answer_line, "") if id == TAIL else id for id in seen.ids)
        at = [place.get(name, -1) for name in names]
        rows = np.broadcast_to(step.rows, len(at)).tolist()
        for block, value, count in zip(at, seen.use.tolist(), rows, strict=True):
            before = use.get(block, _Mean(0.0, 0))
            use[block] = _Mean(before.total + count * value, before.rows + count)
        pairs = zip(seen.later.tolist(), seen.earlier.tolist(), seen.mass.tolist(), strict=True)
        for later, earlier, value in pairs:
            pair = at[later], at[earlier]
            mass[pair] = max(mass.get(pair, 0.0), value)
    use.pop(-1, None)
    blocks = sorted(use)
    index = {block: i for i, block in enumerate(blocks)}
    edges = {pair: value for pair, value in mass.items() if pair[1] >= 0 and pair[0] > pair[1]}
    observation = TurnObservation.of(
        turn,
        [ids[block] for block in blocks],
        np.array([use[block].total / max(use[block].rows, 1) for block in blocks]),
        np.array([index[later] for later, _ in edges], np.int32),
        np.array([index[earlier] for _, earlier in edges], np.int32),
        np.array(list(edges.values()), np.float64),
    )
    return Step(observation, [use[block].rows for block in blocks])


class _Mean(NamedTuple):
    total: float
    rows: int
