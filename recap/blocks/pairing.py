"""Which result answers which call: by id first, then by position."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from recap.transcript.model import Message, Part

UnpairedReason = Literal["open-call", "orphan-result", "duplicate-call", "duplicate-result"]


class PartRef(NamedTuple):
    """Address of a part: index of its message in the transcript, index in the message."""

    message: int
    part: int


@dataclass(frozen=True, slots=True)
class Pairing:
    """Calls with their results.

    Attributes:
        result_of: Result part of each answered call whose result stands in another message.
            Calls that the vendor answers inside the same message (server tools) are not in it.
        excluded: Calls and results without a partner, with the reason.
    """

    result_of: Mapping[PartRef, PartRef]
    excluded: tuple[tuple[PartRef, UnpairedReason], ...]


def pair(messages: Sequence[Message]) -> Pairing:
    """Return the pairing of all calls and results of ``messages``, in one pass.

    A result takes the oldest unanswered call of its id in the latest message that has one, so that
    a constant id (exports that blank ids out) still pairs by position. A result that stands before
    its call waits for it.
    """
    open_calls: dict[str, list[list[PartRef]]] = defaultdict(list)
    early_results: dict[str, list[PartRef]] = defaultdict(list)
    result_of: dict[PartRef, PartRef] = {}
    excluded: list[tuple[PartRef, UnpairedReason]] = []
    answered_ids: set[tuple[int, str]] = set()
    for index, message in enumerate(messages):
        if message.role == "assistant":
            excluded.extend(_server_tools(index, message))
            for call_id, calls in _calls_by_id(index, message).items():
                waiting = early_results.get(call_id, [])
                while waiting and calls:
                    result_of[calls.pop(0)] = waiting.pop(0)
                    answered_ids.add((index, call_id))
                if calls:
                    open_calls[call_id].append(calls)
        elif message.role == "tool":
            for ref, part in _parts(index, message):
                groups = open_calls.get(part.call_id)
                if not groups:
                    early_results[part.call_id].append(ref)
                    continue
                call = groups[-1].pop(0)
                if not groups[-1]:
                    groups.pop()
                result_of[call] = ref
                answered_ids.add((call.message, part.call_id))
    ids_with_answer = {call_id for _, call_id in answered_ids}
    for call_id, groups in open_calls.items():
        for calls in groups:
            for ref in calls:
                repeated = (ref.message, call_id) in answered_ids
                excluded.append((ref, "duplicate-call" if repeated else "open-call"))
    for call_id, results in early_results.items():
        reason: UnpairedReason = (
            "duplicate-result" if call_id in ids_with_answer else "orphan-result"
        )
        excluded.extend((ref, reason) for ref in results)
    return Pairing(result_of, tuple(sorted(excluded)))


def _parts(index: int, message: Message) -> Iterator[tuple[PartRef, Part]]:
    return ((PartRef(index, at), part) for at, part in enumerate(message.parts))


def _calls_by_id(index: int, message: Message) -> dict[str, list[PartRef]]:
    calls: dict[str, list[PartRef]] = defaultdict(list)
    for ref, part in _parts(index, message):
        if part.kind == "call":
            calls[part.call_id].append(ref)
    return calls


def _server_tools(index: int, message: Message) -> Iterator[tuple[PartRef, UnpairedReason]]:
    """Yield the halves of server-tool pairs that lack the other half in the same message."""
    uses: dict[str, list[PartRef]] = defaultdict(list)
    results: dict[str, list[PartRef]] = defaultdict(list)
    for ref, part in _parts(index, message):
        if part.kind == "other" and part.call_id:
            (results if is_server_result(part) else uses)[part.call_id].append(ref)
    for call_id, refs in uses.items():
        if call_id not in results:
            yield from ((ref, "open-call") for ref in refs)
    for call_id, refs in results.items():
        if call_id not in uses:
            yield from ((ref, "orphan-result") for ref in refs)


def is_server_result(part: Part) -> bool:
    """Return True for a block of a server tool's answer, known or yet unknown (``*_tool_result``)."""
    return part.name.endswith("_tool_result")
