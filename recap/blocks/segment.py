"""Messages to atomic blocks: a user message, an assistant message with its results, or a reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

BlockKind = Literal[
    "user",  # human text of one message, with the images pasted into it
    "tools",  # an assistant message that issues calls, with all their results
    "reply",  # a plain assistant message
    "machine",  # machine text in the user role that is no part of the live root
]


class PartRef(NamedTuple):
    """Address of a part: index of its message in the transcript, index in the message."""

    message: int
    part: int


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
    """

    id: str
    kind: BlockKind
    refs: tuple[PartRef, ...]
    cost_chars: int
    turn: int
    is_active: bool = True
    edited_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A part that belongs to no block and cannot go out.

    Attributes:
        ref: Which part.
        reason: ``open-call``, ``orphan-result``, ``blank``, ``duplicate-call``,
            ``duplicate-result``, ``thinking-only``.
    """

    ref: PartRef
    reason: str


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
