"""Which known block each block of a request continues: histories grow, and clients rewrite them.

A list that goes on keeps its blocks, and their ids tell so. Some clients send something else: Gemini
CLI rewrites results on resume, aider changes past texts and inserts messages, condensers and native
compaction take the middle or the root away. The mapping found here keeps what was learned of a
block with the block (gateway rule R6; the order of the steps and their limits are ours).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from recap.blocks.segment import Block, BlockKind
    from recap.transcript.model import Message

NOT_KNOWN = -1

_AGENT_KINDS = ("tools", "reply")

Pair: TypeAlias = tuple[int, int]
"""Index of a known block, index of the new block that continues it."""


class BlockKey(NamedTuple):
    """What a block is recognised by.

    Attributes:
        id: Block id: content of its first message, and occurrence.
        kind: See ``BlockKind``.
        calls: Ids of its tool calls, as the vendor gave them; a hint, as they may repeat.
        tools: Names of the tools called, in order.
    """

    id: str
    kind: BlockKind
    calls: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a request's blocks stand to the known ones.

    Attributes:
        prefix: How many blocks both lists share from their beginning.
        continues: For each new block the index of the known block it is, or rewrites;
            ``NOT_KNOWN`` for a block that was never there. No known block stands twice.
        condensed: Indices of known blocks that are missing while the history around them, or a
            compaction of it, goes on: they can be revived.
        rewound: Indices of known blocks of a tail that another one took the place of: gone.
    """

    prefix: int
    continues: tuple[int, ...]
    condensed: tuple[int, ...]
    rewound: tuple[int, ...]


def block_keys(messages: Sequence[Message], blocks: Iterable[Block]) -> tuple[BlockKey, ...]:
    """Return the keys of blocks of ``messages``, in order."""
    return tuple(_key(messages, block) for block in blocks)


def align_blocks(
    known: Sequence[BlockKey], new: Sequence[BlockKey], *, is_new_root: bool = False
) -> Alignment:
    """Return which known block each new block continues.

    Equal ids are the same block wherever they stand. A tool-call id that stands in one block on
    either side joins the two. Between two blocks that kept their order, blocks that were rewritten
    pair up when both sides hold the same kinds and tools in the same order. After the last of them
    nothing does: there a rewritten request cannot be told from another one.

    A history goes on behind what is missing when a block the agent made is still there: a person may
    say the same words again after taking a turn back.

    O(n log n) in the blocks of both lists, linear as far as one continues the other; deterministic.

    Args:
        known: Blocks known so far, in order, those that were condensed before included.
        new: Blocks of the request, in order.
        is_new_root: A native compaction replaced the root: nothing was taken back, and all that is
            missing was condensed.
    """
    pairs = zip(known, new, strict=False)
    prefix = sum(1 for _ in takewhile(lambda pair: pair[0].id == pair[1].id, pairs))
    match = _Match(known, new, prefix)
    match.join(_by_id)
    match.join(_by_call)
    for old_gap, new_gap in match.gaps():
        if _shapes(known, old_gap) == _shapes(new, new_gap):
            match.take(zip(old_gap, new_gap, strict=True))
    missing = match.open_known()
    last = max(
        (old for old in match.continues if old < prefix or known[old].kind in _AGENT_KINDS),
        default=NOT_KNOWN,
    )
    return Alignment(
        prefix=prefix,
        continues=tuple(match.continues),
        condensed=tuple(old for old in missing if is_new_root or old < last),
        rewound=tuple(old for old in missing if not is_new_root and old > last),
    )


class _Match:
    """The mapping as it fills: blocks without a partner are open."""

    def __init__(self, known: Sequence[BlockKey], new: Sequence[BlockKey], prefix: int) -> None:
        self.known, self.new, self.prefix = known, new, prefix
        self.continues = [*range(prefix), *[NOT_KNOWN] * (len(new) - prefix)]
        self.is_taken = bytearray(b"\1" * prefix + bytes(len(known) - prefix))

    def open_known(self) -> list[int]:
        return [old for old in range(self.prefix, len(self.known)) if not self.is_taken[old]]

    def open_new(self) -> list[int]:
        rest = range(self.prefix, len(self.new))
        return [at for at in rest if self.continues[at] == NOT_KNOWN]

    def take(self, pairs: Iterable[Pair]) -> None:
        """Take pairs; one of whose blocks has found its partner is passed over."""
        for old, at in pairs:
            if not self.is_taken[old] and self.continues[at] == NOT_KNOWN:
                self.continues[at] = old
                self.is_taken[old] = 1

    def join(self, marks: Callable[[BlockKey], Iterable[str]]) -> None:
        """Take the pairs of open blocks that share a mark no other open block on their side has."""
        old_places = _only_places(self.known, self.open_known(), marks)
        new_places = _only_places(self.new, self.open_new(), marks)
        self.take((old_places[mark], at) for mark, at in new_places.items() if mark in old_places)

    def gaps(self) -> Iterator[tuple[list[int], list[int]]]:
        """Yield the open blocks of both sides between neighbours that kept their order."""
        fixed = [(self.prefix - 1, self.prefix - 1), *self._longest_in_order()]
        for (old, at), (old_end, end) in pairwise(fixed):
            between = range(at + 1, end)
            yield (
                [place for place in range(old + 1, old_end) if not self.is_taken[place]],
                [place for place in between if self.continues[place] == NOT_KNOWN],
            )

    def _longest_in_order(self) -> list[Pair]:
        """Return a longest run of pairs after the prefix that ascend on both sides."""
        lowest: list[int] = []  # known block that ends the run of each length, the lowest there is
        ends: list[int] = []  # its new block
        before: dict[int, int] = {}  # new block -> the one before it in its run
        for at in range(self.prefix, len(self.new)):
            old = self.continues[at]
            if old != NOT_KNOWN:
                length = bisect_left(lowest, old)
                lowest[length : length + 1] = [old]
                ends[length : length + 1] = [at]
                before[at] = ends[length - 1] if length else NOT_KNOWN
        run: list[Pair] = []
        at = ends[-1] if ends else NOT_KNOWN
        while at != NOT_KNOWN:
            run.append((self.continues[at], at))
            at = before[at]
        return run[::-1]


def _key(messages: Sequence[Message], block: Block) -> BlockKey:
    parts = [messages[at].parts[place] for at, place in block.refs]
    calls = [part for part in parts if part.kind == "call"]
    ids = tuple(part.call_id for part in calls if part.call_id)
    return BlockKey(block.id, block.kind, ids, tuple(part.name for part in calls))


def _by_id(key: BlockKey) -> tuple[str, ...]:
    return (key.id,)


def _by_call(key: BlockKey) -> frozenset[str]:
    return frozenset(key.calls)


def _only_places(
    keys: Sequence[BlockKey], places: list[int], marks: Callable[[BlockKey], Iterable[str]]
) -> dict[str, int]:
    """Return the place of each mark that stands in one of the blocks alone, in their order."""
    found: dict[str, int] = {}
    repeated: set[str] = set()
    for place in places:
        for mark in marks(keys[place]):
            if mark in found:
                repeated.add(mark)
            found[mark] = place
    return {mark: place for mark, place in found.items() if mark not in repeated}


def _shapes(keys: Sequence[BlockKey], places: list[int]) -> list[tuple[BlockKind, tuple[str, ...]]]:
    return [(keys[place].kind, keys[place].tools) for place in places]
