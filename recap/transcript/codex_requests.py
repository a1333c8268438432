"""Which user texts of a Codex rollout a person wrote: the items, judged by the events beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from recap.transcript.contexts import has_words
from recap.transcript.model import HUMAN_AUTHORS, Author, Message, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def judged(
    messages: Sequence[Message], requests: Sequence[int], *, is_whole: bool
) -> tuple[list[Message], set[int]]:
    """Return the messages with the authors that the events tell, and which of them are copies.

    Args:
        messages: Messages made of items and, among them, of ``user_message`` events.
        requests: Indices of those made of events; an item says the same, as a rule right before.
        is_whole: No line of the log is lost. Then a text without an event of its own, between two
            requests, is a machine's. What stands before the first event or after the last is judged
            by what it says.

    An event whose item is missing is no copy: its words stand for the item's.
    """
    events = set(requests)
    said = {messages[index].parts[0].digest for index in requests}
    texts = {
        index: _texts(message)
        for index, message in enumerate(messages)
        if message.role == "user" and index not in events
    }
    items = Counter(text for each in texts.values() for text in each & said)
    result = [
        _with_author(message, "human", lambda part_digest: part_digest in said)
        if index in texts
        else message
        for index, message in enumerate(messages)
    ]
    copies: set[int] = set()
    for number, (start, end) in enumerate(pairwise((-1, *requests, len(messages)))):
        strangers = [
            index
            for index in range(start + 1, end)
            if index in texts and not texts[index] & said and has_words(messages[index])
        ]
        if end < len(messages):
            request = messages[end].parts[0].digest
            if items[request]:
                items[request] -= 1
                copies.add(end)
            elif strangers:  # the item says it in other words
                strangers.pop()
                copies.add(end)
        if is_whole and 0 < number < len(requests):
            for index in strangers:
                result[index] = _with_author(messages[index], "injected", lambda _: True)
    return result, copies


def _texts(message: Message) -> set[bytes]:
    """Return the digests of a message's texts: of each, and of the person's joined."""
    texts = [part for part in message.parts if part.kind == "text"]
    words = "".join(part.text() for part in texts if part.author in HUMAN_AUTHORS)
    return {part.digest for part in texts} | {digest("text", words)}


def _with_author(message: Message, author: Author, is_meant: Callable[[bytes], bool]) -> Message:
    """Return a message in which texts change sides: to the person's, or away from it."""
    parts = tuple(
        replace(part, author=author)
        if is_meant(part.digest) and (part.author in HUMAN_AUTHORS) != (author in HUMAN_AUTHORS)
        else part
        for part in message.parts
    )
    return replace(message, parts=parts)
