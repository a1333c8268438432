"""The order of what goes out: kept blocks, fixed parts, markers and the current turn, as groups."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recap.blocks.pairing import PartRef
    from recap.blocks.segment import Segmentation
    from recap.transcript.model import Message, Part, Role


class Group(NamedTuple):
    """Parts that go out together as one message (for ``tool``: the results of one block).

    Attributes:
        role: Canonical role.
        parts: Parts in order.
        messages: For each part, the index of the message it comes from; -1 for a marker.
        is_current: It belongs to the current turn and is not ours to change.
        block: Index of the block whose results these are, -1 for other groups.
    """

    role: Role
    parts: tuple[Part, ...]
    messages: tuple[int, ...]
    is_current: bool = False
    block: int = -1

    def with_parts(self, parts: Sequence[tuple[Part, int]]) -> Group:
        """Return the group with other parts, each with its message."""
        chosen = tuple(part for part, _ in parts)
        return Group(self.role, chosen, tuple(at for _, at in parts), self.is_current, self.block)


def outline(
    messages: Sequence[Message],
    segmentation: Segmentation,
    chosen: Iterable[int],
    tail_start: int,
) -> list[Group]:
    """Return the groups of the chosen blocks and of the fixed parts, in order.

    Args:
        messages: All messages, the current turn included.
        segmentation: Of all messages.
        chosen: Indices of the blocks that go out, those of the current turn included.
        tail_start: Index of the message the current turn begins with.

    A block goes out where its first message stood: its message, then its results. Parts of one user
    message that are kept for different reasons come together again in their order.
    """
    blocks = segmentation.blocks
    units = [(blocks[index].refs[0].message, index, blocks[index].refs) for index in chosen]
    units += [(ref.message, -1, (ref,)) for ref in segmentation.fixed]
    units.sort(key=itemgetter(0))
    groups: list[Group] = []
    pending: list[PartRef] = []  # parts of one message, from all units that begin with it
    for anchor, index, refs in units:
        if pending and pending[0].message != anchor:
            groups.append(_group(messages, sorted(pending), pending[0].message, tail_start))
            pending = []
        if refs[-1].message == anchor:
            pending += refs
            continue
        own = [ref for ref in refs if ref.message == anchor]
        own = sorted([*pending, *own]) if pending else own
        groups.append(_group(messages, own, anchor, tail_start))
        pending = []
        results = [ref for ref in refs if ref.message != anchor]
        groups.append(_group(messages, results, anchor, tail_start, index))
    if pending:
        groups.append(_group(messages, sorted(pending), pending[0].message, tail_start))
    return groups


def unfinished_blocks(
    messages: Sequence[Message], segmentation: Segmentation, tail: Iterable[int]
) -> set[int]:
    """Return those blocks of the current turn that cannot go out.

    A message with thinking that would lose a call is left out whole: providers may refuse a changed
    message that carries thinking in the unfinished turn. A person's words outweigh that.
    """
    cut = {
        exclusion.ref.message
        for exclusion in segmentation.excluded
        if messages[exclusion.ref.message].role == "assistant" and exclusion.reason != "blank"
    }
    return {
        index
        for index in tail
        if not segmentation.blocks[index].has_words
        and (anchor := segmentation.blocks[index].refs[0].message) in cut
        and any(part.kind == "thinking" for part in messages[anchor].parts)
    }


def _group(
    messages: Sequence[Message],
    refs: Sequence[PartRef],
    anchor: int,
    tail_start: int,
    block: int = -1,
) -> Group:
    first = messages[refs[0].message]
    if len(refs) == len(first.parts) and _is_all_of_one_message(refs):
        parts = first.parts
    else:
        parts = tuple([messages[ref.message].parts[ref.part] for ref in refs])
    at = (refs[0].message,) if len(refs) == 1 else tuple([ref.message for ref in refs])
    return Group(first.role, parts, at, anchor >= tail_start, block)


def _is_all_of_one_message(refs: Sequence[PartRef]) -> bool:
    """Return True when the refs, as many as their first message has parts, are just these."""
    message = refs[0].message
    if len(refs) == 1:
        return True
    return all(ref.message == message and ref.part == at for at, ref in enumerate(refs))
