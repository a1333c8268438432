"""What a dialect refuses, taken out or replaced before the groups are written.

Nothing is invented: thinking that cannot go out is left out, a call id that the vendor would refuse is
replaced on the call and its result alike, an image over the limits gives way to a short text. Every
change is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.select.vendor.calls import usable_ids, without_refused_calls
from recap.select.vendor.images import bounded_images
from recap.select.vendor.notes import Notes
from recap.select.vendor.order import from_first_user, with_system_in_place
from recap.select.vendor.thinking import current_model, without_refused_thinking
from recap.select.vendor.writers import WRITERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.select.outline import Group
    from recap.transcript.model import Dialect, Message

__all__ = ["WRITERS", "Notes", "adapt", "current_model"]


def adapt(
    groups: Sequence[Group], messages: Sequence[Message], dialect: Dialect, model: str
) -> tuple[list[Group], Notes]:
    """Return groups that ``dialect`` accepts, and how often each kind of change was needed."""
    notes = Notes()
    adapted = [without_refused_thinking(g, messages, dialect, model, notes) for g in groups]
    adapted = without_refused_calls([group for group in adapted if group.parts], dialect, notes)
    if dialect == "anthropic":
        adapted = from_first_user(adapted, notes)
        adapted = with_system_in_place(adapted, messages, notes)
    adapted = bounded_images(adapted, dialect, notes)
    adapted = usable_ids(adapted, dialect, notes)
    return adapted, +notes  # without the kinds that were not needed
