"""Thinking that a provider would refuse is left out; it is never shortened or invented."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.select.outline import Group
    from recap.select.vendor.notes import Notes
    from recap.transcript.model import Dialect, Message, Part


def current_model(messages: Sequence[Message], tail_start: int) -> str:
    """Return the model that answers: the first of the current turn, else the last one before it."""
    for message in messages[tail_start:]:
        if message.role == "assistant" and message.model:
            return message.model
    for index in range(tail_start - 1, -1, -1):
        if messages[index].role == "assistant" and messages[index].model:
            return messages[index].model
    return ""


def without_refused_thinking(
    group: Group, messages: Sequence[Message], dialect: Dialect, model: str, notes: Notes
) -> Group:
    """Return the group without thinking of another dialect or model, unsigned, or at the end."""
    if group.role != "assistant" or all(part.kind != "thinking" for part in group.parts):
        return group
    kept: list[tuple[Part, int]] = []
    for part, at in zip(group.parts, group.messages, strict=True):
        reason = ""
        if part.kind == "thinking":
            reason = _refusal(part, messages[at], dialect, "" if group.is_current else model)
        if reason:
            notes[reason] += 1
        else:
            kept.append((part, at))
    while dialect == "anthropic" and kept and kept[-1][0].kind == "thinking":
        kept.pop()
        notes["thinking-at-end"] += 1
    return group if len(kept) == len(group.parts) else group.with_parts(kept)


def _refusal(part: Part, message: Message, dialect: Dialect, model: str) -> str:
    """Return why a thinking part cannot go out, "" when it can."""
    if part.dialect != dialect:
        return "thinking-of-another-dialect"
    if dialect == "anthropic" and not part.has_signature:
        return "thinking-unsigned"
    if model and message.model and message.model != model:
        return "thinking-of-another-model"
    return ""
