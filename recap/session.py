"""The one pipeline: read, segment, observe, select, render, check. The only place with its order.

Library, command line, gateway and server call it. It is pure and total: faults of the input are left
out with a reason; an exception that is no usage error is a bug of ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from recap.blocks.segment import Segmentation, segment
from recap.blocks.table import build_table
from recap.capture.reuse import build_graph
from recap.config import Settings
from recap.errors import InvalidContextError, UsageError
from recap.graph.state import ContextGraph
from recap.select.alternate import alternate as alternated
from recap.select.policies import recipe_of
from recap.select.prepare import clip_pastes, without_thinking
from recap.select.render import Rendering, RenderOptions, render
from recap.select.selection import Request, Selection, select
from recap.transcript.check import check
from recap.transcript.dialects import DIALECTS
from recap.transcript.lists import read_messages
from recap.transcript.model import HUMAN_AUTHORS, Dialect, Json, Message, Transcript
from recap.transcript.tree import to_bytes, to_object
from recap.turns import (
    boundaries,
    current_boundary,
    is_real_user,
    selection_seed,
    session_key,
)

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction

    from recap.blocks.table import BlockTable


class _RequestForm(NamedTuple):
    """How a request holds its system text, and its messages."""

    head: bytes
    key: bytes


REQUESTS: Mapping[str, _RequestForm] = {
    "anthropic": _RequestForm(b'{"system": [%b]', b'"messages": %b'),
    "responses": _RequestForm(b'{"instructions": %b', b'"input": %b'),
    "gemini": _RequestForm(b'{"systemInstruction": {"parts": [%b]}', b'"contents": %b'),
}
"""Dialect -> its request; any other dialect with system text beside the list as Anthropic's."""

SIZE_CODES = frozenset(
    ("request-bytes", "message-count", "content-chars", "call-count", "cache-markers")
)
"""Findings about the size of the input: reported, never a reason to return nothing."""


@dataclass(frozen=True, slots=True)
class Report:
    """A compaction in numbers.

    Attributes:
        policy: Recipe used.
        dialect: Dialect of the result; it passed that dialect's check.
        history_chars: c(V), characters of the live history's blocks.
        budget_chars: B.
        protected_chars: cost(P).
        protected_share: cost(P) / B; 0 when B is 0 and nothing is protected.
        over_budget: True when P alone exceeds B.
        kept_chars: Characters of kept blocks.
        fixed_chars: System and injected root text, always kept, outside the budget.
        current_chars: The request and the current turn, untouched, outside the budget.
        marker_chars: Omission markers, outside the budget.
        markers: Their number.
        blocks: Blocks of the history.
        kept_blocks: Of these kept.
        expanded_blocks: Of these pulled in by a support edge.
        revived_blocks: Of these from before a native compaction.
        is_effective: True when the result is smaller than the input.
        excluded: Parts that no provider accepts, by reason.
        notes: Further changes, by kind.
        findings: What the reader could not use or found odd, by code (``Transcript.findings``).
        over_limit: Codes of the vendor's size limits that the result exceeds; it cannot be sent as
            it is, and what exceeds them is protected or belongs to the current turn.
        turn_key: Key of the turn the selection holds for, "" without a real user message.
    """

    policy: str
    dialect: str
    history_chars: int
    budget_chars: int
    protected_chars: int
    protected_share: float
    over_budget: bool
    kept_chars: int
    fixed_chars: int
    current_chars: int
    marker_chars: int
    markers: int
    blocks: int
    kept_blocks: int
    expanded_blocks: int
    revived_blocks: int
    is_effective: bool
    excluded: Mapping[str, int]
    notes: Mapping[str, int]
    findings: Mapping[str, int]
    turn_key: str
    over_limit: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Compaction:
    """A compacted context with everything that explains it.

    Attributes:
        messages: The vendor's message list; a Python caller's kept messages are the same objects.
        system: System text for a dialect that carries it beside the list: blocks for Anthropic and
            OpenCode, parts for Gemini, the ``instructions`` for Responses.
        selection: Which blocks, and why.
        report: The numbers.
        table: The history's blocks.
        graph: The graph the selection used.
        rendering: The result before decoding, with the original bytes.
    """

    messages: list[Json]
    system: list[Json]
    selection: Selection
    report: Report
    table: BlockTable
    graph: ContextGraph
    rendering: Rendering

    def to_json(self) -> bytes:
        """Return the result as a JSON array, one message a line, kept parts byte for byte.

        With system blocks: an object as the vendor's request holds them, Anthropic's for example
        with ``system`` and ``messages``.
        """
        trees = self.rendering.messages
        if len(trees) != len(self.messages):  # joined for strict alternation
            trees = tuple(self.messages)
        array = b"[\n" + b",\n".join(to_bytes(tree) for tree in trees) + b"\n]"
        if not self.rendering.system:
            return array + b"\n"
        keys = REQUESTS.get(self.report.dialect, REQUESTS["anthropic"])
        system = b", ".join(to_bytes(tree) for tree in self.rendering.system)
        return keys.head % system + b",\n" + keys.key % array + b"}\n"


