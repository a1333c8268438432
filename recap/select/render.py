"""Chosen blocks to a vendor's message list: always valid, kept parts byte for byte.

The renderer picks parts and builds no JSON of its own beyond envelopes and markers. The same
arguments give the same bytes in every process.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from recap.select.markers import gaps, marker_text, merge
from recap.select.outline import Group, outline, unfinished_blocks
from recap.select.vendor import (
    FINISHERS,
    SYSTEM_WRITERS,
    WRITERS,
    Notes,
    adapt,
    current_model,
)
from recap.transcript.model import Dialect, Envelope, Held, Message, Part, Raw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.blocks.segment import Block, Segmentation
    from recap.transcript.tree import Tree


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How to render.

    Attributes:
        dialect: Vendor's form of the result.
        marker_budget_chars: B, of which markers may take a twentieth; 0 for no markers.
        model: Model the context is for; "" to take it from the messages.
    """

    dialect: Dialect
    marker_budget_chars: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class Rendering:
    """A rendered context.

    Attributes:
        messages: The vendor's messages; leaves may be raw handles (see ``transcript.tree``).
        system: System blocks for dialects that carry them beside the list.
        markers: Omission markers in it.
        marker_chars: Their characters, outside the budget.
        notes: What the vendor would have refused, by kind of change.
    """

    messages: tuple[Tree, ...]
    system: tuple[Tree, ...]
    markers: int
    marker_chars: int
    notes: Notes


def render(
    messages: Sequence[Message],
    segmentation: Segmentation,
    kept: Sequence[int],
    tail_start: int,
    options: RenderOptions,
) -> Rendering:
    """Return the context of the kept blocks and the current turn.

    Args:
        messages: All messages, the current turn included.
        segmentation: Of all messages.
        kept: Ascending indices of kept blocks that begin before ``tail_start``.
        tail_start: Index of the message the current turn begins with; its messages are kept as they
            are, but for what no provider accepts.
        options: Dialect, markers and model.
    """
    blocks = segmentation.blocks
    tail = range(
        bisect_left(blocks, tail_start, key=lambda block: block.refs[0].message), len(blocks)
    )
    unfinished = unfinished_blocks(messages, segmentation, tail)
    chosen = [*kept, *(index for index in tail if index not in unfinished)]
    groups = outline(messages, segmentation, chosen, tail_start)
    groups, marker_chars = _with_markers(groups, blocks[: tail.start], kept, options)
    model = options.model or current_model(messages, tail_start)
    groups, notes = adapt(groups, messages, options.dialect, model)
    trees, system = _write(groups, messages, options.dialect)
    if unfinished:
        notes["unfinished-message"] = len(unfinished)
    markers = sum(group.messages == (-1,) for group in groups)
    return Rendering(tuple(trees), tuple(system), markers, marker_chars, notes)


def _with_markers(
    groups: list[Group],
    history: Sequence[Block],
    kept: Sequence[int],
    options: RenderOptions,
) -> tuple[list[Group], int]:
    """Return the groups with a marker where blocks were dropped, and the markers' characters."""
    if not options.marker_budget_chars:
        return groups, 0
    wanted = merge(gaps(history, kept), options.marker_budget_chars)
    queue = [(history[gap.first].refs[0].message, marker_text(gap)) for gap in reversed(wanted)]
    chars = sum(len(text) for _, text in queue)
    placed: list[Group] = []
    for group in groups:
        # A marker never separates a call from its results.
        while queue and group.role != "tool" and queue[-1][0] < group.messages[0]:
            placed.append(_marker(queue.pop()[1], options.dialect))
        placed.append(group)
    placed.extend(_marker(text, options.dialect) for _, text in reversed(queue))
    return placed, chars


@lru_cache(maxsize=4096)
def _marker(text: str, dialect: Dialect) -> Group:
    # Made by hand: a marker needs no identity, and a long session has many.
    part = Part("text", Held(text), (), "marker", len(text), b"", dialect=dialect)
    return Group("user", (part,), (-1,))


def _write(
    groups: Sequence[Group], messages: Sequence[Message], dialect: Dialect
) -> tuple[list[Tree], list[Tree]]:
    """Return the messages and the system blocks of the groups."""
    write_message = WRITERS[dialect]
    trees: list[Tree] = []
    system: list[Tree] = []
    index = 0
    while index < len(groups):
        whole, used = _whole_message(groups[index : index + 2], messages, dialect)
        if whole is not None:
            trees.append(whole)
            index += used
            continue
        group = groups[index]
        if group.role == "system" and _stands_beside(group, messages, dialect):
            system.extend(SYSTEM_WRITERS[dialect](group.parts))
        else:
            trees.extend(write_message(group.role, group.parts))
        index += 1
    if finish := FINISHERS.get(dialect):
        trees = finish(trees, messages)
    return trees, system


def _stands_beside(group: Group, messages: Sequence[Message], dialect: Dialect) -> bool:
    """Return True for system text that goes beside the list.

    Responses has a place for its own ``instructions`` there, and takes other text in the list.
    """
    if dialect != "responses":
        return dialect in SYSTEM_WRITERS
    envelope = messages[group.messages[0]].envelope
    return envelope.dialect == "responses" and envelope.raw is None


def _whole_message(
    groups: Sequence[Group], messages: Sequence[Message], dialect: Dialect
) -> tuple[Raw | None, int]:
    """Return the vendor's own message that the first group, or the first two, make up completely.

    Two groups do when a user message held results and the person's words, and all of it is kept.
    """
    envelope = _envelope(groups[0], messages)
    if envelope is None or envelope.raw is None or envelope.dialect != dialect:
        return None, 0
    size = len(groups[0].parts)
    if size == envelope.size:
        return envelope.raw, 1
    is_split = len(groups) == 2 and _envelope(groups[1], messages) is envelope
    if (
        is_split
        and size + len(groups[1].parts) == envelope.size
        and _has_results_first(envelope.raw)
    ):
        return envelope.raw, 2
    return None, 0


def _envelope(group: Group, messages: Sequence[Message]) -> Envelope | None:
    """Return the one envelope all parts of the group came in, unchanged; None without one."""
    if group.messages[0] < 0:
        return None
    first = messages[group.messages[0]]
    envelope = first.envelope
    if group.parts is first.parts:
        return envelope
    for part, at in zip(group.parts, group.messages, strict=True):
        message = messages[at]
        if message.envelope is not envelope or not any(part is own for own in message.parts):
            return None
    return envelope


def _has_results_first(raw: Raw) -> bool:
    """Return True when no result stands behind other content: the order providers ask for."""
    message = raw.load()
    kinds = [block.get("type") == "tool_result" for block in message.get("content") or ()]
    return kinds == sorted(kinds, reverse=True)
