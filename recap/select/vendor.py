"""What a dialect refuses, taken out or replaced before the groups are written.

Nothing is invented here: thinking that cannot go out is left out, a call id that the vendor would
refuse is replaced on the call and its result alike, an image over the vendor's limits gives way to a
short text that says so. Every change is counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from recap.transcript import anthropic, openai
from recap.transcript.authors import OMISSION_PREFIX
from recap.transcript.limits import LimitName, limit
from recap.transcript.model import Dialect, Message, Part, digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recap.select.outline import Group

WRITERS = {"anthropic": anthropic, "openai": openai}
"""Dialect -> module that writes it."""

ANTHROPIC_ID = re.compile(r"[A-Za-z0-9_-]+")

IMAGE_SHARE = 0.75
"""Images may fill this share of a request's bytes; the rest is for text."""

Notes = Counter[str]


def adapt(
    groups: Sequence[Group], messages: Sequence[Message], dialect: Dialect, model: str
) -> tuple[list[Group], Notes]:
    """Return groups that ``dialect`` accepts, and how often each kind of change was needed."""
    notes: Notes = Counter()
    adapted = [_without_refused_thinking(g, messages, dialect, model, notes) for g in groups]
    adapted = [group for group in adapted if group.parts]
    if dialect == "anthropic":
        adapted = _from_first_user(adapted, notes)
    adapted = _bounded_images(adapted, dialect, notes)
    return _usable_ids(adapted, dialect, notes), notes


def current_model(messages: Sequence[Message], tail_start: int) -> str:
    """Return the model that answers: the first of the current turn, else the last one before it."""
    for message in messages[tail_start:]:
        if message.role == "assistant" and message.model:
            return message.model
    for index in range(tail_start - 1, -1, -1):
        if messages[index].role == "assistant" and messages[index].model:
            return messages[index].model
    return ""


def _without_refused_thinking(
    group: Group, messages: Sequence[Message], dialect: Dialect, model: str, notes: Notes
) -> Group:
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


def _from_first_user(groups: list[Group], notes: Notes) -> list[Group]:
    """Return the groups from the first user message on; a list may not begin with an answer."""
    start = next((i for i, g in enumerate(groups) if g.role == "user"), len(groups))
    before = [group for group in groups[:start] if group.role != "system"]
    if not before:
        return groups
    notes["before-first-user"] += len(before)
    return [group for group in groups[:start] if group.role == "system"] + groups[start:]


def _bounded_images(groups: list[Group], dialect: Dialect, notes: Notes) -> list[Group]:
    """Return groups whose images fit the vendor's limits; the newest images stay."""
    refused = _refused_images(groups, dialect)
    if not refused:
        return groups
    notes["image-over-limit"] += len(refused)
    return [
        group.with_parts(
            [
                (_without_images(part) if id(part) in refused else part, at)
                for part, at in zip(group.parts, group.messages, strict=True)
            ]
        )
        if any(id(part) in refused for part in group.parts)
        else group
        for group in groups
    ]


def _refused_images(groups: Iterable[Group], dialect: Dialect) -> set[int]:
    """Return the ids of part objects whose images have to go, judged from the newest back."""
    holders = [part for group in groups for part in group.parts if part.images]
    is_many = sum(len(part.images) for part in holders) > _most(dialect, "many_images")
    most_side = _most(dialect, "image_side_many" if is_many else "image_side")
    most_bytes = _most(dialect, "image_bytes")
    most_images = min(_most(dialect, "images"), _most(dialect, "images_small_window"))
    most_in_all = _most(dialect, "request_bytes") * IMAGE_SHARE
    refused: set[int] = set()
    count = size = 0
    for part in reversed(holders):
        images = part.images
        part_size = sum(chars for _, _, chars in images)
        fits = count + len(images) <= most_images and size + part_size <= most_in_all
        if fits and all(max(w, h) <= most_side and chars <= most_bytes for w, h, chars in images):
            count += len(images)
            size += part_size
        else:
            refused.add(id(part))
    return refused


def _most(dialect: Dialect, name: LimitName) -> float:
    most = limit(dialect, name)
    return math.inf if most is None else most


def _without_images(part: Part) -> Part:
    sizes = ", ".join(f"{width}x{height}" for width, height, _ in part.images)
    writer = WRITERS[part.dialect or "anthropic"]
    return writer.without_images(part, f"{OMISSION_PREFIX}image {sizes} over the limit]")


def _usable_ids(groups: list[Group], dialect: Dialect, notes: Notes) -> list[Group]:
    """Return groups in which every call id is legal, and unique where the vendor asks for it.

    Anthropic wants ids unique in the whole list, OpenAI within one message.
    """
    taken: set[str] = set()
    adapted: list[Group] = []
    renamed: dict[str, list[str]] = {}
    for group in groups:
        if group.role == "assistant":
            if dialect == "openai":
                taken = set()
            renamed = {}
            parts = [_unique_id(part, taken, renamed, dialect, notes) for part in group.parts]
        elif group.role == "tool":
            parts = [_answering(part, renamed) for part in group.parts]
        else:
            adapted.append(group)
            continue
        changed = any(new is not old for new, old in zip(parts, group.parts, strict=True))
        adapted.append(
            group.with_parts(list(zip(parts, group.messages, strict=True))) if changed else group
        )
    return adapted


def _unique_id(
    part: Part, taken: set[str], renamed: dict[str, list[str]], dialect: Dialect, notes: Notes
) -> Part:
    if part.kind != "call":
        return part
    new_id = part.call_id
    is_legal = bool(ANTHROPIC_ID.fullmatch(new_id)) if dialect == "anthropic" else bool(new_id)
    if not is_legal:
        new_id = f"call_{digest(part.call_id, part.digest).hex()[:16]}"
    base, copy = new_id, 1
    while new_id in taken:
        copy += 1
        new_id = f"{base}_{copy}"
    taken.add(new_id)
    renamed.setdefault(part.call_id, []).append(new_id)
    if new_id == part.call_id:
        return part
    notes["call-id-replaced"] += 1
    return WRITERS[part.dialect or dialect].with_call_id(part, new_id)


def _answering(part: Part, renamed: dict[str, list[str]]) -> Part:
    new_ids = renamed.get(part.call_id)
    if not new_ids:
        return part
    new_id = new_ids.pop(0) if len(new_ids) > 1 else new_ids[0]
    if new_id == part.call_id:
        return part
    return WRITERS[part.dialect or "anthropic"].with_call_id(part, new_id)
