"""What a dialect refuses, taken out or replaced before the groups are written.

Nothing is invented: thinking that cannot go out is left out, a call id that the vendor would refuse is
replaced on the call and its result alike, an image over the limits gives way to a short text. Every
change is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.select.vendor.calls import in_matching_forms, usable_ids, without_refused_calls
from recap.select.vendor.images import bounded_images
from recap.select.vendor.joined import with_answers_joined, with_names, with_results_inside
from recap.select.vendor.notes import Notes
from recap.select.vendor.order import from_first_user, with_system_in_place
from recap.select.vendor.thinking import (
    current_model,
    is_sealed,
    without_ownerless_thinking,
    without_refused_thinking,
)
from recap.select.vendor.writers import FINISHERS, SYSTEM_WRITERS, WRITERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.select.outline import Group
    from recap.transcript.model import Dialect, Message

_DIVISIONS: Mapping[Dialect, Sequence[Callable[[list[Group]], list[Group]]]] = {
    "openai": (in_matching_forms,),
    "gemini": (with_names, with_answers_joined),
    "opencode": (with_results_inside,),
}

__all__ = ["FINISHERS", "SYSTEM_WRITERS", "WRITERS", "Notes", "adapt", "current_model"]


def adapt(
    groups: Sequence[Group], messages: Sequence[Message], dialect: Dialect, model: str
) -> tuple[list[Group], Notes]:
    """Return groups that ``dialect`` accepts, and how often each kind of change was needed."""
    notes = Notes()
    adapted = without_refused_calls(list(groups), dialect, notes)
    if any(is_sealed(part) for group in groups for part in group.parts):
        adapted = [without_refused_thinking(g, messages, dialect, model, notes) for g in adapted]
        adapted = [without_ownerless_thinking(g, messages, dialect, notes) for g in adapted]
    adapted = [group for group in adapted if any(p.kind != "thinking" for p in group.parts)]
    if dialect in ("anthropic", "gemini"):
        adapted = from_first_user(adapted, notes)
    if dialect == "anthropic":
        adapted = with_system_in_place(adapted, messages, notes)
    adapted = bounded_images(adapted, dialect, notes)
    adapted = usable_ids(adapted, dialect, notes)
    for divide in _DIVISIONS.get(dialect, ()):
        adapted = divide(adapted)
    return adapted, +notes  # without the kinds that were not needed
