"""Compaction inside the server: a request's messages replaced by what its turn is served.

The core decides and selects, see ``Session.compact``. A selection changes only where a turn opens or
an epoch begins; the steps between are served the same blocks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recap.sglang.rendering import NO_BLOCK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.recognise import Recognised
    from recap.session import Compaction
    from recap.sglang.rendering import Items

COMPACTING = ("turn", "epoch")
"""Modes in which requests are changed."""


@dataclass(frozen=True, slots=True, eq=False)
class Shortened:
    """What became of a request's messages.

    Attributes:
        items: The messages that are served; those that are kept whole are the client's objects.
        source: For each the element of the client's list that it is, -1 for a marker or a message
            of which only a part was kept.
        action, reason: Of the boundary policy.
        chars_before, chars_after: Characters of the prompt.
    """

    items: Items
    source: tuple[int, ...]
    action: str
    reason: str
    chars_before: int
    chars_after: int

    @property
    def is_changed(self) -> bool:
        """The client's messages do not go out as they came."""
        return self.source != tuple(range(len(self.source))) or self.is_shorter

    @property
    def is_shorter(self) -> bool:
        """Something was left out."""
        return self.chars_after < self.chars_before

    def report(self) -> dict[str, Any]:
        """Return the numbers that go into the response's metadata."""
        return {
            "action": self.action,
            "reason": self.reason,
            "chars_before": self.chars_before,
            "chars_after": self.chars_after,
            "messages": len(self.items),
        }


def is_asked_for(recognised: Recognised, mode: str) -> bool:
    """Return whether a request is one to compact.

    A client may ask for less than the operator allows by header, or have a request without tools
    taken for a turn; it cannot ask for more.
    """
    allows = recognised.mode in ("", *COMPACTING)
    return mode in COMPACTING and allows and not recognised.passes


def shortened(done: Compaction, items: Items) -> Shortened:
    """Return what a compaction made of a request's messages."""
    place = {id(item): at for at, item in enumerate(items)}
    served = [message for message in done.messages if isinstance(message, dict)]
    return Shortened(
        served,
        tuple(place.get(id(message), NO_BLOCK) for message in served),
        done.report.action,
        done.report.reason,
        done.known.prompt_chars,
        done.report.prompt_chars,
    )


def models(request: Any, short: Shortened) -> list[Any]:
    """Return the served messages as SGLang's objects: the client's own where they are whole.

    Raises:
        ValueError: SGLang takes a message for none.
    """
    new = [dict(item) for item, at in zip(short.items, short.source, strict=True) if at < 0]
    made = iter(_validated(request, new))
    return [request.messages[at] if at >= 0 else next(made) for at in short.source]


def _validated(request: Any, items: Sequence[Mapping[str, Any]]) -> list[Any]:
    if not items:
        return []
    found: list[Any] = (
        type(request).model_validate({"model": request.model, "messages": list(items)}).messages
    )
    return found