def compact(  # noqa: PLR0913 - one keyword for each thing a caller may want
    messages: Sequence[Mapping[str, Json]] | Mapping[str, Json],
    request: str | Mapping[str, Json] | None = None,
    *,
    retention: str | float | Fraction | Decimal | None = None,
    policy: str | None = None,
    dialect: str = "auto",
    to: Dialect | None = None,
    pins: Sequence[str] = (),
    settings: Settings | None = None,
    graph: ContextGraph | None = None,
) -> Compaction:
    """Return a short, valid message list that holds what the request needs. No model is called.

    Args:
        messages: A message list as a client sends it, in any dialect of ``DIALECTS``, or the request
            document around it. It is not changed.
        request: The arriving request, as text or as a user message: then the whole list is history.
            None: the last real user message is the request, and what follows it is the current
            turn, which stays as it is.
        retention: Share beta of the history's characters to keep, in (0, 1]; 0.1 by default.
        policy: Name of a recipe, see ``recap.select.policies``; None for the default.
        dialect: The list's dialect, or ``auto``; the result has the same one.
        to: Another dialect for the result.
        pins: Ids of blocks to keep in any case.
        settings: Every other coefficient.
        graph: The session's context graph; None builds one from text reuse.

    Raises:
        UsageError: An unknown policy, pin or dialect, or a value out of range.
        InvalidContextError: The result broke a rule of its dialect: a bug of ours.
    """
    chosen = Settings() if settings is None else settings
    _demand(chosen, to, pins, graph)
    if retention is not None:
        chosen = chosen.replace(retention=retention)
    transcript = read_messages(messages, dialect)
    return compact_transcript(
        transcript, request, settings=chosen, policy=policy, pins=pins, graph=graph, to=to
    )


def compact_transcript(  # noqa: PLR0913 - as above
    transcript: Transcript,
    request: str | Mapping[str, Json] | None = None,
    *,
    settings: Settings | None = None,
    policy: str | None = None,
    pins: Sequence[str] = (),
    graph: ContextGraph | None = None,
    to: Dialect | None = None,
    alternate: bool = False,
    model: str = "",
) -> Compaction:
    """Return the compaction of a transcript; arguments as for ``compact``.

    ``alternate`` joins adjacent messages of one role. ``model`` names the model the context is for,
    so that another model's thinking is left out; "" takes it from the transcript.
    """
    settings = Settings() if settings is None else settings
    _demand(settings, to, pins, graph)
    recipe = recipe_of(policy or settings.policy)
    moment, notes = _prepared(_moment(transcript, request), settings)
    messages = moment.messages
    whole = segment(messages)
    table = build_table(messages, _history(whole, moment.tail_start))
    if graph is None:
        graph = build_graph(table, settings)
    elif graph.ids and len(table) and set(graph.ids).isdisjoint(table.ids):
        raise UsageError(
            f"the graph is of another session: none of its {len(graph.ids)} blocks is in this one; "
            "build its own with `recap observe SESSION -o GRAPH`"
        )
    arriving = Request(_request_text(messages, moment.tail_start), moment.seed)
    selection = select(graph, table, arriving, settings, policy=recipe.name, pins=pins)
    kept = [int(index) for index in selection.is_kept.nonzero()[0]]
    dialect = to or transcript.dialect
    has_markers = settings.markers and recipe.markers
    options = RenderOptions(dialect, selection.budget_chars if has_markers else 0, model)
    rendering = render(messages, whole, kept, moment.tail_start, options)
    objects = [to_object(tree) for tree in rendering.messages]
    if alternate and dialect in ("anthropic", "openai"):  # the others have templates of their own
        objects, _ = alternated(objects)
    over_limit = _verify(objects, dialect)
    report = _report(moment, whole, table, selection, rendering, notes)
    return Compaction(
        messages=objects,
        system=[to_object(tree) for tree in rendering.system],
        selection=selection,
        report=replace(
            report,
            dialect=dialect,
            over_limit=over_limit,
            findings=dict(sorted(Counter(f.code for f in transcript.findings).items())),
        ),
        table=table,
        graph=graph,
        rendering=rendering,
    )


def _demand(settings: object, to: object, pins: object, graph: object) -> None:
    """Raise UsageError for an argument of the wrong kind."""
    if not isinstance(settings, Settings):
        raise UsageError(f"settings must be recap.Settings, got {type(settings).__name__}")
    if to is not None and (not isinstance(to, str) or to not in DIALECTS):
        raise UsageError(f"unknown dialect {to!r:.60}; known: {', '.join(DIALECTS)}")
    if not isinstance(pins, list | tuple) or not all(isinstance(pin, str) for pin in pins):
        raise UsageError("pins must be a list of block ids, as `recap explain` prints them")
    if graph is not None and not isinstance(graph, ContextGraph):
        raise UsageError(f"graph must be a ContextGraph, got {type(graph).__name__}")


@dataclass(frozen=True, slots=True)
class _Moment:
    """Where history ends and the current turn begins, and what names this turn."""

    messages: tuple[Message, ...]
    tail_start: int
    turn_key: str
    seed: bytes


