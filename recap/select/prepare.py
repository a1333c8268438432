"""What is done to history before it is cut into blocks: optional clipping and thinking removal.

Both are off by default. Identity is untouched: a clipped part keeps the digest of its original, so
block ids, turn keys and graphs do not depend on these settings.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from recap.transcript.authors import OMISSION_PREFIX
from recap.transcript.model import HUMAN_AUTHORS, Held, Message, Part

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD_SHARE = 0.7
"""Of a clipped blob, this share of the limit stays from its head, the rest from its tail."""

MIN_BLOB_LINES = 20
"""A run of lines is a pasted log only when it is this long; prose above the limit stays whole."""

FENCE = re.compile(r"[ \t]*(```+|~~~+)")


def without_thinking(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages without thinking parts."""
    return tuple(
        replace(message, parts=tuple(part for part in message.parts if part.kind != "thinking"))
        if any(part.kind == "thinking" for part in message.parts)
        else message
        for message in messages
    )


def clip_pastes(messages: Sequence[Message], limit: int) -> tuple[tuple[Message, ...], int]:
    """Return the messages with pasted blobs above ``limit`` characters clipped head and tail.

    Only fenced blocks and long runs of lines inside a person's texts are blobs; the words around
    them stay as they are. Also returns the number of characters taken out.
    """
    removed = 0
    clipped: list[Message] = []
    for message in messages:
        parts = tuple(_clipped_part(part, limit) for part in message.parts)
        removed += sum(
            old.cost_chars - new.cost_chars for old, new in zip(message.parts, parts, strict=True)
        )
        changed = any(new is not old for old, new in zip(message.parts, parts, strict=True))
        clipped.append(_changed(message, parts) if changed else message)
    return tuple(clipped), removed


def _changed(message: Message, parts: tuple[Part, ...]) -> Message:
    """Return the message with other parts: the vendor's own message cannot go out for it."""
    return replace(message, parts=parts, envelope=replace(message.envelope, raw=None))


def _clipped_part(part: Part, limit: int) -> Part:
    if part.kind != "text" or part.author not in HUMAN_AUTHORS or part.cost_chars <= limit:
        return part
    text = part.text()
    clipped = "".join(
        _clip(piece, limit) if _is_blob(piece, limit) else piece for piece in _pieces(text)
    )
    if clipped == text:
        return part
    # The clipped text is a block of no dialect any more: the writer makes one of it.
    return replace(part, raw=Held(clipped), path=(), cost_chars=len(clipped), dialect=None)


def _pieces(text: str) -> Iterator[str]:
    """Yield the text in pieces: fenced blocks with their fences, and paragraphs between them."""
    fence = ""
    piece: list[str] = []
    for line in _lines(text):
        mark = FENCE.match(line)
        if not fence and (mark or not line.strip()):
            yield "".join(piece)
            piece = []
        piece.append(line)
        if mark and not fence:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence):
            yield "".join(piece)
            piece, fence = [], ""
    yield "".join(piece)


def _lines(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends a line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + [lines[-1]]


def _is_blob(piece: str, limit: int) -> bool:
    return len(piece) > limit and piece.count("\n") >= MIN_BLOB_LINES


def _clip(piece: str, limit: int) -> str:
    head = int(limit * HEAD_SHARE)
    tail = limit - head
    marker = f"\n{OMISSION_PREFIX}{len(piece) - limit} characters omitted]\n"
    return piece[:head] + marker + piece[len(piece) - tail :]
