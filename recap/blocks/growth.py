"""Blocks of a list that grew, in time for what is new: the part before it is not looked at again."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, takewhile
from operator import attrgetter
from typing import TYPE_CHECKING

from recap.blocks.pairing import PartRef
from recap.blocks.segment import Before, Exclusion, Segmentation, segment, segment_after
from recap.transcript.model import HUMAN_AUTHORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.transcript.model import Message

_UNPAIRED = frozenset(("open-call", "orphan-result", "duplicate-call", "duplicate-result"))

# The digest stands for kind, name and content; thinking has none, and a cost.
_part_facts = attrgetter("author", "digest", "call_id", "cost_chars", "is_blank", "is_error")


def segment_grown(
    known: Sequence[Message],
    before: Segmentation,
    messages: Sequence[Message],
    same: int | None = None,
) -> Segmentation:
    """Return ``segment(messages)`` of a list that begins like ``known``.

    From the last block on that both share, messages are segmented anew; where a call or result
    before it could belong to one after it, all of them are.

    Args:
        known: Messages seen before.
        before: Their blocks, or the first of them with what stands among these.
        messages: The list as it is now.
        same: ``common_messages`` of both, where it was counted already.
    """
    if same is None:
        same = common_messages(known, messages)
    blocks = list(takewhile(lambda block: max(block.refs).message < same, before.blocks))
    start = blocks[-1].refs[0].message if blocks else 0
    while blocks and blocks[-1].refs[0].message >= start:
        blocks.pop()
    first = Segmentation(
        tuple(blocks),
        tuple(ref for ref in before.fixed if ref.message < start),
        tuple(each for each in before.excluded if each.ref.message < start),
    )
    head, rest = messages[:start], messages[start:]
    open_ids = _unpaired_ids(messages, first)
    is_open = _names_any(rest, open_ids) or bool(open_ids and same < len(known))
    if not blocks or is_open or not _holds_results(first, head):
        return segment(messages)
    state = Before(
        turn=blocks[-1].turn if any(map(_begins_turn, head)) else -1,
        in_live_root=not any(each.role == "assistant" and each.is_active for each in head),
        ids=frozenset([block.id for block in blocks]),
    )
    after = segment_after(state, rest)
    if _names_any(head, _unpaired_ids(rest, after)):
        return segment(messages)
    return _joined(first, after, start)


def common_messages(known: Sequence[Message], messages: Sequence[Message]) -> int:
    """Return how many messages two lists share from their beginning, as far as blocks can tell."""
    pairs = zip(known, messages, strict=False)
    return sum(1 for _ in takewhile(lambda pair: _is_same(*pair), pairs))


def _is_same(one: Message, other: Message) -> bool:
    return one is other or (
        one.role == other.role
        and one.is_active == other.is_active
        and list(map(_part_facts, one.parts)) == list(map(_part_facts, other.parts))
    )


def _unpaired_ids(messages: Sequence[Message], found: Segmentation) -> set[str]:
    """Return the ids of calls without results and results without calls."""
    refs = [each.ref for each in found.excluded if each.reason in _UNPAIRED]
    return {messages[ref.message].parts[ref.part].call_id for ref in refs}


def _holds_results(found: Segmentation, messages: Sequence[Message]) -> bool:
    """Return True when no result in the messages belongs to a block that comes after them."""
    refs = [*chain.from_iterable(block.refs for block in found.blocks)]
    refs += [each.ref for each in found.excluded]
    end = len(messages)
    held = sum(at < end and messages[at].role == "tool" for at, _ in refs)
    return held == sum(len(each.parts) for each in messages if each.role == "tool")


def _names_any(messages: Sequence[Message], call_ids: set[str]) -> bool:
    return bool(call_ids) and any(
        part.kind in ("call", "result") and part.call_id in call_ids
        for message in messages
        for part in message.parts
    )


def _begins_turn(message: Message) -> bool:
    return message.role == "user" and any(
        part.author in HUMAN_AUTHORS and part.author != "steering" and not part.is_blank
        for part in message.parts
    )


def _joined(before: Segmentation, after: Segmentation, start: int) -> Segmentation:
    """Return two parts as one; refs of the second begin anew at ``start``."""

    def moved(ref: PartRef) -> PartRef:
        return PartRef(ref.message + start, ref.part)

    return Segmentation(
        blocks=before.blocks
        + tuple(replace(block, refs=tuple(map(moved, block.refs))) for block in after.blocks),
        fixed=before.fixed + tuple(map(moved, after.fixed)),
        excluded=before.excluded
        + tuple(Exclusion(moved(each.ref), each.reason) for each in after.excluded),
    )
