"""Elements taken out of a JSON array, commas included."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from recap.transcript.repair.patch import Edit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from recap.transcript.repair.patch import Patch
    from recap.transcript.spans import Span


def take_elements(patch: Patch, spans: Sequence[Span], taken: Collection[int]) -> None:
    """Put the elements ``taken`` of an array into quarantine, with the commas they need.

    Args:
        patch: Takes the edits.
        spans: Where the array's elements stand in the source.
        taken: 0-based numbers of elements.
    """
    for is_taken, run in groupby(range(len(spans)), taken.__contains__):
        if not is_taken:
            continue
        numbers = list(run)
        first, last = numbers[0], numbers[-1]
        patch.taken.extend(spans[at] for at in numbers)
        if last + 1 < len(spans):
            patch.edits.append(Edit(spans[first][0], spans[last + 1][0]))
        else:
            start = spans[first - 1][1] if first else spans[0][0]
            patch.edits.append(Edit(start, spans[last][1]))
