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
    "dropped": "outranked",
    "did-not-fit": "did not fit",
    "stale": "superseded",
    "protected:user": "your words",
    "protected:edit": "latest edit",
    "protected:pin": "pinned",
    "ranked": "best scores",
    "recent": "newest",
    "coverage": "names in use",
    "expanded": "support edge",
    "since": "came since",
}
"""The rules of the decision log, in words."""

PATH_ARGUMENTS = ("file_path", "path", "filePath", "notebook_path")
TELLING_ARGUMENTS = ("command", "pattern", "query", "url", "description")
"""Arguments of calls to show in a preview, the first one present."""

KIND_WORDS = {"user": "you", "tools": "tools", "reply": "reply", "machine": "machine"}


def why(decision: Decision) -> str:
    """Return why a block is kept or dropped, in words."""
    if decision.pulled_by is not None and decision.edge_mass is not None:
        return f"supports #{decision.pulled_by} ({decision.edge_mass:.2f})"
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
    if isinstance(arguments, dict):
        for name in PATH_ARGUMENTS:
            if isinstance(arguments.get(name), str):
                return f"{part.name} {_short_path(arguments[name])}"
        for name in TELLING_ARGUMENTS:
            if isinstance(arguments.get(name), str):
                return f"{part.name} {arguments[name]}"
    return part.text().replace("\n", " ")


def _short_path(path: str) -> str:
    """Return the last folder and the name: what tells two long paths apart."""
    pieces = path.rsplit("/", 2)
    return path if len(pieces) < 3 or not pieces[0] else f".../{pieces[1]}/{pieces[2]}"
