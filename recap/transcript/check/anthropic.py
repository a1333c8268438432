"""The rules of the Anthropic Messages API over a decoded message list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.transcript.check.anthropic_blocks import Blocks
from recap.transcript.check.anthropic_turns import Turns
from recap.transcript.check.images import check_images
from recap.transcript.limits import exceeded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.transcript.check.rules import Report
    from recap.transcript.model import Json

ROLES = ("user", "assistant", "system")


def check_anthropic(document: Mapping[str, Json], messages: Sequence[Json], report: Report) -> None:
    """Report what the Messages API would refuse.

    Args:
        document: The request body, for its ``system`` and ``tools``; empty for a bare list.
        messages: The message list.
        report: Takes the findings.
    """
    if most := exceeded(len(messages), "anthropic", "messages"):
        report.add("message-count", count=len(messages), limit=most)
    blocks, turns = Blocks(report), Turns(report)
    blocks.check_head(document.get("system"), document.get("tools"))
    for line, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            report.add("not-a-message", line)
        elif message.get("role") not in ROLES:
            report.add("unknown-role", line)
        else:
            blocks.check_message(line, message)
            turns.add(line, message)
    turns.close_calls()
    if most := exceeded(blocks.markers, "anthropic", "cache_markers"):
        report.add("cache-markers", count=blocks.markers, limit=most)
    check_images(blocks.images, "anthropic", report)
