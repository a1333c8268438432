"""The order a provider asks for: the person first, system messages in their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.select.outline import Group
    from recap.select.vendor.notes import Notes
    from recap.transcript.model import Message


def from_first_user(groups: list[Group], notes: Notes) -> list[Group]:
    """Return the groups from the first user message on; a list may not begin with an answer."""
    start = next((i for i, g in enumerate(groups) if g.role == "user"), len(groups))
    before = [group for group in groups[:start] if group.role != "system"]
    if not before:
        return groups
    notes["before-first-user"] += len(before)
    return [group for group in groups[:start] if group.role == "system"] + groups[start:]


def with_system_in_place(
    groups: list[Group], messages: Sequence[Message], notes: Notes
) -> list[Group]:
    """Return groups in which mid-conversation system messages stand where they are accepted.

    That is after a user message and before an answer or the end. Where the answer was dropped, the
    message waits for the next such place; where none comes, it goes beside the list.
    """
    adapted: list[Group] = []
    waiting: list[Group] = []
    for at, group in enumerate(groups):
        if group.role == "system" and messages[group.messages[0]].envelope.raw is not None:
            waiting.append(group)
            notes["system-moved"] += not _is_system_place(adapted, groups[at + 1 :])
            continue
        if waiting and _is_system_place(adapted, [group]):
            adapted.extend(waiting)
            waiting = []
        adapted.append(group)
    if _is_system_place(adapted, []):
        return adapted + waiting
    return [group._replace(messages=(-1,) * len(group.parts)) for group in waiting] + adapted


def _is_system_place(before: Sequence[Group], after: Sequence[Group]) -> bool:
    following = next((group.role for group in after if group.role != "system"), "assistant")
    return bool(before) and before[-1].role in ("user", "tool") and following == "assistant"
