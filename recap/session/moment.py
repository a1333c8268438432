"""Where a session stands when a request arrives: what is history, what is the current turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recap.errors import UsageError
from recap.select.prepare import clip_pastes, without_thinking
from recap.transcript.lists import read_messages
from recap.transcript.model import HUMAN_AUTHORS, Dialect, Json, Message, Transcript
from recap.turns import Boundary, SessionKey, boundaries, chain, is_real_user, selection_seed

if TYPE_CHECKING:
    from recap.config import Settings


@dataclass(frozen=True, slots=True)
class Moment:
    """Where history ends and the current turn begins, and what names this turn.

    Attributes:
        messages: All messages, the arriving request included.
        tail_start: Index of the message the current turn begins with; from it on nothing is left
            out.
        request_at: Index of the message that holds the request.
        turn_key: Key of the turn the selection holds for; "" without a real user message.
        session: What names the session.
        own: How many messages are the session's own: all but a request that is given apart.
        closed: Messages of the session itself, without a request that is given apart, that begin a
            turn: each proves by its key that the turns before it are what they were.
        gone: Indices of messages that the client does not send any more, see ``archive``.
    """

    messages: tuple[Message, ...]
    tail_start: int
    request_at: int
    turn_key: str
    session: SessionKey
    own: int
    closed: tuple[Boundary, ...]
    gone: tuple[int, ...] = ()

    @property
    def seed(self) -> bytes:
        """Seed of the turn's selection."""
        return selection_seed(self.session, self.turn_key)

    @property
    def opens_turn(self) -> bool:
        """The request is the last message, system text after it aside."""
        return all(message.role == "system" for message in self.messages[self.request_at + 1 :])

    @property
    def request_text(self) -> str:
        """The person's words of the message that holds the request."""
        return "\n".join(
            part.text()
            for message in self.messages[self.request_at : self.request_at + 1]
            for part in message.parts
            if part.kind == "text" and part.author in HUMAN_AUTHORS
        )


def moment_of(
    transcript: Transcript,
    request: str | Mapping[str, Json] | None,
    named: SessionKey | None = None,
) -> Moment:
    """Return the moment in which the request arrives, or the last user message of the session did.

    Args:
        transcript: The session.
        request: As for ``compact``.
        named: Names the session by more than its first user message (tenant, id, agent).

    Raises:
        UsageError: The request is blank, or no user message.
    """
    messages = transcript.messages
    if isinstance(request, str) and not request.strip():
        raise UsageError("the request is blank: give its words, or None for the last user message")
    size = len(messages)
    if request is not None:
        messages = (*messages, *_request_messages(request, transcript.dialect))
    found = boundaries(messages)
    closed = tuple(each for each in found if each.message < size and not each.is_steering)
    if request is not None:
        tail_start, turn_key = size, found[-1].turn_key if found else ""
    elif closed:
        tail_start, turn_key = closed[-1].message, closed[-1].turn_key
    else:
        tail_start, turn_key = 0, ""
    root = found[0].turn_key if found else ""
    session = replace(named or SessionKey("", "", "", ""), root=root)
    return Moment(messages, tail_start, tail_start, turn_key, session, size, closed)


def at_last_step(moment: Moment) -> Moment:
    """Return the moment with all but the agent's last step as history, for a turn without an end.

    An agent that works for hours on one request never reaches a boundary: in mode ``epoch`` its open
    turn is history as well, up to the step whose results it is about to read.
    """
    steps = [
        index
        for index, message in enumerate(moment.messages)
        if index > moment.tail_start and message.role == "assistant"
    ]
    if not steps:
        return moment
    prefix = chain(moment.messages[: steps[-1]])[-1]
    return replace(moment, tail_start=steps[-1], turn_key=prefix.hex())


def _request_messages(request: str | Mapping[str, Json], dialect: Dialect) -> tuple[Message, ...]:
    """Return the request as messages: a text, or a message of the list's dialect or another.

    A text is the person's, whatever it begins with. Raises UsageError for what is no user message.
    """
    if isinstance(request, str):
        (message,) = read_messages([{"role": "user", "content": request}], "openai").messages
        parts = tuple(replace(part, author="human") for part in message.parts)
        return (replace(message, parts=parts),)
    found: tuple[Message, ...] = ()
    if isinstance(request, Mapping):
        found = read_messages([request], dialect).messages or read_messages([request]).messages
    if not any(is_real_user(message) for message in found):
        raise UsageError(
            "the request is no user message with words in it: give its text, or a message like "
            '{"role": "user", "content": "..."}'
        )
    return found


def prepared(moment: Moment, settings: Settings) -> tuple[Moment, Counter[str]]:
    """Return the moment with the optional changes to history made, and their counts."""
    notes: Counter[str] = Counter()
    history = moment.messages[: moment.tail_start]
    if settings.paste_limit is not None:
        history, clipped = clip_pastes(history, settings.paste_limit)
        if clipped:
            notes["pasted-characters-clipped"] = clipped
    if not settings.keep_thinking:
        before = sum(part.kind == "thinking" for message in history for part in message.parts)
        history = without_thinking(history)
        if before:
            notes["thinking-dropped"] = before
    messages = (*history, *moment.messages[moment.tail_start :])
    return replace(moment, messages=messages), notes
