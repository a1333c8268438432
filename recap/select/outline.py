"""The order of what goes out: kept blocks, fixed parts, markers and the current turn, as groups."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recap.blocks.pairing import PartRef
    from recap.blocks.segment import Segmentation
    from recap.transcript.model import Message, Part, Role


@dataclass(frozen=True, slots=True)
class Group:
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


@dataclass(frozen=True, slots=True)
class _Item:
    """A part in its place; items sort by ``place`` alone."""

    place: tuple[int, int, int]
    key: tuple[int, int]
    ref: PartRef
    block: int


def outline(
    messages: Sequence[Message],
    segmentation: Segmentation,
    kept: Iterable[int],
    tail_start: int,
) -> list[Group]:
    """Return the groups of the kept blocks, the fixed parts and everything from ``tail_start`` on.

    Args:
        messages: All messages, the current turn included.
        segmentation: Of all messages.
        kept: Indices of kept blocks before ``tail_start``.
        tail_start: Index of the message the current turn begins with.

    A block goes out where its first message stood: its message, then its results. Parts of one user
    message that are kept for different reasons come together again in their order.
    """
    items: list[_Item] = []
    for index in kept:
        items.extend(_block_items(messages, segmentation, index))
    for index in _tail_blocks(messages, segmentation, tail_start):
        items.extend(_block_items(messages, segmentation, index))
    items.extend(
        _Item((ref.message, 0, ref.part), (ref.message, -1), ref, -1) for ref in segmentation.fixed
    )
    items.sort(key=lambda item: item.place)
    return [
        _group(messages, list(run), tail_start) for _, run in groupby(items, lambda item: item.key)
    ]


def _block_items(
    messages: Sequence[Message], segmentation: Segmentation, index: int
) -> Iterator[_Item]:
    refs = segmentation.blocks[index].refs
    anchor = refs[0].message
    for order, ref in enumerate(refs):
        if messages[ref.message].role == "tool":
            yield _Item((anchor, 1, order), (anchor, index), ref, index)
        else:
            yield _Item((anchor, 0, ref.part), (anchor, -1), ref, -1)


def _tail_blocks(
    messages: Sequence[Message], segmentation: Segmentation, tail_start: int
) -> Iterator[int]:
    """Yield the blocks of the current turn that can go out.

    A message with thinking that would lose a call is left out whole: providers refuse a changed
    message that carries thinking in the unfinished turn.
    """
    cut = {
        exclusion.ref.message
        for exclusion in segmentation.excluded
        if messages[exclusion.ref.message].role == "assistant" and exclusion.reason != "blank"
    }
    for index in range(len(segmentation.blocks) - 1, -1, -1):
        block = segmentation.blocks[index]
        anchor = block.refs[0].message
        if anchor < tail_start:
            break
        has_thinking = any(part.kind == "thinking" for part in messages[anchor].parts)
        if not (anchor in cut and has_thinking):
            yield index


def _group(messages: Sequence[Message], run: Sequence[_Item], tail_start: int) -> Group:
    refs = [item.ref for item in run]
    return Group(
        role=messages[refs[0].message].role,
        parts=tuple(messages[ref.message].parts[ref.part] for ref in refs),
        messages=tuple(ref.message for ref in refs),
        is_current=run[0].place[0] >= tail_start,
        block=run[0].block,
    )
