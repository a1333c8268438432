"""Reading a message list that grows: what was read before and did not change is not read again."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec

from recap.transcript.items import PLAIN_TEXT, dialect_of
from recap.transcript.lists import read_messages
from recap.transcript.model import HUMAN_AUTHORS, digest
from recap.transcript.signs import sign_of
from recap.turns import is_real_user, is_steering

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.transcript.model import Dialect, Finding, Json, Message, Transcript


class GrowingList:
    """A caller's message list, seen again and again as it grows.

    Of a list whose first messages are the very objects of the time before, with the same content,
    only the rest is read, from the last turn they hold on. Any other list is read whole. The result
    is what ``read_messages`` returns.
    """

    def __init__(self) -> None:
        self._asked = ""
        self._items: Sequence[Mapping[str, Json]] = ()
        self._prints: list[bytes] = []
        self._transcript: Transcript | None = None

    def read(
        self, messages: Sequence[Mapping[str, Json]] | Mapping[str, Json], dialect: str = "auto"
    ) -> Transcript:
        """Return the transcript of the list; arguments and errors as for ``read_messages``."""
        if not isinstance(messages, list | tuple):
            return read_messages(messages, dialect)
        prints = _prints(messages)
        known = self._transcript
        start = 0
        if known is not None and dialect == self._asked and len(prints) == len(messages):
            start = _last_turn(known.messages, self._unchanged(messages, prints))
        if known is None or not start or not _is_of(known.dialect, messages, start, dialect):
            transcript = read_messages(messages, dialect)
        else:
            transcript = _joined(known, read_messages(messages[start:], known.dialect), start)
            if known.evidence == PLAIN_TEXT and (sign := sign_of(messages[start:])):
                transcript = replace(transcript, evidence=sign[1])
        self._asked, self._items, self._prints = dialect, tuple(messages), prints
        self._transcript = transcript
        return transcript

    def _unchanged(self, messages: Sequence[Mapping[str, Json]], prints: list[bytes]) -> int:
        """Return how many first messages are the same objects and hold what they held."""
        pairs = zip(self._items, messages, self._prints, prints, strict=False)
        return sum(1 for _ in takewhile(lambda p: p[0] is p[1] and p[2] == p[3], pairs))


def _is_of(
    dialect: Dialect, messages: Sequence[Mapping[str, Json]], start: int, asked: str
) -> bool:
    """Return True when a list is of the dialect that its first ``start`` messages were read in.

    Plain texts are of no dialect: the first call, or block, after them decides for the whole list.
    """
    if asked != "auto":
        return True
    sign = sign_of(messages[start:]) or sign_of(messages[:start])
    return dialect == (sign[0] if sign else dialect_of(list(messages))[0])


def _prints(messages: Sequence[Mapping[str, Json]]) -> list[bytes]:
    """Return a hash of each message's content, up to one that is no plain JSON."""
    prints = []
    for message in messages:
        try:
            prints.append(digest(msgspec.json.encode(message)))
        except (TypeError, ValueError, UnicodeEncodeError, OverflowError, RecursionError):
            break
    return prints


def _last_turn(messages: Sequence[Message], unchanged: int) -> int:
    """Return the 0-based element that begins the last turn within the unchanged ones, 0 for none.

    There reading can begin anew: nothing of a message a person sent depends on those before it, when
    it is no steering, and it is the first of what its element holds.
    """
    lines: set[int] = set()
    found = 0
    for message in messages:
        if message.line > unchanged:
            break
        if message.line not in lines and is_real_user(message) and not is_steering(message):
            is_whole = all(part.author in HUMAN_AUTHORS for part in message.parts)
            found = message.line - 1 if is_whole else found
        lines.add(message.line)
    return found


def _joined(known: Transcript, rest: Transcript, start: int) -> Transcript:
    """Return what was known up to an element, and the rest that was read from there."""
    head = tuple(message for message in known.messages if message.line <= start)
    tail = tuple(replace(message, line=message.line + start) for message in rest.messages)
    findings: list[Finding] = [each for each in known.findings if each.line <= start]
    findings += [
        replace(each, line=each.line + start if each.line else 0) for each in rest.findings
    ]
    return replace(
        known,
        messages=(*head, *tail),
        findings=tuple(findings),
        lines=known.lines if start > known.lines else start + rest.lines,
        counts={},
    )
