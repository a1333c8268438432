"""What has no partner in a Claude Code log: results without their call, calls without a result.

Pairs are looked for by id in the whole file, as ``recap.check`` does.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from recap.transcript.repair.patch import Patch
    from recap.transcript.repair.rows import Row

Code = str


def unpaired(
    rows: Sequence[Row], twins: Container[int], patch: Patch
) -> Mapping[int, Mapping[int, Code]]:
    """Return the blocks to take out: index of the row -> 0-based block -> code.

    Blocks that are null, with which the client cannot resume a file, are among them. A call that the
    agent made last may still be answered: it is left.

    Args:
        rows: The index of the log.
        twins: Rows that repeat another; they are not looked at.
        patch: Takes the calls that are left.
    """
    calls = {call_id for row in rows for _, call_id in row.calls}
    results = {call_id for row in rows for _, call_id in row.results}
    own = [at for at in range(len(rows)) if at not in twins]
    waiting = _waiting(rows, own)
    found: dict[int, dict[int, Code]] = defaultdict(dict)
    for at in own:
        row = rows[at]
        for block in row.nulls:
            found[at][block] = "null-block"
        for block, call_id in row.results:
            if call_id not in calls:
                found[at][block] = "orphan-result"
        for block, call_id in row.calls:
            if call_id in results:
                continue
            if at in waiting:
                detail = f"Call {block + 1} was made last and may still be answered; it is left."
                patch.leave("unanswered-call", row.line, detail)
            else:
                found[at][block] = "unanswered-call"
    return found


def _waiting(rows: Sequence[Row], own: Sequence[int]) -> set[int]:
    """Return the rows of the message with which each lane ends, but for results of its calls."""
    lanes: dict[str, list[int]] = defaultdict(list)
    for at in own:
        if rows[at].is_spoken:
            lanes[rows[at].lane].append(at)
    return {at for lane in lanes.values() for at in _last_message(rows, lane)}


def _last_message(rows: Sequence[Row], lane: Sequence[int]) -> Iterator[int]:
    message_id = None
    for at in reversed(lane):
        row = rows[at]
        if row.holds_results_alone:
            continue
        own = row.message_id or row.uuid
        if row.type != "assistant" or own != (message_id or own):
            return
        message_id = own
        yield at
