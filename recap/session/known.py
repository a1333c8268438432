"""What is known of a session: its blocks and its graph, carried from one request to the next.

Pure: what was known before and the messages as they are now give what is known now. A graph is kept
up to the turns that a later message of the person has closed; that message's turn key, a hash of
everything before it, proves later that those turns are what they were. So a session that is seen
turn by turn, in any number of processes, has the graph of one run over the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from recap.blocks.growth import segment_grown
from recap.blocks.segment import Segmentation, segment
from recap.blocks.table import build_table
from recap.capture.reuse import OBSERVER, build_graph, turn_count
from recap.errors import UsageError
from recap.graph.repeats import find_repeats
from recap.graph.state import ContextGraph
from recap.session.archive import Archive, restored
from recap.session.moment import Moment, at_last_step, moment_of, prepared
from recap.transcript.model import digest
from recap.turns import is_real_user, is_steering

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from recap.blocks.index_codec import CachedIndex
    from recap.blocks.table import BlockTable
    from recap.config import Settings
    from recap.graph.repeats import Repeats
    from recap.select.kept import Kept
    from recap.transcript.model import Json, Message, Transcript
    from recap.turns import Boundary, SessionKey

GRAPH_SETTINGS = ("smoothing", "edge_threshold", "stale_overlap")
"""Coefficients a graph is made with; under others it is made anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What was known of a session before its messages are seen again.

    Attributes:
        graph: Graph of the settled turns.
        settled_key: What proves these turns, see ``Known``; "" for nothing known.
        table: Blocks of the history, where this process saw it.
        archive: All that this process saw of the session.
        repeats: Which blocks of the history repeat which, as far as this process found out.
        index: The identifier index of the history, where another process made it.
    """

    graph: ContextGraph
    settled_key: str = ""
    table: BlockTable | None = None
    archive: Archive | None = None
    repeats: Repeats | None = None
    index: CachedIndex | None = None


NOTHING = Prior(ContextGraph.empty(OBSERVER))


class Memory:
    """Where a session's past comes from. This one has none: every moment stands for itself."""

    def prior(self, moment: Moment) -> Prior:
        """Return what was known of the session before this moment."""
        return NOTHING

    def kept(self, known: Known) -> Remembered | None:
        """Return a kept set to serve again at this moment; None: select."""
        return None


