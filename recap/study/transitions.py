"""A session as a row of turn transitions: what stood there when a request came, and what was next."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import md5
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from recap.session.known import NOTHING, Memory, known_of
from recap.session.observing import ask, brought_up, turns_to_observe
from recap.study.metrics.extract import identifiers, lines
from recap.transcript.formats import open_log
from recap.transcript.model import Transcript
from recap.turns import boundaries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from recap.config import Settings
    from recap.session.known import Known, Prior
    from recap.session.moment import Moment
    from recap.session.observing import Observer
    from recap.transcript.model import Message, Part

SILENT_KINDS = frozenset(("thinking", "image"))
"""Parts without words that could be needed again; thinking is no part of what is kept."""

MIN_HISTORY_CHARS = 20_000
"""A shorter history is nothing to compact: a tenth of it does not hold the person's own words."""


class Held(NamedTuple):
    """What a text holds: its identifiers and its lines."""

    ids: frozenset[str]
    lines: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Transition:
    """A request of the person, the history before it and the turn after it.

    Attributes:
        session: Name of the file.
        turn: Number of the request among the session's, from 0.
        known: Blocks and graph of the history, and the moment of the request.
        execution: Parts of the turn that followed: calls, results and words of the agent.
        acts: Of these what the agent itself wrote.
    """

    session: str
    turn: int
    known: Known
    execution: tuple[Part, ...]
    acts: tuple[Part, ...]


class Reader:
    """Extracts what parts hold, each part once."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Part, Held]] = {}

    def part(self, part: Part) -> Held:
        """Return what a part holds."""
        found = self._held.get(id(part))
        if found is None or found[0] is not part:
            text = "" if part.kind in SILENT_KINDS else part.text()
            found = part, Held(identifiers(text), lines(text))
            self._held[id(part)] = found
        return found[1]

    def parts(self, parts: Iterable[Part]) -> Held:
        """Return what several parts hold together."""
        held = [self.part(part) for part in parts]
        return Held(
            frozenset().union(*(each.ids for each in held)),
            frozenset().union(*(each.lines for each in held)),
        )


class Past(Memory):
    """The session as the transition before left it: nothing of it is cut or measured twice.

    Args of the constructor: ``model``, the fingerprint of the observer's model, "" for none.
    """

    def __init__(self, model: str = "") -> None:
        self.model = model
        self.last = NOTHING

    def prior(self, moment: Moment) -> Prior:
        """Return what was known at the transition before."""
        return self.last


def is_test(path: Path) -> bool:
    """Return True for a session of the test half: the md5 of the file's stem is odd."""
    return int(md5(os.fsencode(path.stem), usedforsecurity=False).hexdigest(), 16) % 2 == 1


def transitions(
    path: Path, settings: Settings, observer: Observer | None = None
) -> Iterator[Transition]:
    """Yield the transitions of a session, in order: requests with a long enough history, and answered.

    Args:
        path: The session.
        settings: Coefficients.
        observer: Measures the turns before each, as if the agent had been shown its whole history;
            None for text reuse.

    Raises:
        InputError: The file is no session.
        UsageError: The observer's model is missing.
    """
    past = Past(observer.fingerprint if observer else "")
    transcript = open_log(path)
    messages = transcript.messages
    opened = [each.message for each in boundaries(messages) if not each.is_steering]
    for turn, (start, end) in enumerate(pairwise([*opened, len(messages)])):
        execution = tuple(_execution(messages[start + 1 : end]))
        if not turn or not any(part.author == "agent" for part in execution):
            continue
        until = Transcript(transcript.format, transcript.dialect, messages[: start + 1])
        known = known_of(until, None, settings, memory=past)
        if observer is not None:
            known = _observed(known, observer, settings)
        past.last = known.prior
        if known.table.active_chars >= MIN_HISTORY_CHARS:
            acts = tuple(part for part in execution if part.author == "agent")
            yield Transition(path.name, turn, known, execution, acts)


def _observed(known: Known, observer: Observer, settings: Settings) -> Known:
    """Return what is known once the turns that the graph lacks were measured."""
    turns = turns_to_observe(known, open_turn=False)
    measured = ask(observer, known, turns, lambda keys: [None] * len(keys))
    for step in brought_up(known, measured, settings):
        known = step.known
    return known


def _execution(messages: Sequence[Message]) -> Iterator[Part]:
    for message in messages:
        for part in message.parts:
            if part.author in ("agent", "tool") and part.kind not in SILENT_KINDS:
                yield part
