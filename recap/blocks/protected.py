"""The protected set P: human words, the latest edit of each file, and pins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from recap.errors import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.blocks.segment import Block

Protection = Literal["protected:user", "protected:edit", "protected:pin"]

MIN_PIN_LENGTH = 4


def protect(
    blocks: Sequence[Block], edit_cap: int | None, pins: Sequence[str] = ()
) -> dict[int, Protection]:
    """Return block index -> why it is protected (ReCAP section 4.3; ``edit_cap`` is ours).

    Args:
        blocks: Blocks in chronological order.
        edit_cap: The latest edit of a file is protected only when its block costs at most this many
            characters; None protects every one (the paper's rule).
        pins: Block ids, or unique beginnings of at least four characters.

    Raises:
        UsageError: A pin names no block, or several.
    """
    protected: dict[int, Protection] = {}
    seen_paths: set[str] = set()
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if block.has_words:
            protected[index] = "protected:user"
        elif block.edited_paths:
            is_latest = not seen_paths.issuperset(block.edited_paths)
            seen_paths.update(block.edited_paths)
            if is_latest and (edit_cap is None or block.cost_chars <= edit_cap):
                protected[index] = "protected:edit"
    for index in _pinned(blocks, pins):
        protected.setdefault(index, "protected:pin")
    return protected


def _pinned(blocks: Sequence[Block], pins: Sequence[str]) -> list[int]:
    found = []
    for pin in pins:
        exact = [index for index, block in enumerate(blocks) if block.id == pin]
        matches = exact or [
            index
            for index, block in enumerate(blocks)
            if len(pin) >= MIN_PIN_LENGTH and block.id.startswith(pin)
        ]
        if len(matches) != 1:
            what = "no block" if not matches else f"{len(matches)} blocks"
            raise UsageError(
                f"pin {shown(pin)} names {what} of the history: give a block id as `recap explain` "
                "prints it, or a unique beginning of at least 4 characters"
            )
        found.append(matches[0])
    return found
