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
from recap.transcript.model import DIGEST_BYTES, digest
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

MODEL_SETTINGS = (
    "rows", "rows_per_block", "layers", "edge_layer", "clip_quantile", "drop_first", "replay_tokens",
)  # fmt: skip
"""Coefficients that shape what an observer with a model sees, besides the model."""

KEY_DIGITS = 2 * DIGEST_BYTES
"""Hex digits of a settled key; of a graph made by a model those of its coefficients follow."""


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What was known of a session before its messages are seen again.

    Attributes:
        graph: Graph of the settled turns.
        settled_key: What proves these turns, see ``Known``; "" for nothing known.
        stored: Another graph of it with what proves that one, which another process made.
        table: Blocks of the history, where this process saw it.
        archive: All that this process saw of the session.
        repeats: Which blocks of the history repeat which, as far as this process found out.
        index: The identifier index of the history, where another process made it.
    """

    graph: ContextGraph
    settled_key: str = ""
    stored: tuple[ContextGraph, str] | None = None
    table: BlockTable | None = None
    archive: Archive | None = None
    repeats: Repeats | None = None
    index: CachedIndex | None = None


NOTHING = Prior(ContextGraph.empty(OBSERVER))


class Memory:
    """Where a session's past comes from. This one has none: every moment stands for itself.

    Attributes:
        model: Fingerprint of the model that measures the session; "" for none.
    """

    model = ""

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
        settled: Graph of the turns that a later message of the person has closed, as far as they
            were observed: with text reuse all of them, a model may lag behind.
        settled_key: Hash of what proves them and of the graph's coefficients; "" before there is one.
            The proof is the turn key of the message that closed the last of them; for a model, whose
            work is dear, all that stood before it, so that it may be taken back and said anew.
        closed: For each number of turns that a message of the person has closed that message.
        coefficients: What shapes the graph besides the session.
        graph: What selection uses: the graph of all turns of the history that were observed.
        repeats: Which blocks of the table repeat which, or of one that begins alike; None where
            nobody asked.
        notes: What was changed in the history before it was cut into blocks, by kind.
    """

    moment: Moment
    whole: Segmentation
    table: BlockTable
    settled: ContextGraph
    settled_key: str
    closed: Mapping[int, Boundary]
    coefficients: tuple[str, ...]
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
            self.settled, self.settled_key, table=self.table, archive=archive, repeats=self.repeats
        )

    @property
    def prompt_chars(self) -> int:
        """Characters of the whole live context, nothing left out."""
        messages = self.moment.messages
        fixed = sum(messages[r.message].parts[r.part].cost_chars for r in self.whole.fixed)
        return fixed + sum(block.cost_chars for block in self.whole.blocks if block.is_active)

    @property
    def closed_turns(self) -> int:
        """How many turns a later message of the person has closed."""
        return max(self.closed, default=0)

    @property
    def turns_not_observed(self) -> int:
        """How many turns of the history the graph has not seen."""
        return max(turn_count(self.table) - self.graph.turns, 0)

    def proof(self, turns: int) -> str:
        """Return the settled key of the graph of so many turns; "" where no message closed them."""
        return _settled_key(self.closed.get(turns), self.coefficients)

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
    closed = _closed(moment)
    coefficients = _coefficients(settings, memory.model if memory else "")
    nothing = (ContextGraph.empty(settings.observer), "")
    settled, settled_key = _proved(prior, closed, coefficients) or nothing
    known = Known(
        moment=moment,
        whole=whole,
        table=table,
        settled=settled,
        settled_key=settled_key,
        closed=closed,
        coefficients=coefficients,
        graph=settled,
        repeats=prior.repeats,
        notes=notes,
    )
    return _reread(known, settings) if settings.observer == OBSERVER else known


def _proved(
    prior: Prior, closed: Mapping[int, Boundary], coefficients: tuple[str, ...]
) -> tuple[ContextGraph, str] | None:
    """Return the graph that the messages prove, with its key: the longest one of several."""
    own = (prior.graph, prior.settled_key)
    proved = [
        (graph, key)
        for graph, key in ((own,) if prior.stored is None else (own, prior.stored))
        if key and key == _settled_key(closed.get(graph.turns), coefficients)
    ]
    return max(proved, key=lambda pair: pair[0].turns, default=None)


def _reread(known: Known, settings: Settings) -> Known:
    """Return what text reuse says of all turns: it costs milliseconds, so it never lags."""
    table, repeats, closed = known.table, known.repeats, known.closed_turns
    if known.settled.turns < turn_count(table):
        repeats = find_repeats(table, settings.stale_overlap, repeats)
    settled = build_graph(table, settings, turns=closed, graph=known.settled, repeats=repeats)
    return replace(
        known,
        settled=settled,
        settled_key=known.proof(closed),
        graph=build_graph(table, settings, graph=settled, repeats=repeats),
        repeats=repeats,
    )


def _coefficients(settings: Settings, model: str) -> tuple[str, ...]:
    """Return everything that shapes a graph besides the session."""
    names = GRAPH_SETTINGS if settings.observer == OBSERVER else GRAPH_SETTINGS + MODEL_SETTINGS
    values = tuple(str(getattr(settings, name)) for name in names)
    return values if settings.observer == OBSERVER else (*values, model)


def _settled_key(closing: Boundary | None, coefficients: tuple[str, ...]) -> str:
    """Return what proves a graph; of one made by a model it says what it was made with as well."""
    if closing is None:
        return ""
    if len(coefficients) == len(GRAPH_SETTINGS):
        return digest(closing.turn_key, *coefficients).hex()
    if not closing.before:
        return ""
    return digest(closing.before, *coefficients).hex() + digest(*coefficients).hex()


def _closed(moment: Moment) -> dict[int, Boundary]:
    """Return the messages that begin a turn, by the number of turns before them."""
    counts = _turns_before(moment.messages, [boundary.message for boundary in moment.closed])
    return dict(zip(counts, moment.closed, strict=True))


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
