"""Seals of the vendors: signatures and encrypted reasoning that go out with what they belong to.

They are sent, and paid for, but hold no word; so the budget does not count them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recap.transcript.model import Message, Part

SEALS = frozenset(
    ("signature", "thinkingSignature", "thoughtSignature", "thought_signature",
     "encrypted_content", "encryptedContent", "reasoningOpaque")
)  # fmt: skip
"""Fields of a block that hold one."""


def signature_chars(messages: Iterable[Message]) -> int:
    """Return the characters of all seals in messages."""
    return sum(_seal(part) for message in messages for part in message.parts)


def _seal(part: Part) -> int:
    is_sealed = part.kind == "thinking" or part.has_signature or part.dialect == "gemini"
    value = part.raw.load() if is_sealed else None
    if not isinstance(value, dict):
        return 0
    return sum(len(text) for key, text in value.items() if key in SEALS and isinstance(text, str))
