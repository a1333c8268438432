"""Messages to atomic blocks: a user message, an assistant message with its results, or a reply.

Calls and results are paired here, once, for every dialect: first by id, then by position. What has
no partner is excluded with a reason and never answered by an invention.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from recap.blocks.pairing import Pairing, PartRef, pair
from recap.blocks.tools import edited_paths
from recap.transcript.authors import OMISSION_PREFIX
from recap.transcript.model import HUMAN_AUTHORS, Message, Part, digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BlockKind = Literal[
    "user",  # human text of one message, with the images pasted into it
    "tools",  # an assistant message that issues calls, with all their results
    "reply",  # a plain assistant message
    "machine",  # machine text in the user role that is no part of the live root
]


ExclusionReason = Literal[
    "open-call",  # a call without a result
    "orphan-result",  # a result without a call
    "duplicate-call",  # a call id repeated in one message, answered once
    "duplicate-result",  # a further result of an answered call
    "blank",  # white space only: every provider refuses it
    "thinking-only",  # nothing but thinking is left of the message
    "omission-marker",  # a marker of an earlier run
    "replaced-system",  # system text of a context that a native compaction replaced
]


@dataclass(frozen=True, slots=True)
class Block:
    """An atomic piece of history: kept or dropped as a whole.

    Attributes:
        id: 16 hex digits; hash of the block's first message and its occurrence. Stable when
            results arrive and when history grows.
        kind: See ``BlockKind``.
        refs: Its parts in the order they go out: the message's parts, then results in call order.
        cost_chars: Sum of the costs of its parts.
        turn: 0-based turn; blocks before the first human message have turn 0 as well.
        is_active: False when the block lies before a native compaction (then it does not count in
            the budget's base, but can be revived).
        edited_paths: Files its calls edit or write.
        has_words: A person's words stand in it: it is always protected. True for user blocks, and
            for calls that the person refused with a reason or answered.
    """

    id: str
    kind: BlockKind
    refs: tuple[PartRef, ...]
    cost_chars: int
    turn: int
    is_active: bool = True
    edited_paths: tuple[str, ...] = ()
    has_words: bool = False


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A part that belongs to no block and cannot go out.

    Attributes:
        ref: Which part.
        reason: See ``ExclusionReason``.
    """

    ref: PartRef
    reason: ExclusionReason


@dataclass(frozen=True, slots=True)
class Segmentation:
    """Blocks of a list of messages, and what stays outside them.

    Attributes:
        blocks: In chronological order of their first message.
        fixed: Parts that are always kept and are no blocks: system text, and injected text of the
            live root (before the first assistant message of the live context).
        excluded: Parts that cannot go out, with the reason.
    """

    blocks: tuple[Block, ...]
    fixed: tuple[PartRef, ...]
    excluded: tuple[Exclusion, ...]


def segment(messages: Sequence[Message]) -> Segmentation:
    """Return the blocks of ``messages``, the fixed parts and the excluded ones.

    Pure and prefix-stable: blocks of a prefix keep their ids, order and turns when messages are
    appended; only a block whose results arrive later grows.
    """
    return _Segmenter(messages, START).run()


@dataclass(frozen=True, slots=True)
class Before:
    """What a pass over messages must know of those before them.

    Attributes:
        turn: Turn of the last message; -1 before the first human one.
        in_live_root: No active assistant message stood there.
        ids: Ids of the blocks.
    """

    turn: int
    in_live_root: bool
    ids: frozenset[str]


START = Before(-1, in_live_root=True, ids=frozenset())


def segment_after(before: Before, messages: Sequence[Message]) -> Segmentation:
    """Return the same for messages that follow others, none of which they answer."""
    return _Segmenter(messages, before).run()


class _Segmenter:
    """State of one pass over the messages."""

    def __init__(self, messages: Sequence[Message], before: Before) -> None:
        self.messages = messages
        self.pairing: Pairing = pair(messages)
        self.blocks: list[Block] = []
        self.fixed: list[PartRef] = []
        self.excluded: list[Exclusion] = [
            Exclusion(ref, reason) for ref, reason in self.pairing.excluded
        ]
        self.unpaired = {ref for ref, _ in self.pairing.excluded}
        self.seen: Counter[bytes] = Counter()
        self.known = before.ids
        self.turn = before.turn
        self.in_live_root = before.in_live_root

    def run(self) -> Segmentation:
        for index, message in enumerate(self.messages):
            if message.role == "system":
                self._system(index, message)
            elif message.role == "user":
                self._user(index, message)
            elif message.role == "assistant":
                self._assistant(index, message)
        self.excluded.sort(key=lambda exclusion: exclusion.ref)
        return Segmentation(tuple(self.blocks), tuple(self.fixed), tuple(self.excluded))

    def _system(self, index: int, message: Message) -> None:
        for ref, part in _refs(index, message):
            if part.is_blank:
                self.excluded.append(Exclusion(ref, "blank"))
            elif message.is_active:
                self.fixed.append(ref)
            else:
                self.excluded.append(Exclusion(ref, "replaced-system"))

    def _user(self, index: int, message: Message) -> None:
        human: list[PartRef] = []
        machine: list[PartRef] = []
        for ref, part in _refs(index, message):
            if part.is_blank:
                self.excluded.append(Exclusion(ref, "blank"))
            elif part.author in HUMAN_AUTHORS:
                human.append(ref)
            elif part.author == "marker" and part.text().lstrip().startswith(OMISSION_PREFIX):
                self.excluded.append(Exclusion(ref, "omission-marker"))
            elif part.author == "injected" and message.is_active and self.in_live_root:
                self.fixed.append(ref)
            else:
                machine.append(ref)
        if human:
            authors = {message.parts[ref.part].author for ref in human}
            if authors - {"steering"}:
                self.turn += 1
            self._add("user", index, human, human)
        if machine:
            self._add("machine", index, machine, machine)

    def _assistant(self, index: int, message: Message) -> None:
        if message.is_active:
            self.in_live_root = False
        every: list[PartRef] = []
        usable: list[PartRef] = []
        for ref, part in _refs(index, message):
            every.append(ref)
            if part.is_blank and part.kind in ("text", "thinking"):
                self.excluded.append(Exclusion(ref, "blank"))
            elif ref not in self.unpaired:
                usable.append(ref)
        if all(message.parts[ref.part].kind == "thinking" for ref in usable):
            self.excluded.extend(Exclusion(ref, "thinking-only") for ref in usable)
            return
        results = [self.pairing.result_of[ref] for ref in usable if ref in self.pairing.result_of]
        self._add("tools" if results else "reply", index, every, [*usable, *results])

    def _add(
        self, kind: BlockKind, index: int, identity: Sequence[PartRef], refs: Sequence[PartRef]
    ) -> None:
        message = self.messages[index]
        digests = (message.parts[ref.part].digest for ref in identity)
        content = digest(message.role, *filter(None, digests))
        block_id = self._id(content)
        messages = self.messages
        parts = [messages[at].parts[place] for at, place in refs]
        self.blocks.append(
            Block(
                id=block_id,
                kind=kind,
                refs=tuple(refs),
                cost_chars=sum([part.cost_chars for part in parts]),
                turn=max(self.turn, 0),
                is_active=message.is_active,
                edited_paths=edited_paths(parts) if kind == "tools" else (),
                has_words=any(part.author in HUMAN_AUTHORS for part in parts),
            )
        )

    def _id(self, content: bytes) -> str:
        """Return the id of the next block of this content."""
        while True:
            occurrence = self.seen[content]
            self.seen[content] += 1
            block_id = digest(content, str(occurrence)).hex()[:16]
            if block_id not in self.known:
                return block_id


def _refs(index: int, message: Message) -> Iterator[tuple[PartRef, Part]]:
    return ((PartRef(index, at), part) for at, part in enumerate(message.parts))
