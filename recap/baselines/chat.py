"""The history beside P as chat messages, as frameworks take them, and edited messages as a context.

P is not among them: it stays whole whatever a method does, so a method shortens the rest into what P
leaves of the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from recap.baselines.method import Context, Piece, verbatim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recap.baselines.method import Task
    from recap.transcript.model import Part, Role

ChatRole = Literal["user", "assistant", "tool"]

SILENT_KINDS = frozenset(("thinking", "image"))


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the rest.

    Attributes:
        block: Block it belongs to.
        role: Whose words they are.
        parts: Its parts in order, silent ones (thinking, images) included.
        call_ids: Ids of its calls, unique in the history; of a result the one it answers.
    """

    block: int
    role: ChatRole
    parts: tuple[Part, ...]
    call_ids: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[Part, ...]:
        """Its calls."""
        return tuple(part for part in self.parts if part.kind == "call")

    @property
    def content(self) -> str:
        """Its words, calls aside."""
        silent = SILENT_KINDS | {"call"}
        return "\n\n".join(part.text() for part in self.parts if part.kind not in silent)

    @property
    def cost_chars(self) -> int:
        """What it costs whole."""
        return sum(part.cost_chars for part in self.parts)

    @property
    def calls_chars(self) -> int:
        """What its calls cost."""
        return sum(part.cost_chars for part in self.calls)


def rest_of(task: Task) -> list[ChatMessage]:
    """Return the blocks that are not in P as messages, chronological.

    A block of calls becomes an assistant message and a message for each result.
    """
    blocks = (block for block in range(len(task.table)) if not task.is_protected[block])
    return [message for block in blocks for message in _messages(task, block)]


def _messages(task: Task, block: int) -> Iterator[ChatMessage]:
    said: list[tuple[Role, Part]] = []
    results: list[Part] = []
    for role, part in zip(task.roles(block), task.parts(block), strict=True):
        if part.kind == "result":
            results.append(part)
        else:
            said.append((role, part))
    calls = [part for _, part in said if part.kind == "call"]
    ids = tuple(f"call_{block}_{at}" for at in range(len(calls)))
    if said:
        speaker: ChatRole = "assistant" if said[0][0] == "assistant" else "user"
        yield ChatMessage(block, speaker, tuple(part for _, part in said), ids)
    open_calls = list(zip(calls, ids, strict=True))
    for part in results:
        found = next((pair for pair in open_calls if pair[0].call_id == part.call_id), None)
        answered = found or (open_calls[0] if open_calls else None)
        if answered is not None:
            open_calls.remove(answered)
        yield ChatMessage(block, "tool", (part,), (answered[1],) if answered else ("",))


def edited(
    task: Task,
    messages: Sequence[ChatMessage],
    contents: Sequence[str | None],
    before: Iterable[Piece] = (),
) -> Context:
    """Return P and the messages with the words a method left them; their calls stay with them.

    Args:
        task: The history.
        messages: What ``rest_of`` returned.
        contents: New content of each message; None where it is gone, calls and all.
        before: Pieces that are put before the history.
    """
    by_block: dict[int, list[tuple[ChatMessage, str | None]]] = {}
    for message, content in zip(messages, contents, strict=True):
        by_block.setdefault(message.block, []).append((message, content))
    pieces = list(before)
    cost = sum(len(piece.text) for piece in pieces)
    kept: set[int] = set()
    for block in range(len(task.table)):
        given = by_block.get(block, [])  # those of P have none
        if all(content == message.content for message, content in given):
            kept.add(block)
            pieces += verbatim(task, [block])
            cost += int(task.table.cost_chars[block])
            continue
        for message, content in given:
            found, chars = _left(message, content)
            pieces += found
            cost += chars
    return Context(pieces=tuple(pieces), kept=frozenset(kept), cost_chars=cost)


def _left(message: ChatMessage, content: str | None) -> tuple[list[Piece], int]:
    """Return what is left of a message, and what that costs."""
    if content is None:
        return [], 0
    if content == message.content:
        return _whole(message.role, message.block, message.parts), message.cost_chars
    calls = _whole(message.role, message.block, message.calls)
    words = [Piece(message.role, content, message.block)] if content else []
    return words + calls, len(content) + message.calls_chars


def _whole(role: Role, block: int, parts: Iterable[Part]) -> list[Piece]:
    return [
        Piece(role, part.text(), block, is_verbatim=True)
        for part in parts
        if part.kind not in SILENT_KINDS
    ]
