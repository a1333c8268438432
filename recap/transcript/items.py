"""Message lists of any dialect: which dialect one is, and the loop that reads its elements.

Faults of the input end here: an element that is no message becomes a finding and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from recap.transcript.authors import author_in, media_author
from recap.transcript.lines import Report, elements, members
from recap.transcript.model import Author, Dialect, Json, Message, Part, Raw, Role, Transcript
from recap.transcript.parts import text_part
from recap.transcript.signs import DOCUMENT_KEYS, OPENAI_ROLES, sign_of

Fields: TypeAlias = dict[str, Json]
"""A decoded JSON object."""

ReadItem: TypeAlias = Callable[[Raw, Fields, int, Report], Sequence[Message]]
"""Handle on a message object, its decoded fields and its 1-based number -> canonical messages."""

ReadBlock: TypeAlias = Callable[[Raw, Fields, Role, Author], Part | None]
"""Handle on a block with a type, its fields, the message's role, the author of pasted media."""

UNREADABLE = (TypeError, ValueError, KeyError, OverflowError, RecursionError)
"""What a value that is no JSON, or nested without end, makes the codecs raise; KeyError where its
members decode but cannot be told apart in its bytes."""

LIST_KEYS = ("messages", "traj", "input", "contents")
"""Keys under which documents hold their message list."""

ROLES = frozenset(("system", "user", "assistant")) | OPENAI_ROLES


def list_in(document: Json) -> Sequence[Json] | None:
    """Return the message list a document is or holds; None when it holds none."""
    if isinstance(document, dict):
        held = (document.get(key) for key in LIST_KEYS)
        return next((value for value in held if isinstance(value, list)), None)
    return document if isinstance(document, list) else None


def is_message_list(document: Json) -> bool:
    """Return True when some element of the document's list has a role a vendor knows."""
    return any(
        isinstance(item, dict) and _is_text(item.get("role")) and item["role"] in ROLES
        for item in list_in(document) or ()
    )


PLAIN_TEXT = "messages of plain text"
"""What decided the dialect of a list that shows none."""


def dialect_of(document: Json) -> tuple[Dialect, str]:
    """Return the dialect of a message list or request document, and what decided it.

    What a message or the key of the list shows decides first (``signs``), then system messages
    (OpenAI) or a ``system`` field (Anthropic). Where nothing does, plain texts count as OpenAI's.
    """
    messages = list_in(document) or ()
    if found := sign_of(messages):
        return found
    fields = document if isinstance(document, dict) else {}
    for key, dialect in DOCUMENT_KEYS.items():
        if key in fields and "messages" not in fields:
            return dialect, f"a field {key}"
    if "system" in fields:
        return "anthropic", "a system field beside the messages"
    if any(isinstance(each, dict) and each.get("role") == "system" for each in messages):
        return "openai", "a system message in the list"
    return "openai", PLAIN_TEXT


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def items_of(document: Raw) -> tuple[list[Raw], Mapping[str, Raw]]:
    """Return handles on the elements of a document's list, and on the fields beside the list."""
    fields = members(document)
    if not fields:
        return elements(document), {}
    held = (elements(fields[key]) for key in LIST_KEYS if key in fields)
    return next((items for items in held if items), []), fields


def read_items(items: Iterable[Raw], read_item: ReadItem, report: Report) -> list[Message]:
    """Return the messages of all elements; what cannot be read is reported and left out."""
    messages: list[Message] = []
    for line, raw in enumerate(items, 1):
        try:
            fields = raw.load()
            if isinstance(fields, dict):
                messages.extend(read_item(raw, fields, line, report))
            else:
                report.add("not-a-message", "This is no message object; it was left out.", line)
        except UNREADABLE:
            report.add("unreadable-message", "This message cannot be read; it was left out.", line)
        if not raw.is_clean:
            report.add(
                "not-strict-json",
                "It holds what JSON forbids; that is replaced where the message goes out.",
                line,
                "warning",
            )
    return messages


def read_blocks(
    content: Raw,
    blocks: Sequence[Json],
    role: Role,
    read_block: ReadBlock,
    line: int,
    report: Report,
) -> tuple[list[Part], int]:
    """Return the parts of a content list, and how many of its blocks cannot go out as they are.

    Args:
        content: Handle on the list.
        blocks: The list, decoded.
        role: Of the message that holds it.
        read_block: Reads a block of some type; None for one that lacks what its type needs.
        line: 1-based number of the message.
        report: Takes what is left out.
    """
    parts: list[Part] = []
    texts = [author_in(role, words) for block in blocks if (words := _words(block)) is not None]
    media = media_author(role, texts)
    flaws = 0
    for raw, block in zip(elements(content), blocks, strict=True):
        part = None
        if isinstance(block, str):
            part = text_part(raw, block, author_in(role, block))
        elif isinstance(block, dict) and isinstance(block.get("type"), str):
            part = _part(read_block, raw, block, role, media)
        if part is None:
            detail = "A content block lacks what its type needs; it was left out."
            report.add("malformed-block", detail, line)
        else:
            parts.append(part)
        flaws += part is None or part.dialect is None
    return parts, flaws


def _part(read_block: ReadBlock, raw: Raw, block: Fields, role: Role, media: Author) -> Part | None:
    try:
        return read_block(raw, block, role, media)
    except UNREADABLE:
        return None


def _words(block: Json) -> str | None:
    words = block.get("text") if isinstance(block, dict) else block
    return words if isinstance(words, str) else None


def transcript_of(
    format: str, dialect: Dialect, messages: Iterable[Message], items: Sequence[Raw], report: Report
) -> Transcript:
    """Return the transcript of a message list; an empty one is reported."""
    if not items:
        report.add("no-messages", "There is no list of messages in it.", 0, "warning")
    return Transcript(
        format=format,
        dialect=dialect,
        messages=tuple(messages),
        findings=report.sorted(),
        lines=len(items),
    )
