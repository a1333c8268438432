"""Two sessions as the model sees them: what stayed, what became a stub, what went or came."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from recap.blocks.segment import segment
from recap.cmv.report import CHARS_PER_TOKEN
from recap.cmv.stubs import is_stub

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap.blocks.segment import Block
    from recap.transcript.model import Message, Part, Transcript

Fate = Literal["kept", "stubbed", "changed", "dropped", "added"]


@dataclass(frozen=True, slots=True)
class BlockFate:
    """What became of a block.

    Attributes:
        id: The block.
        kind: Its kind, see ``recap.blocks``.
        fate: What became of it; ``stubbed`` is a change by which stubs came in.
        chars_before: Characters it cost, 0 if it was not there.
        chars_after: Characters it costs, 0 if it is gone.
    """

    id: str
    kind: str
    fate: Fate
    chars_before: int
    chars_after: int


@dataclass(frozen=True, slots=True)
class Texts:
    """Proof of the texts of one role: their number, and the SHA-256 over all of them in order."""

    count: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Diff:
    """How two sessions differ.

    Attributes:
        blocks: What became of each block, in the order of the first session; new ones where they
            stand in the second.
        prefix_blocks: Blocks at the beginning that are the same, byte for byte as a provider's cache
            sees them.
        prefix_chars: Characters of these.
        chars: Characters of both live contexts.
        texts: For ``user`` and ``assistant``: proofs of both sessions.
    """

    blocks: tuple[BlockFate, ...]
    prefix_blocks: int
    prefix_chars: int
    chars: tuple[int, int]
    texts: dict[str, tuple[Texts, Texts]]

    @property
    def are_texts_equal(self) -> bool:
        """True when both sessions say the same words in the same order."""
        return all(one == other for one, other in self.texts.values())

    @property
    def counts(self) -> dict[str, int]:
        """Number of blocks by what became of them."""
        found = Counter(each.fate for each in self.blocks)
        return {fate: found[fate] for fate in ("kept", "stubbed", "changed", "dropped", "added")}

    @property
    def prefix_tokens(self) -> int:
        """Tokens of the common beginning, estimated from its characters."""
        return self.prefix_chars // CHARS_PER_TOKEN


def diff(one: Transcript, other: Transcript) -> Diff:
    """Return how the live context of a session differs from that of another.

    A block is the same when its first message is: results that became stubs change it, thinking
    that went does not.
    """
    before, after = _Side(one), _Side(other)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], before.pairs(after)))
    return Diff(
        blocks=tuple(_fates(before, after)),
        prefix_blocks=same,
        prefix_chars=sum(block.cost_chars for block in before.blocks[:same]),
        chars=(before.chars, after.chars),
        texts={role: (before.texts(role), after.texts(role)) for role in ("user", "assistant")},
    )


class _Side:
    """The blocks of one session's live context."""

    def __init__(self, transcript: Transcript) -> None:
        self.messages: Sequence[Message] = [m for m in transcript.messages if m.is_active]
        self.blocks: Sequence[Block] = segment(self.messages).blocks
        self.ids = [block.id for block in self.blocks]
        self.chars = sum(part.cost_chars for m in self.messages for part in m.parts)

    def parts(self, block: Block) -> list[Part]:
        """Return the parts of a block."""
        return [self.messages[ref.message].parts[ref.part] for ref in block.refs]

    def pairs(self, other: _Side) -> Iterator[tuple[object, object]]:
        """Yield what a cache sees of the blocks of both, side by side."""
        for one, two in zip(self.blocks, other.blocks, strict=False):
            yield self.seen(one), other.seen(two)

    def seen(self, block: Block) -> object:
        """Return what tells the bytes of a block: of thinking, which has no digest, its length."""
        return [(p.kind, p.digest, p.cost_chars) for p in self.parts(block)]

    def content(self, block: Block) -> object:
        """Return what tells the content of a block, thinking apart."""
        return [part.digest for part in self.parts(block) if part.digest]

    def stubs(self, block: Block) -> int:
        """Return how many parts of a block hold stubs."""
        return sum(is_stub(line) for p in self.parts(block) for line in p.text().split("\n"))

    def texts(self, role: str) -> Texts:
        """Return the proof of the texts of a role."""
        found = [
            part.text()
            for message in self.messages
            if message.role == role
            for part in message.parts
            if part.kind == "text"
        ]
        whole = hashlib.sha256()
        for text in found:
            data = text.encode("utf-8", "surrogatepass")
            whole.update(len(data).to_bytes(8, "little") + data)
        return Texts(len(found), whole.hexdigest())


def _fates(before: _Side, after: _Side) -> Iterator[BlockFate]:
    matcher = SequenceMatcher(a=before.ids, b=after.ids, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            for one, two in zip(before.blocks[i1:i2], after.blocks[j1:j2], strict=True):
                fate = _fate(before, one, after, two)
                yield BlockFate(one.id, one.kind, fate, one.cost_chars, two.cost_chars)
            continue
        for block in before.blocks[i1:i2]:
            yield BlockFate(block.id, block.kind, "dropped", block.cost_chars, 0)
        for block in after.blocks[j1:j2]:
            yield BlockFate(block.id, block.kind, "added", 0, block.cost_chars)


def _fate(before: _Side, one: Block, after: _Side, two: Block) -> Fate:
    if before.content(one) == after.content(two):
        return "kept"
    return "stubbed" if after.stubs(two) > before.stubs(one) else "changed"