class Remembered(NamedTuple):
    """A kept set to serve again.

    Attributes:
        kept: The kept set.
        extend: What came since joins it.
    """

    kept: Kept
    extend: bool


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of a session at one moment.

    Attributes:
        moment: Its messages, where the current turn begins, and the keys.
        whole: Blocks of all messages.
        table: Blocks of the history, which come first among them.
        settled: Graph of the turns that a later message of the person has closed.
        settled_key: Hash of that message's turn key and the graph's coefficients; "" before there
            is one.
        graph: Graph of all turns of the history: what selection uses.
        repeats: Which blocks of the table repeat which, or of one that begins alike; None where
            nobody asked.
        notes: What was changed in the history before it was cut into blocks, by kind.
    """

    moment: Moment
    whole: Segmentation
    table: BlockTable
    settled: ContextGraph
    settled_key: str
    graph: ContextGraph
    repeats: Repeats | None
    notes: Counter[str]

    @property
    def prior(self) -> Prior:
        """What to begin from when the session is seen again by this process."""
        moment, end = self.moment, self.moment.own
        own = _first(self.whole, end)
        gone = tuple(index for index in moment.gone if index < end)
        archive = Archive(moment.messages[:end], own, moment.session.root, gone)
        return Prior(
            self.settled, self.settled_key, self.table, archive=archive, repeats=self.repeats
        )

    @property
    def prompt_chars(self) -> int:
        """Characters of the whole live context, nothing left out."""
        messages = self.moment.messages
        fixed = sum(messages[r.message].parts[r.part].cost_chars for r in self.whole.fixed)
        return fixed + sum(block.cost_chars for block in self.whole.blocks if block.is_active)

    def seen_by(self, graph: ContextGraph) -> Known:
        """Return the same with a graph from elsewhere to select by.

        Raises:
            UsageError: None of the graph's blocks is in the history.
        """
        if graph.ids and len(self.table) and set(graph.ids).isdisjoint(self.table.ids):
            raise UsageError(
                f"the graph is of another session: none of its {len(graph.ids)} blocks is in this "
                "one; build its own with `recap observe SESSION -o GRAPH`"
            )
        return replace(self, graph=graph)


def known_of(
    transcript: Transcript,
    request: str | Mapping[str, Json] | None,
    settings: Settings,
    *,
    named: SessionKey | None = None,
    memory: Memory | None = None,
    is_complete: bool = False,
) -> Known:
    """Return what is known of a session when a request arrives; arguments as for the pipeline.

    With ``is_complete`` no request is waited for: all messages are history.
    """
    moment = moment_of(transcript, request, named)
    if is_complete:
        moment = replace(moment, tail_start=len(moment.messages))
    elif settings.mode == "epoch":
        moment = at_last_step(moment)
    prior = memory.prior(moment) if memory else NOTHING
    moment, notes = prepared(moment, settings)
    whole = _segmented(moment.messages, prior.archive)
    if prior.archive is not None:
        complete = restored(moment, whole, prior.archive)
        if complete is not moment:
            moment, whole = complete, _segmented(complete.messages, prior.archive)
    messages = moment.messages
    history = _first(whole, moment.tail_start)
    if prior.table is not None:
        table = prior.table.extend(messages, history)
    else:
        table = build_table(messages, history, prior.index)
    closed = moment.closed
    turns = _turns_before(messages, [boundary.message for boundary in closed])
    is_proved = any(
        count == prior.graph.turns and _settled_key(boundary, settings) == prior.settled_key
        for boundary, count in zip(closed, turns, strict=True)
    )
    settled = prior.graph if is_proved else NOTHING.graph
    repeats = prior.repeats
    if settled.turns < turn_count(table):
        repeats = find_repeats(table, settings.stale_overlap, repeats)
    last = turns[-1] if turns else 0
    settled = build_graph(table, settings, turns=last, graph=settled, repeats=repeats)
    return Known(
        moment=moment,
        whole=whole,
        table=table,
        settled=settled,
        settled_key=_settled_key(closed[-1], settings) if closed else "",
        graph=build_graph(table, settings, graph=settled, repeats=repeats),
        repeats=repeats,
        notes=notes,
    )


def _settled_key(boundary: Boundary, settings: Settings) -> str:
    coefficients = (str(getattr(settings, name)) for name in GRAPH_SETTINGS)
    return digest(boundary.turn_key, *coefficients).hex()


def _turns_before(messages: Sequence[Message], starts: Sequence[int]) -> list[int]:
    """Return how many turns begin before each of the given messages, which ascend."""
    turns, before, at = [], 0, 0
    for start in starts:
        begun = (m for m in messages[at:start] if is_real_user(m) and not is_steering(m))
        before += sum(1 for _ in begun)
        turns.append(before)
        at = start
    return turns


def _segmented(messages: Sequence[Message], archive: Archive | None) -> Segmentation:
    """Return the blocks of messages; of those this process saw before only what is new is read."""
    if archive is None:
        return segment(messages)
    return segment_grown(archive.messages, archive.whole, messages)


def _first(whole: Segmentation, end: int) -> Segmentation:
    """Return the part of the segmentation that belongs to the messages before ``end``."""
    return Segmentation(
        tuple(block for block in whole.blocks if block.refs[0].message < end),
        tuple(ref for ref in whole.fixed if ref.message < end),
        tuple(exclusion for exclusion in whole.excluded if exclusion.ref.message < end),
    )
