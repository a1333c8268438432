"""The one pipeline: segment, observe, select, render, check. The only place with its order.

Library, command line, gateway and server call it. It is pure and total: faults of the input are left
out with a reason; an exception that is no usage error is a bug of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.config import Settings
from recap.errors import InvalidContextError, UsageError
from recap.graph.state import ContextGraph
from recap.select.alternate import alternate as alternated
from recap.select.kept import again
from recap.select.policies import recipe_of
from recap.select.render import RenderOptions, render
from recap.select.selection import Request, select
from recap.session.known import Memory, known_of
from recap.session.report import Compaction, report_of
from recap.transcript.check import check
from recap.transcript.dialects import DIALECTS
from recap.transcript.tree import to_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.transcript.model import Dialect, Json, Transcript
    from recap.turns import SessionKey

SIZE_CODES = frozenset(
    ("request-bytes", "message-count", "content-chars", "call-count", "cache-markers")
)
"""Findings about the size of the input: reported, never a reason to return nothing."""


def compact_transcript(  # noqa: PLR0913 - one keyword for each thing a caller may want
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
    named: SessionKey | None = None,
    memory: Memory | None = None,
) -> Compaction:
    """Return the compaction of a transcript; arguments as for ``recap.compact``.

    Args:
        transcript: The session, as far as it was read.
        request: The arriving request; None for the session's last one.
        settings: Coefficients.
        policy: Name of a recipe.
        pins: Ids of blocks to keep.
        graph: A graph to select by, instead of the session's own.
        to: Dialect of the result.
        alternate: Join adjacent messages of one role.
        model: The model the context is for, so that another model's thinking is left out; "" takes
            it from the transcript.
        named: What names the session besides its first message.
        memory: Where the session's past comes from.
    """
    settings = Settings() if settings is None else settings
    demand(settings, to, pins, graph)
    recipe = recipe_of(policy or settings.policy)
    known = known_of(transcript, request, settings, named=named, memory=memory)
    if graph is not None:
        known = known.seen_by(graph)
    earlier = memory.kept(known) if memory else None
    arriving = Request(known.moment.request_text, known.moment.seed)
    if earlier is None:
        selection = select(
            known.graph, known.table, arriving, settings, policy=recipe.name, pins=pins
        )
    else:
        kept_set, extend = earlier
        selection = again(kept_set, known.graph, known.table, arriving, settings, extend=extend)
    dialect = to or transcript.dialect
    is_whole = earlier is not None and earlier.kept.is_whole
    has_markers = settings.markers and recipe.markers and not is_whole
    options = RenderOptions(dialect, selection.budget_chars if has_markers else 0, model)
    moment = known.moment
    kept = [int(index) for index in selection.is_kept.nonzero()[0]]
    rendering = render(moment.messages, known.whole, kept, moment.tail_start, options)
    objects = [to_object(tree) for tree in rendering.messages]
    if alternate and dialect in ("anthropic", "openai"):  # the others have templates of their own
        objects, _ = alternated(objects)
    over_limit = _verify(objects, dialect)
    return Compaction(
        messages=objects,
        system=[to_object(tree) for tree in rendering.system],
        selection=selection,
        report=report_of(known, selection, rendering, transcript.findings, dialect, over_limit),
        known=known,
        rendering=rendering,
    )


def demand(settings: object, to: object, pins: object, graph: object) -> None:
    """Raise UsageError for an argument of the wrong kind."""
    if not isinstance(settings, Settings):
        raise UsageError(f"settings must be recap.Settings, got {type(settings).__name__}")
    if to is not None and (not isinstance(to, str) or to not in DIALECTS):
        raise UsageError(f"unknown dialect {to!r:.60}; known: {', '.join(DIALECTS)}")
    if not isinstance(pins, list | tuple) or not all(isinstance(pin, str) for pin in pins):
        raise UsageError("pins must be a list of block ids, as `recap explain` prints them")
    if graph is not None and not isinstance(graph, ContextGraph):
        raise UsageError(f"graph must be a ContextGraph, got {type(graph).__name__}")


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
