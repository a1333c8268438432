"""Bringing a graph up to date with an observer that runs a model: one turn at a time. Pure.

A model takes seconds a turn, so it never runs while a request waits. What it measured is folded in
turn by turn, and each turn can be kept before the next one begins: whatever ends the work costs only
the turn in work. The graph is the same whatever process measured which turns.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from recap.capture.sampling import row_seed
from recap.graph.observation import TurnObservation
from recap.graph.repeats import find_repeats
from recap.graph.stale import mark_stale
from recap.graph.update import update
from recap.transcript.model import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from recap.blocks.table import BlockTable
    from recap.config import Settings
    from recap.select.kept import Kept
    from recap.session.known import Known

DROPPED = "turn-dropped: "
"""Note of a turn that could not be measured; its reason follows."""


class Measured(Protocol):
    """What became of one turn: an observation, or None with the reason."""

    @property
    def turn(self) -> int:
        """0-based number of the turn."""

    @property
    def observation(self) -> TurnObservation | None:
        """What the turn used."""

    @property
    def reason(self) -> str:
        """Why there is no observation, "" where there is one."""


@runtime_checkable
class Observer(Protocol):
    """Measures turns with a model, see ``recap.session.model``."""

    @property
    def fingerprint(self) -> str:
        """What tells its model from others; a graph of another one is made anew."""

    def observe(
        self,
        table: BlockTable,
        turns: range,
        seeds: Sequence[int],
        served: Sequence[Collection[str] | None],
    ) -> Iterator[Measured]:
        """Yield what became of each turn, in order.

        Args:
            table: Blocks of the session.
            turns: Turn numbers, ascending by 1.
            seeds: For each what its sampled rows are drawn by, see ``capture.sampling``.
            served: For each the ids of the blocks its model was shown besides the turn's own; None
                for the whole history.
        """


class Step(NamedTuple):
    """What is known after one more turn, and why it was dropped, "" where it was not."""

    known: Known
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the work on a session is.

    Attributes:
        done: Turns measured by this call, those that were dropped included.
        total: Turns it has to measure.
        reason: Why the last one was dropped, "" where it was not.
    """

    done: int
    total: int
    reason: str = ""


def dropped_turns(known: Known) -> dict[str, int]:
    """Return how many turns could not be measured, by reason."""
    notes = sorted(known.notes.items())
    return {name[len(DROPPED) :]: n for name, n in notes if name.startswith(DROPPED)}


def turns_to_observe(known: Known, *, open_turn: bool) -> range:
    """Return the turns that the graph has not seen.

    Args:
        known: What is known of the session.
        open_turn: The turn that no later message has closed is one of them.
    """
    seen = known.graph.turns
    last = seen + known.turns_not_observed if open_turn else known.closed_turns
    return range(seen, max(last, seen))


def ask(
    observer: Observer,
    known: Known,
    turns: range,
    given: Callable[[Sequence[str]], Sequence[Kept | None]],
) -> Iterator[Measured]:
    """Return what becomes of each turn, measured as the agent was served it.

    Args:
        observer: Measures them.
        known: What is known of the session.
        turns: Turn numbers, see ``turns_to_observe``; the observer is not asked for none.
        given: Returns what turns were given, by their keys; None where that is not known.
    """
    if not turns:
        return iter(())
    session = known.moment.session
    name = digest(session.tenant, session.id, session.agent, session.root).hex()
    # A turn that the client sends no more has no key; its number is as good within the session.
    begun = [known.closed.get(turn) for turn in turns]
    keys = [
        boundary.turn_key if boundary else str(turn)
        for turn, boundary in zip(turns, begun, strict=True)
    ]
    served = [
        None if kept is None or kept.is_whole else frozenset(kept.ids) for kept in given(keys)
    ]
    return observer.observe(known.table, turns, [row_seed(name, key) for key in keys], served)


def brought_up(known: Known, measured: Iterable[Measured], settings: Settings) -> Iterator[Step]:
    """Yield what is known after each turn.

    A turn that was dropped counts as one in which nothing was observed. Turns that no later message
    has closed change ``graph`` alone.

    Raises:
        ValueError: A turn is not the next one.
    """
    repeats = find_repeats(known.table, settings.stale_overlap, known.repeats)
    known = replace(known, repeats=repeats)
    for each in measured:
        if each.turn != known.graph.turns:
            raise ValueError(f"turn {each.turn} was measured where {known.graph.turns} is next")
        seen = each.observation
        observation = TurnObservation.of(each.turn, (), ()) if seen is None else seen
        graph = mark_stale(update(known.graph, observation, settings), (observation,), repeats)
        known = replace(known, graph=graph)
        if key := known.proof(graph.turns):
            known = replace(known, settled=graph, settled_key=key)
        if each.reason:
            notes = known.notes + Counter({DROPPED + each.reason: 1})
            known = replace(known, notes=notes)
        yield Step(known, each.reason)
