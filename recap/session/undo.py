"""Selections made earlier: which they are, and the session as it was when one was made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from recap.blocks.segment import segment
from recap.errors import UsageError, counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.select.kept import Kept
    from recap.transcript.model import Transcript
    from recap.turns import Boundary


@dataclass(frozen=True, slots=True)
class Served:
    """What one turn of a session was given.

    Attributes:
        ref: Hex digits that name it in this store.
        created: Unix time, seconds.
        kept: The kept set.
        message: Index of the message that began the turn; None for a request given apart, or a turn
            that is not in the session any more.
    """

    ref: str
    created: float
    kept: Kept
    message: int | None


def one_of(served: Sequence[Served], ref: str) -> Served:
    """Return the selection with that name: a unique beginning, or ``-1`` for the newest, ``-2``...

    Raises:
        UsageError: None, or several, have that name.
    """
    if ref.startswith("-") and ref[1:].isascii() and ref[1:].isdigit():
        place = int(ref[1:7])
        if 1 <= place <= len(served):
            return served[place - 1]
        kept = counted(len(served), "selection")
        raise UsageError(f"the store keeps {kept} of this session; {ref:.20} is none")
    found = [each for each in served if ref and each.ref.startswith(ref.lower())]
    if len(found) == 1:
        return found[0]
    what = "is the beginning of several selections" if found else "names no selection"
    raise UsageError(f"{ref!r:.40} {what} of this session; `recap explain SESSION --selections`")


def as_it_was(
    transcript: Transcript, served: Served, has_request: bool, turns: Sequence[Boundary]
) -> Transcript:
    """Return the session up to the end of the turn a selection was made for.

    With a request given apart it ends where the history of the selection did.

    Raises:
        UsageError: The turn, or the end of its history, is not in the session.
    """
    messages = transcript.messages
    if served.message is not None:
        later = (turn.message for turn in turns if turn.message > served.message)
        return replace(transcript, messages=messages[: min(later, default=len(messages))])
    if not has_request:
        raise UsageError(
            "that selection was made for a request given apart, or for a turn that is gone: give "
            "the request again with --request"
        )
    ends = [b.refs for b in segment(messages).blocks if b.id == served.kept.last_id]
    if not ends:
        raise UsageError("the history that selection was made from is not in this session any more")
    end = max(ref.message for ref in ends[0]) + 1
    return replace(transcript, messages=messages[:end])
