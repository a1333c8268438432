"""Blocks of a session in words: what a block is, its one-line preview, why it is kept or dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.cli.output import preview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.blocks.segment import Block
    from recap.select.selection import Decision
    from recap.transcript.model import Message, Part

ID_LENGTH = 8
"""Digits of a block id that are shown; ``--pin`` takes unique beginnings."""

RULE_WORDS = {
    "dropped": "others held more for their size",
    "did-not-fit": "did not fit what was left",
    "stale": "a later block supersedes it",
    "protected:user": "your words",
    "protected:edit": "latest edit of a file",
    "protected:pin": "pinned",
    "ranked": "among the best scores",
    "recent": "among the newest",
    "coverage": "holds names in use",
    "expanded": "support edge",
}
"""The rules of the decision log, in words."""

KIND_WORDS = {"user": "you", "tools": "tools", "reply": "reply", "machine": "machine"}


def why(decision: Decision) -> str:
    """Return why a block is kept or dropped, in words."""
    if decision.pulled_by is not None and decision.edge_mass is not None:
        return f"supports #{decision.pulled_by} (edge {decision.edge_mass:.2f})"
    return RULE_WORDS.get(decision.rule, decision.rule)


def block_preview(messages: Sequence[Message], block: Block, length: int = 200) -> str:
    """Return what a block begins with: its calls, or its first words."""
    parts = [messages[ref.message].parts[ref.part] for ref in block.refs]
    calls = [part for part in parts if part.kind == "call"]
    texts = [part for part in parts if part.kind == "text"]
    shown = [_call(part) for part in calls] or [part.text() for part in texts or parts[:1]]
    return preview("; ".join(shown), length)


def _call(part: Part) -> str:
    """Return a call with the argument that tells most: a path, a command, a pattern."""
    arguments = part.payload()
    if not isinstance(arguments, dict):
        return f"{part.name} {arguments}"
    for name in ("file_path", "path", "filePath", "notebook_path", "command", "pattern"):
        value = arguments.get(name)
        if isinstance(value, str):
            return f"{part.name} {value}"
    return part.text().replace("\n", " ")
