"""What a proxy model is shown of a turn: the served blocks and the turn itself, clipped (ours).

Every block becomes plain messages of the roles user and assistant, so that any chat template
renders them: a call is its name and its arguments as text, results are a message of the user role.
A message belongs to one block; roles alternate from the user on, as strict templates demand, by a
filler of one sign that belongs to none. System text, which is fixed and never selected, and
thinking are left out.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from recap.errors import RecapError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from recap.blocks.segment import Block
    from recap.blocks.table import BlockTable
    from recap.transcript.model import Part

CLIPS = (600, 500, 400, 300, 200, 150, 100, 80, 60, 40)
"""Characters that a call or an output may keep, from the largest on."""

TEXT_SHARE = (8, 5)
"""Text keeps 1.6 times as much."""

HEAD_SHARE = (7, 10)
ELLIPSIS = " ... "
FILLER = "..."

ReplayRole = Literal["user", "assistant"]


class ReplayError(RecapError):
    """A turn cannot be replayed: it is not text, or not even its request fits."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Messages that stand for a turn and what the agent was served before it.

    Attributes:
        messages: ``{"role", "content"}`` each, of text; the roles alternate, from the user on.
        owner: Index into ``ids`` of each message's block; -1 for a filler.
        ids: Ids of the blocks shown, chronological.
        first_new: Index of the first message of the turn; the number of messages where nothing of
            the turn can be shown as text.
        clip: Characters that a call or an output kept at most.
    """

    messages: tuple[dict[str, str], ...]
    owner: tuple[int, ...]
    ids: tuple[str, ...]
    first_new: int
    clip: int


class _Shown(NamedTuple):
    """A block as replay shows it: what each of its messages says, as (may be long, text)."""

    id: str
    is_new: bool
    messages: tuple[tuple[ReplayRole, tuple[tuple[bool, str], ...]], ...]


def replay_of(
    table: BlockTable, turn: int, clip: int, *, served: Collection[str] | None = None
) -> Replay:
    """Return the replay of a completed turn.

    Args:
        table: Blocks of the session.
        turn: Number of the turn.
        clip: Characters of a call or an output that stay, its head and its tail; 1.6 times as many
            of a text.
        served: Ids of the earlier blocks that the agent was served; None: all of them.

    Raises:
        ValueError: The table has no such turn, or nothing would be left of a clipped text.
    """
    return _replay(_shown(table, turn, served), clip)


def fitting(
    table: BlockTable,
    turn: int,
    limit: int,
    count: Callable[[Replay], int],
    *,
    served: Collection[str] | None = None,
    clip: int | None = None,
) -> Replay:
    """Return the replay with the largest clip that fits.

    Where the smallest does not, the oldest blocks stay out: first those before the turn, then those
    after the turn's first one, its request.

    Args:
        table: Blocks of the session.
        turn: Number of the turn.
        limit: Tokens that fit.
        count: Tokens of a replay. What is returned has been counted; that fewer blocks are fewer
            tokens is taken for granted.
        served: Ids of the earlier blocks that the agent was served; None: all of them.
        clip: Tried before all others, so that a warm stretch keeps the clip it began with.

    Raises:
        ReplayError: Nothing of the turn is text, or not even its request fits.
        ValueError: As ``replay_of``.
    """
    blocks = _shown(table, turn, served)
    if not any(block.is_new for block in blocks):
        raise ReplayError(f"turn {turn} holds nothing that can be shown as text")
    if clip is not None and count(frozen := _replay(blocks, clip)) <= limit:
        return frozen
    if count(_replay(blocks, CLIPS[-1])) <= limit:  # asked first: the others take longer to count
        walked = (_replay(blocks, each) for each in CLIPS)
        return next(replay for replay in walked if count(replay) <= limit)
    return _without_oldest(blocks, limit, count)


def _without_oldest(blocks: Sequence[_Shown], limit: int, count: Callable[[Replay], int]) -> Replay:
    """Return the replay of the smallest clip without as many blocks as it takes to fit."""
    earlier = sum(not block.is_new for block in blocks)
    order = [*range(earlier), *range(earlier + 1, len(blocks))]  # in which blocks leave

    def without(left_out: int) -> Replay:
        gone = set(order[:left_out])
        return _replay([block for at, block in enumerate(blocks) if at not in gone], CLIPS[-1])

    least = bisect_left(range(len(order)), True, key=lambda n: count(without(n)) <= limit)
    replay = without(least)
    if count(replay) > limit:
        raise ReplayError(f"the request of a turn does not fit {limit} tokens")
    return replay


def _shown(table: BlockTable, turn: int, served: Collection[str] | None) -> list[_Shown]:
    """Return the blocks that are shown of a turn, as far as they are text."""
    start, end = np.searchsorted(table.turn, (turn, turn + 1)).tolist()
    if start == end:
        raise ValueError(f"there is no turn {turn}")
    shown = []
    for at, block in enumerate(table.blocks[:end]):
        if at >= start or served is None or block.id in served:
            messages = tuple(_messages(table, block))
            if messages:
                shown.append(_Shown(block.id, at >= start, messages))
    return shown


def _messages(
    table: BlockTable, block: Block
) -> Iterator[tuple[ReplayRole, tuple[tuple[bool, str], ...]]]:
    """Yield what a block's own message says, then its results."""
    parts = [table.messages[ref.message].parts[ref.part] for ref in block.refs]
    role: ReplayRole = "user" if block.kind in ("user", "machine") else "assistant"
    own = tuple(_texts(part for part in parts if part.kind != "result"))
    results = tuple(_texts(part for part in parts if part.kind == "result"))
    if own:
        yield role, own
    if results:
        yield "user", results


def _texts(parts: Iterator[Part]) -> Iterator[tuple[bool, str]]:
    """Yield (is text, what it says) of the parts that say something."""
    for part in parts:
        words = "" if part.kind == "thinking" else _strict(part.text()).strip()
        if words:
            yield part.kind == "text", words


def _strict(text: str) -> str:
    """Return the text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _replay(blocks: Sequence[_Shown], clip: int) -> Replay:
    messages: list[dict[str, str]] = []
    owner: list[int] = []
    first_new = -1
    for at, block in enumerate(blocks):
        for role, texts in block.messages:
            due = "assistant" if len(messages) % 2 else "user"
            if role != due:
                messages.append({"role": due, "content": FILLER})
                owner.append(-1)
            if block.is_new and first_new < 0:
                first_new = len(messages)
            lines = (clipped(words, _length(clip, is_text)) for is_text, words in texts)
            messages.append({"role": role, "content": "\n".join(lines)})
            owner.append(at)
    return Replay(
        tuple(messages),
        tuple(owner),
        tuple(block.id for block in blocks),
        len(messages) if first_new < 0 else first_new,
        clip,
    )


def _length(clip: int, is_text: bool) -> int:
    return clip * TEXT_SHARE[0] // TEXT_SHARE[1] if is_text else clip


def clipped(text: str, length: int) -> str:
    """Return the text in at most ``length`` characters: 70 % head, an ellipsis, 30 % tail.

    Raises:
        ValueError: There is no room for an ellipsis with a character on each side.
    """
    room = length - len(ELLIPSIS)
    if room < 2:
        raise ValueError(f"cannot clip to {length} characters")
    if len(text) <= length:
        return text
    head = max(1, room * HEAD_SHARE[0] // HEAD_SHARE[1])
    return f"{text[:head]}{ELLIPSIS}{text[head - room :]}"
