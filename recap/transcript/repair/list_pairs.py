"""What has no partner in a message list: by the vendors' rules, which look at neighbours only.

Places are (0-based message, 0-based block); a result that is a message of its own is block 0 of it, a
call of OpenAI's is counted among the message's calls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from recap.transcript.model import Dialect, Json

Place: TypeAlias = tuple[int, int]
Codes: TypeAlias = dict[Place, str]
"""Places to take out, with the code of the fault."""


@dataclass(slots=True)
class Entry:
    """What pairing needs to know of a message.

    Attributes:
        role: As given; "" where it is none of the vendor's.
        size: Blocks, or calls, that can be taken out one by one.
        calls: Block and id of each call.
        results: Block and id of each result; the id is None where it is no text.
        thinking: Blocks that are thinking.
        has_more: It holds something besides these blocks.
    """

    role: str
    size: int = 0
    calls: list[tuple[int, str]] = field(default_factory=list)
    results: list[tuple[int, Json]] = field(default_factory=list)
    thinking: list[int] = field(default_factory=list)
    has_more: bool = False

    def is_gone(self, number: int, codes: Codes) -> bool:
        """Return True when nothing of the message would be left."""
        return (
            self.size > 0
            and not self.has_more
            and all((number, block) in codes for block in range(self.size))
        )


def unpaired(entries: Sequence[Entry], codes: Codes, dialect: Dialect) -> None:
    """Add what has no partner to ``codes``, and what loses it when the rest is gone."""
    while found := {
        place: code for place, code in _PASSES[dialect](entries, codes) if place not in codes
    }:
        codes.update(found)
        codes.update(_thinking_left(entries, codes, found))


def _thinking_left(
    entries: Sequence[Entry], codes: Codes, found: Codes
) -> Iterator[tuple[Place, str]]:
    """Yield the thinking that a message would end with: Anthropic refuses that."""
    for number in {number for number, _ in found}:
        entry = entries[number]
        for block in reversed(range(entry.size)):
            if block in entry.thinking:
                yield (number, block), "thinking-last"
            elif (number, block) not in codes:
                break


def repeated(entries: Sequence[Entry], codes: Codes) -> Mapping[Place, str]:
    """Return new ids for calls, and their results, that carry the id of an earlier turn's call.

    Anthropic wants ids unique in the whole list. Call after ``unpaired``.
    """
    fresh: dict[Place, str] = {}
    taken = {call_id for entry in entries for _, call_id in entry.calls}
    seen: set[str] = set()
    names: dict[str, str] = {}
    role = ""
    for number, entry in _kept(entries, codes):
        if entry.role == "assistant" and role == "user":
            names = {}
        for block, call_id in entry.calls:
            if (number, block) in codes:
                continue
            if call_id in seen:
                names[call_id] = fresh[number, block] = _free(call_id, taken)
            seen.add(call_id)
        fresh |= {
            (number, block): names[call_id]
            for block, call_id in entry.results
            if call_id in names and (number, block) not in codes
        }
        role = entry.role
    return fresh


def _free(call_id: str, taken: set[str]) -> str:
    number = 2
    while f"{call_id}_{number}" in taken:
        number += 1
    taken.add(f"{call_id}_{number}")
    return f"{call_id}_{number}"


def _kept(entries: Sequence[Entry], codes: Codes) -> Iterator[tuple[int, Entry]]:
    """Yield what is left of the conversation; system messages belong to no turn."""
    for number, entry in enumerate(entries):
        if entry.role in ("user", "assistant") and not entry.is_gone(number, codes):
            yield number, entry


def _anthropic(entries: Sequence[Entry], codes: Codes) -> Iterator[tuple[Place, str]]:
    """Yield what the turn before, or the turn after, does not match."""
    calls: dict[str, Place] = {}
    answered: set[str] = set()
    role = ""
    for number, entry in _kept(entries, codes):
        if entry.role == "assistant" and role == "user":
            yield from _open(calls, answered)
            calls, answered = {}, set()
        for block, call_id in entry.calls:
            if (number, block) in codes:
                continue
            if call_id in calls:
                yield (number, block), "duplicate-call-id"
            calls.setdefault(call_id, (number, block))
        for block, call_id in entry.results:
            if (number, block) not in codes:
                code = _verdict(call_id, calls, answered)
                if code:
                    yield (number, block), code
        role = entry.role
    yield from _open(calls, answered)


def _openai(entries: Sequence[Entry], codes: Codes) -> Iterator[tuple[Place, str]]:
    """Yield calls without a tool message right behind, and tool messages without a call before."""
    calls: dict[str, Place] = {}
    answered: set[str] = set()
    for number, entry in enumerate(entries):
        if not entry.role or entry.is_gone(number, codes):
            continue
        if entry.role != "tool":
            yield from _open(calls, answered)
            calls, answered = {}, set()
        for block, call_id in entry.calls:
            if (number, block) in codes:
                continue
            if call_id in calls:
                yield (number, block), "duplicate-call-id"
            calls.setdefault(call_id, (number, block))
        for block, call_id in entry.results:
            code = _verdict(call_id, calls, answered)
            if code:
                yield (number, block), code
    yield from _open(calls, answered)


def _verdict(call_id: Json, calls: Mapping[str, Place], answered: set[str]) -> str:
    if not isinstance(call_id, str) or call_id not in calls:
        return "orphan-result"
    if call_id in answered:
        return "duplicate-result"
    answered.add(call_id)
    return ""


def _open(calls: Mapping[str, Place], answered: set[str]) -> Iterator[tuple[Place, str]]:
    return (
        (place, "unanswered-call") for call_id, place in calls.items() if call_id not in answered
    )


_PASSES: Mapping[Dialect, Callable[[Sequence[Entry], Codes], Iterator[tuple[Place, str]]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
}
