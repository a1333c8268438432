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
    """Return the group without thinking of another dialect or model, or unsigned.

    Sealed summaries are treated as thinking is.
    """
    if not any(map(is_sealed, group.parts)):
        return group
    kept: list[tuple[Part, int]] = []
    for part, at in zip(group.parts, group.messages, strict=True):
        reason = ""
        if is_sealed(part):
            reason = _refusal(part, messages[at], dialect, "" if group.is_current else model)
        if reason:
            notes[reason] += 1
        else:
            kept.append((part, at))
    return group if len(kept) == len(group.parts) else group.with_parts(kept)


def is_sealed(part: Part) -> bool:
    """Return True for thinking, and for what only the vendor that made it can read."""
    return part.kind == "thinking" or part.has_signature


def without_ownerless_thinking(
    group: Group, messages: Sequence[Message], dialect: Dialect, notes: Notes
) -> Group:
    """Return the group without thinking at the end, and without what lost the item it belongs to.

    Anthropic refuses the former; Responses takes a reasoning item only with the very item that came
    after it.
    """
    if group.role != "assistant" or dialect not in ("anthropic", "responses"):
        return group
    kept: list[tuple[Part, int]] = []
    following: Part | None = None
    for part, at in zip(reversed(group.parts), reversed(group.messages), strict=True):
        if part.kind != "thinking":
            following = part
        elif following is None or (
            dialect == "responses" and following is not _owner(part, messages[at])
        ):
            notes["thinking-at-end"] += 1
            continue
        kept.append((part, at))
    return group if len(kept) == len(group.parts) else group.with_parts(kept[::-1])


def _owner(thinking: Part, message: Message) -> Part | None:
    """Return the first part after ``thinking`` that is none itself."""
    at = next(i for i, part in enumerate(message.parts) if part is thinking)
    return next((part for part in message.parts[at:] if part.kind != "thinking"), None)


def _refusal(part: Part, message: Message, dialect: Dialect, model: str) -> str:
    """Return why a thinking part cannot go out, "" when it can."""
    if part.dialect != dialect:
        return "thinking-of-another-dialect"
    if dialect == "anthropic" and not part.has_signature:
        return "thinking-unsigned"
    if model and message.model and message.model != model:
        return "thinking-of-another-model"
    return ""
