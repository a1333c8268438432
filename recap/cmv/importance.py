"""Importance of blocks, by the lines that hold their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recap.cmv.plan import Plan
    from recap.transcript.sources import Sized


def by_node(source: Sized, plan: Plan, importance: Mapping[str, float]) -> dict[int, float]:
    """Return the importance of each node that holds results; of several blocks the largest.

    The session is read whole for it: a result belongs to the block that holds its call.
    """
    from recap.blocks.segment import segment
    from recap.transcript.claude_code import read

    messages = read(source).messages
    by_line: dict[int, float] = {}
    for block in segment(messages).blocks:
        for ref in block.refs:
            message = messages[ref.message]
            if message.role == "tool" and block.id in importance:
                value = importance[block.id]
                by_line[message.line] = max(value, by_line.get(message.line, value))
    lines = plan.links.line
    return {at: by_line[lines[at]] for at in plan.chain.live if lines[at] in by_line}