def _moment(transcript: Transcript, request: str | Mapping[str, Json] | None) -> _Moment:
    messages = transcript.messages
    if isinstance(request, str) and not request.strip():
        raise UsageError("the request is blank: give its words, or None for the last user message")
    if request is None:
        boundary = current_boundary(boundaries(messages))
        tail_start = boundary.message if boundary else 0
        turn_key = boundary.turn_key if boundary else ""
    else:
        tail_start = len(messages)
        messages = (*messages, *_request_messages(request, transcript.dialect))
        found = boundaries(messages)
        turn_key = found[-1].turn_key if found else ""
    key = session_key(messages)
    return _Moment(messages, tail_start, turn_key, selection_seed(key, turn_key))


def _request_messages(request: str | Mapping[str, Json], dialect: Dialect) -> tuple[Message, ...]:
    """Return the request as messages: a text, or a message of the list's dialect or another.

    A text is the person's, whatever it begins with. Raises UsageError for what is no user message.
    """
    if isinstance(request, str):
        (message,) = read_messages([{"role": "user", "content": request}], "openai").messages
        parts = tuple(replace(part, author="human") for part in message.parts)
        return (replace(message, parts=parts),)
    found: tuple[Message, ...] = ()
    if isinstance(request, Mapping):
        found = read_messages([request], dialect).messages or read_messages([request]).messages
    if not any(is_real_user(message) for message in found):
        raise UsageError(
            "the request is no user message with words in it: give its text, or a message like "
            '{"role": "user", "content": "..."}'
        )
    return found


def _prepared(moment: _Moment, settings: Settings) -> tuple[_Moment, Counter[str]]:
    """Return the moment with the optional changes to history made, and their counts."""
    notes: Counter[str] = Counter()
    history = moment.messages[: moment.tail_start]
    if settings.paste_limit is not None:
        history, clipped = clip_pastes(history, settings.paste_limit)
        if clipped:
            notes["pasted-characters-clipped"] = clipped
    if not settings.keep_thinking:
        before = sum(part.kind == "thinking" for message in history for part in message.parts)
        history = without_thinking(history)
        if before:
            notes["thinking-dropped"] = before
    messages = (*history, *moment.messages[moment.tail_start :])
    return replace(moment, messages=messages), notes


def _history(whole: Segmentation, tail_start: int) -> Segmentation:
    """Return the part of the segmentation that belongs to history."""
    return Segmentation(
        tuple(block for block in whole.blocks if block.refs[0].message < tail_start),
        tuple(ref for ref in whole.fixed if ref.message < tail_start),
        tuple(exclusion for exclusion in whole.excluded if exclusion.ref.message < tail_start),
    )


def _request_text(messages: Sequence[Message], tail_start: int) -> str:
    """Return the person's words of the message the current turn begins with."""
    return "\n".join(
        part.text()
        for message in messages[tail_start : tail_start + 1]
        for part in message.parts
        if part.kind == "text" and part.author in HUMAN_AUTHORS
    )


def _verify(messages: Sequence[Json], dialect: Dialect) -> tuple[str, ...]:
    """Return the vendor's size limits that the messages exceed.

    Sizes are the input's, not ours to mend: a person's words stay whole. Every other error raises.
    """
    errors = [finding for finding in check(messages, dialect) if finding.severity == "error"]
    broken = [finding for finding in errors if finding.code not in SIZE_CODES]
    if broken and messages:
        first = broken[0]
        raise InvalidContextError(
            f"the rendered context breaks {len(broken)} rule(s) of {dialect}, first "
            f"{first.code} in message {first.line}: {first.detail} It was not returned. "
            "This is a bug of Recap: please report it with the output of `recap check SESSION`"
        )
    return tuple(sorted({finding.code for finding in errors if finding.code in SIZE_CODES}))


def _report(
    moment: _Moment,
    whole: Segmentation,
    table: BlockTable,
    selection: Selection,
    rendering: Rendering,
    notes: Counter[str],
) -> Report:
    messages = moment.messages
    kept = selection.is_kept
    excluded = Counter(exclusion.reason for exclusion in whole.excluded)
    budget = selection.budget_chars
    protected = selection.protected_chars
    dropped_active = bool((table.is_active & ~kept).any())
    return Report(
        policy=selection.policy,
        dialect="",
        history_chars=selection.active_chars,
        budget_chars=budget,
        protected_chars=protected,
        protected_share=protected / budget if budget else float(protected > 0),
        over_budget=protected > budget,
        kept_chars=selection.cost_chars,
        fixed_chars=sum(messages[r.message].parts[r.part].cost_chars for r in whole.fixed),
        current_chars=sum(block.cost_chars for block in whole.blocks[len(table) :]),
        marker_chars=rendering.marker_chars,
        markers=rendering.markers,
        blocks=len(table),
        kept_blocks=int(kept.sum()),
        expanded_blocks=selection.count("expanded"),
        revived_blocks=int((kept & ~table.is_active).sum()),
        is_effective=dropped_active and selection.cost_chars < selection.active_chars,
        excluded=dict(sorted(excluded.items())),
        notes=dict(sorted((notes + rendering.notes).items())),
        findings={},
        turn_key=moment.turn_key,
    )
