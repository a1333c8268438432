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
from recap.blocks.segment import segment

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
        gone: Indices of the messages that the client did not send any more, ascending.
    """

    messages: tuple[Message, ...]
    whole: Segmentation
    root: str
    gone: tuple[int, ...] = ()


def restored(moment: Moment, whole: Segmentation, archive: Archive) -> Moment:
    """Return the moment with the blocks in it that the client no longer sends.

    The very moment comes back when nothing is missing, as in a session that grows.
    """
    size = len(archive.whole.blocks)
    ids = [block.id for block in whole.blocks[:size]]
    if not archive.gone and ids == [block.id for block in archive.whole.blocks]:
        return moment
    view = _View.of(archive)
    is_compacted = moment.session.root != archive.root and bool(
        _summaries(moment.messages) - _summaries(archive.messages)
    )
    old_keys = block_keys(view.messages, view.blocks)
    new_keys = block_keys(moment.messages, whole.blocks)
    alignment = align_blocks(old_keys, new_keys, is_new_root=is_compacted)
    last = len(old_keys) if is_compacted else _last_proof(old_keys, new_keys, alignment)
    missing = _missing(archive, view, alignment, last)
    if not missing:
        return moment
    return _inserted(moment, _places(archive, view, moment, whole, alignment, missing))


@dataclass(frozen=True, slots=True)
class _View:
    """What the client sent last.

    Attributes:
        messages: Its messages.
        blocks: Their blocks, with the ids the client's own list gives them.
        at: For each message its index in the archive, ascending.
        starts: For each block the index in the archive of the message it begins with, ascending.
    """

    messages: tuple[Message, ...]
    blocks: tuple[Block, ...]
    at: list[int]
    starts: list[int]

    @classmethod
    def of(cls, archive: Archive) -> _View:
        gone = frozenset(archive.gone)
        at = [index for index in range(len(archive.messages)) if index not in gone]
        messages = tuple(archive.messages[index] for index in at)
        blocks = segment(messages).blocks if gone else archive.whole.blocks
        return cls(messages, blocks, at, [at[block.refs[0].message] for block in blocks])


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


def _missing(archive: Archive, view: _View, alignment: Alignment, last: int) -> list[int]:
    """Return the messages of the archive that go back, ascending.

    Blocks that are missing before the last one that is proved; and what was missing before, while
    the block it went before is still there.
    """
    matched = set(alignment.continues)
    found = {
        view.at[ref.message]
        for old in alignment.condensed
        if old < last
        for ref in view.blocks[old].refs
    }
    for index in archive.gone:
        anchor = bisect_left(view.starts, index)
        if anchor < last or anchor in matched:
            found.add(index)
    taken = {view.at[ref.message] for old in matched - {NOT_KNOWN} for ref in view.blocks[old].refs}
    return sorted(found - taken)


def _places(
    archive: Archive,
    view: _View,
    moment: Moment,
    whole: Segmentation,
    alignment: Alignment,
    missing: Sequence[int],
) -> list[tuple[int, Message]]:
    """Return the missing messages with the index they go before, in their old order.

    What the client sends again in their place, as after a condensation undone, is not missing.
    """
    pairs = sorted((old, new) for new, old in enumerate(alignment.continues) if old != NOT_KNOWN)
    starts = [view.starts[old] for old, _ in pairs]
    fresh: dict[int, set[object]] = {}  # matched block -> what is new before it
    following = len(pairs)
    for new in range(len(whole.blocks) - 1, -1, -1):
        if alignment.continues[new] != NOT_KNOWN:
            following = bisect_left(pairs, (alignment.continues[new], new))
        else:
            said = fresh.setdefault(following, set())
            said.update(_said(moment.messages[ref.message]) for ref in whole.blocks[new].refs)
    places = []
    for index in missing:
        after = bisect_left(starts, index)
        at = whole.blocks[pairs[after][1]].refs[0].message if after < len(pairs) else 0
        message = archive.messages[index]
        if _said(message) not in fresh.get(after, ()):
            places.append((at, replace(message, is_active=False)))
    return places


def _said(message: Message) -> object:
    return (message.role, *(part.digest for part in message.parts if part.digest))


def _inserted(moment: Moment, missing: Sequence[tuple[int, Message]]) -> Moment:
    """Return the moment with messages inserted in its history; the current turn stays as it is."""
    count = [0] * (len(moment.messages) + 1)
    before: dict[int, list[Message]] = {}
    for at, message in missing:
        if at <= moment.tail_start:
            before.setdefault(at, []).append(message)
            count[at] += 1
    moved = [index + more for index, more in enumerate(accumulate(count))]
    kept = set(moved)
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
        gone=tuple(index for index in range(moved[-1]) if index not in kept),
        closed=tuple(replace(each, message=moved[each.message]) for each in moment.closed),
    )
