"""Blocks a client no longer sends: condensed away, or replaced by a native compaction.

This process still holds them, so they go back to where they stood, as history from before a
compaction: they can be revived, and count nothing in the budget's base. What a person took back is
gone. Nothing of it is written to disk.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from recap.blocks.alignment import NOT_KNOWN, align_blocks, block_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.blocks.alignment import Alignment, BlockKey
    from recap.blocks.segment import Block, Segmentation
    from recap.session.moment import Moment
    from recap.transcript.model import Message


@dataclass(frozen=True, slots=True)
class Archive:
    """What this process saw of a session last.

    Attributes:
        messages: Its messages, those taken from an earlier archive included.
        whole: Their blocks, and what stands among these.
        root: Hash of the first message of the person, as ``SessionKey.root``.
    """

    messages: tuple[Message, ...]
    whole: Segmentation
    root: str


def restored(moment: Moment, whole: Segmentation, archive: Archive) -> Moment:
    """Return the moment with the blocks in it that the client no longer sends.

    The very moment comes back when nothing is missing, as in a session that grows.
    """
    known = archive.whole.blocks
    size = len(known)
    ids = [block.id for block in whole.blocks[:size]]
    if ids == [block.id for block in known]:
        return moment
    old_keys = block_keys(archive.messages, known)
    new_keys = block_keys(moment.messages, whole.blocks)
    is_compacted = moment.session.root != archive.root and bool(
        _summaries(moment.messages) - _summaries(archive.messages)
    )
    alignment = align_blocks(old_keys, new_keys, is_new_root=is_compacted)
    condensed: Sequence[int] = alignment.condensed
    if not is_compacted:
        last = _last_proof(old_keys, new_keys, alignment)
        anchored = _anchored(known, alignment)
        missing = sorted((*alignment.condensed, *alignment.rewound))
        condensed = [old for old in missing if old < last or old in anchored]
    if not condensed:
        return moment
    return _inserted(moment, _places(archive, whole, alignment, condensed))


def _anchored(known: Sequence[Block], alignment: Alignment) -> set[int]:
    """Return the blocks condensed before whose next live block is still there."""
    matched = set(alignment.continues)
    anchor, found = NOT_KNOWN, set()
    for old in range(len(known) - 1, -1, -1):
        if known[old].is_active:
            anchor = old
        elif anchor != NOT_KNOWN and anchor in matched:
            found.add(old)
    return found


def _summaries(messages: Sequence[Message]) -> set[bytes]:
    """Return the hashes of the summaries that the client made itself."""
    return {p.digest for m in messages for p in m.parts if p.author == "summary"}


def _last_proof(old: Sequence[BlockKey], new: Sequence[BlockKey], alignment: Alignment) -> int:
    """Return the last known block that proves that history goes on behind what is missing.

    That takes a tool call with the same id: an agent says "Done." again after a turn was taken back.
    """
    pairs = ((place, at) for at, place in enumerate(alignment.continues) if place != NOT_KNOWN)
    proofs = (place for place, at in pairs if set(old[place].calls) & set(new[at].calls))
    return max(proofs, default=NOT_KNOWN)


def _places(
    archive: Archive, whole: Segmentation, alignment: Alignment, condensed: Sequence[int]
) -> list[tuple[int, Message]]:
    """Return the missing messages with the index they go before, in their old order."""
    new_of = {old: new for new, old in enumerate(alignment.continues) if old != NOT_KNOWN}
    matched = sorted(new_of)
    taken = {ref.message for old in matched for ref in archive.whole.blocks[old].refs}
    places: dict[int, int] = {}
    for old in condensed:
        after = bisect_left(matched, old)
        at = 0
        if after < len(matched):
            at = whole.blocks[new_of[matched[after]]].refs[0].message
        for ref in archive.whole.blocks[old].refs:
            if ref.message not in taken:
                places.setdefault(ref.message, at)
    return [
        (at, replace(archive.messages[index], is_active=False))
        for index, at in sorted(places.items())
    ]


def _inserted(moment: Moment, missing: Sequence[tuple[int, Message]]) -> Moment:
    """Return the moment with messages inserted in its history; the current turn stays as it is."""
    count = [0] * (len(moment.messages) + 1)
    before: dict[int, list[Message]] = {}
    for at, message in missing:
        if at <= moment.tail_start:
            before.setdefault(at, []).append(message)
            count[at] += 1
    moved = [index + more for index, more in enumerate(accumulate(count))]
    messages: list[Message] = []
    for index, message in enumerate(moment.messages):
        messages += (*before.get(index, ()), message)
    messages += before.get(len(moment.messages), ())
    return replace(
        moment,
        messages=tuple(messages),
        tail_start=moved[moment.tail_start],
        request_at=moved[moment.request_at],
        own=moved[moment.own],
        closed=tuple(replace(each, message=moved[each.message]) for each in moment.closed),
    )
