"""Which result answers which call: by id first, then by position."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    matcher = _Matcher()
    server: list[tuple[PartRef, UnpairedReason]] = []
    for index, message in enumerate(messages):
        if message.role == "assistant":
            server.extend(_server_tools(index, message))
            for call_id, calls in _calls_by_id(index, message).items():
                matcher.add_calls(call_id, calls)
        elif message.role == "tool":
            for at, part in enumerate(message.parts):
                matcher.add_result(part.call_id, PartRef(index, at))
    return Pairing(matcher.result_of, tuple(sorted([*server, *matcher.unpaired()])))


class _Matcher:
    """Calls waiting for results and results waiting for calls, by id."""

    def __init__(self) -> None:
        self.result_of: dict[PartRef, PartRef] = {}
        self.open_calls: dict[str, list[deque[PartRef]]] = defaultdict(list)
        self.early_results: dict[str, deque[PartRef]] = defaultdict(deque)
        self.answered: set[tuple[str, int]] = set()

    def add_calls(self, call_id: str, calls: Sequence[PartRef]) -> None:
        """Take the calls of one id in one message."""
        waiting = deque(calls)
        early = self.early_results[call_id]
        while waiting and early:
            self._match(call_id, waiting.popleft(), early.popleft())
        if waiting:
            self.open_calls[call_id].append(waiting)

    def add_result(self, call_id: str, result: PartRef) -> None:
        """Take a result: answer a waiting call, or wait."""
        messages = self.open_calls[call_id]
        if not messages:
            self.early_results[call_id].append(result)
            return
        self._match(call_id, messages[-1].popleft(), result)
        if not messages[-1]:
            messages.pop()

    def unpaired(self) -> Iterator[tuple[PartRef, UnpairedReason]]:
        """Yield what is left over, with the reason."""
        for call_id, messages in self.open_calls.items():
            for call in (call for calls in messages for call in calls):
                is_repeated = (call_id, call.message) in self.answered
                yield call, "duplicate-call" if is_repeated else "open-call"
        answered_ids = {call_id for call_id, _ in self.answered}
        for call_id, results in self.early_results.items():
            for result in results:
                yield result, "duplicate-result" if call_id in answered_ids else "orphan-result"

    def _match(self, call_id: str, call: PartRef, result: PartRef) -> None:
        self.result_of[call] = result
        self.answered.add((call_id, call.message))


def _calls_by_id(index: int, message: Message) -> dict[str, list[PartRef]]:
    calls: dict[str, list[PartRef]] = defaultdict(list)
    for at, part in enumerate(message.parts):
        if part.kind == "call":
            calls[part.call_id].append(PartRef(index, at))
    return calls


def _server_tools(index: int, message: Message) -> Iterator[tuple[PartRef, UnpairedReason]]:
    """Yield the halves of server-tool pairs that lack the other half in the same message."""
    uses: dict[str, list[PartRef]] = defaultdict(list)
    results: dict[str, list[PartRef]] = defaultdict(list)
    for at, part in enumerate(message.parts):
        if part.kind == "other" and part.call_id:
            found = results if is_server_result(part) else uses
            found[part.call_id].append(PartRef(index, at))
    for call_id, refs in uses.items():
        if call_id not in results:
            yield from ((ref, "open-call") for ref in refs)
    for call_id, refs in results.items():
        if call_id not in uses:
            yield from ((ref, "orphan-result") for ref in refs)


def is_server_result(part: Part) -> bool:
    """Return True for a block of a server tool's answer, known or yet unknown (``*_tool_result``)."""
    return part.name.endswith("_tool_result")
