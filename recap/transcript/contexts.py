"""Contexts that a native compaction made: what stays of the log before them, and where it stands."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import replace
from typing import TYPE_CHECKING

from recap.transcript.model import HUMAN_AUTHORS, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def has_words(message: Message) -> bool:
    """Return True for a message with something a person wrote."""
    return any(part.author in HUMAN_AUTHORS and not part.is_blank for part in message.parts)


def archived(messages: Iterable[Message]) -> list[Message]:
    """Return messages that a native compaction replaced, marked so."""
    return [replace(message, is_active=False) for message in messages]


def replaced(
    before: Sequence[Message], context: Sequence[Message]
) -> tuple[list[Message], list[Message]]:
    """Return what stands before a new context, and the context itself.

    A message of the context that stood in the log before is that very message, so that its words are
    in the transcript once. It moves to its new place. But where the context holds requests without
    their answers, those of turns that ended stay where they were written, and stay active: so each
    turn of the history keeps its request.
    """
    known: dict[tuple[bytes, ...], deque[Message]] = defaultdict(deque)
    for message in before:
        if key := _identity(message):
            known[key].append(message)
    places = {id(message): place for place, message in enumerate(before)}
    chosen = [found.popleft() if (found := known.get(_identity(m))) else m for m in context]
    staying: set[int] = set()
    if not any(_is_answer(message) for message in context):
        ended = _last_answer(before)
        requests = [at for at, message in enumerate(chosen) if has_words(message)]
        current = next((at for at in reversed(requests) if not _is_steering(chosen[at])), 0)
        staying = {id(chosen[at]) for at in requests if at < current} & {
            id(message) for message in before[:ended]
        }
    live = [message for message in chosen if id(message) not in staying]
    moved = {id(message) for message in live} & places.keys()
    old = [
        replace(message, is_active=id(message) in staying)
        for message in before
        if id(message) not in moved
    ]
    return old, [
        message if message.is_active else replace(message, is_active=True) for message in live
    ]


def is_copy(message: Message, other: Message) -> bool:
    """Return True for a message that says what the other says, or is it."""
    return message is other or (_identity(message) == _identity(other) != ())


def _is_answer(message: Message) -> bool:
    return any(part.author == "agent" and part.kind != "thinking" for part in message.parts)


def _last_answer(messages: Sequence[Message]) -> int:
    answers = (at for at in range(len(messages) - 1, -1, -1) if _is_answer(messages[at]))
    return next(answers, 0)


def _is_steering(message: Message) -> bool:
    authors = {part.author for part in message.parts if part.author in HUMAN_AUTHORS}
    return authors == {"steering"}


def _identity(message: Message) -> tuple[bytes, ...]:
    """Return what is equal in two copies of a message: its content, or the person's words in it."""
    is_said = has_words(message)
    digests = tuple(
        part.digest
        for part in message.parts
        if part.digest and (part.author in HUMAN_AUTHORS or not is_said)
    )
    return (message.role.encode(), *digests) if digests else ()
