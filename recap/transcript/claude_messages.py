"""Entries of a Claude Code log to messages: the lines of one API message become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.transcript.model import Author, Envelope, Message, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recap.transcript.links import Node

REQUESTS: frozenset[Author] = frozenset(("human", "command"))
"""Authors whose words begin a turn."""


@dataclass(slots=True)
class Entry:
    """A node of the chain with what it holds.

    Attributes:
        node: Its links.
        parts: What it holds of the conversation.
        size: Blocks of its message, the unreadable ones too.
        model: Model that wrote it, "" where unknown.
        session_id: Session it names.
    """

    node: Node
    parts: tuple[Part, ...] = ()
    size: int = 0
    model: str = ""
    session_id: str = ""


def messages_of(entries: Sequence[Entry], *, is_active: bool) -> list[Message]:
    """Return the messages, the lines of one API message joined at the place of the first."""
    groups: list[list[Entry]] = []
    places: dict[str, int] = {}
    spoken = [entry for entry in entries if entry.parts]
    repeated = _repeated_ids(spoken)
    for entry in spoken:
        key = entry.node.message_id
        place = places.get(key, -1)
        if not key or place < 0 or (key in repeated and place < len(groups) - 1):
            places[key] = len(groups)
            groups.append([entry])
        else:
            groups[place].append(entry)
    return [message for group in groups for message in _messages(group, is_active)]


def _repeated_ids(entries: Iterable[Entry]) -> set[str]:
    """Return the message ids that stand in several turns: redacted logs repeat one for all."""
    turn = 0
    turns: dict[str, int] = {}
    repeated = set()
    for entry in entries:
        node = entry.node
        if node.kind == "user" and not node.result_ids:
            turn += any(part.author in REQUESTS for part in entry.parts)
        elif node.message_id and turns.setdefault(node.message_id, turn) != turn:
            repeated.add(node.message_id)
    return repeated


def _messages(group: Sequence[Entry], is_active: bool) -> Iterator[Message]:
    """Yield the message of an API message's lines, or the one or two of a user line."""
    first = group[0]
    line, uuid = first.node.line, first.node.uuid
    envelope = Envelope(None, sum(entry.size for entry in group), "anthropic")
    if first.node.kind == "assistant":
        parts = tuple(part for entry in group for part in entry.parts)
        if parts:
            yield Message("assistant", parts, line, envelope, is_active, first.model, uuid)
        return
    results = tuple(part for part in first.parts if part.kind == "result")
    others = tuple(part for part in first.parts if part.kind != "result")
    if results:
        yield Message("tool", results, line, envelope, is_active, "", uuid)
    if others:
        yield Message("user", others, line, envelope, is_active, "", uuid)
