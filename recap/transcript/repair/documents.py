"""Repair of JSON documents that hold a message list: Anthropic Messages and OpenAI chat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recap.transcript.check.openai import ROLES
from recap.transcript.items import LIST_KEYS
from recap.transcript.lines import BOM, is_strict
from recap.transcript.model import Dialect, Json, decode, encode
from recap.transcript.repair.elements import take_elements
from recap.transcript.repair.lines import BLANK, JUNK, is_json
from recap.transcript.repair.list_pairs import Codes, Entry, Place, repeated, unpaired
from recap.transcript.repair.patch import Patch
from recap.transcript.spans import element_spans, member_spans, strict_twin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recap.transcript.sources import Sized
    from recap.transcript.spans import Span

LISTS: Mapping[str, Dialect] = {"anthropic-messages": "anthropic", "openai-chat": "openai"}
"""Formats whose documents are repaired, and their dialect."""

HEAD_BYTES = 4096
THINKING = ("thinking", "redacted_thinking")

FAULTS = {
    "null-block": "Block {0} is null",
    "duplicate-call-id": "Call {0} has the id of another call of its turn",
    "orphan-result": "Result {0} answers no call just before it",
    "duplicate-result": "Result {0} answers a call that has a result already",
    "unanswered-call": "Call {0} has no result just after it",
    "thinking-last": "Thinking {0} would be the last of its message",
}
"""Code -> what is wrong, given the number of the block."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[{}\[\]]', re.DOTALL)


def close_list(source: Sized) -> Patch:
    """Return what makes a message list JSON that was cut off, or has NUL bytes around it."""
    patch = Patch()
    head = source.read(0, min(HEAD_BYTES, source.size)).removeprefix(BOM)
    if not head.lstrip(JUNK).startswith(b"["):
        return patch
    data = source.read(0, source.size)
    begin = data.index(b"[")
    body = data[begin:].rstrip(JUNK)
    if is_json(body):
        end = begin + len(body)
        for start, stop in ((len(BOM) if data.startswith(BOM) else 0, begin), (end, len(data))):
            if b"\0" in data[start:stop]:
                patch.take((start, stop))
                nuls = data.count(b"\0", start, stop)
                patch.note("nul-bytes", 0, f"{nuls:,} NUL bytes are taken out.")
        return patch
    count, end = _whole_elements(data, begin)
    if count:
        ending = b"\n]\n" if b"\n" in data[begin:end].strip(BLANK) else b"]\n"
        patch.take((end, len(data)), new=ending)
        size = len(data) - end
        detail = f"The list is cut off after this message; it is closed, {size:,} bytes taken out."
        patch.note("cut-list", count, detail)
    return patch


def _whole_elements(data: bytes, begin: int) -> tuple[int, int]:
    """Return the number of whole objects at the beginning of an array, and where they end."""
    depth = count = end = 0
    for token in _TOKEN.finditer(data, begin):
        char = data[token.start()]
        depth += (char in b"{[") - (char in b"}]")
        if depth == 1 and char == b"}"[0]:
            count, end = count + 1, token.end()
        elif depth < 1:
            break
    return count, end


def mend_list(source: Sized, format: str) -> Patch:
    """Return what mends the message list a document is or holds; lines are messages from 1."""
    return _List(source, LISTS[format]).mend()


class _List:
    """State of one repair."""

    def __init__(self, source: Sized, dialect: Dialect) -> None:
        self.dialect = dialect
        self.patch = Patch()
        data = source.read(0, source.size)
        self.start = len(BOM) if data.startswith(BOM) else 0
        data = data[self.start :]
        self.data = data if is_strict(data) else strict_twin(data)  # of equal length
        self.values, span = _list_in(decode(self.data), self.data)
        self.spans = _elements(self.data, span)
        read = _anthropic_entry if dialect == "anthropic" else _openai_entry
        self.codes: Codes = {}
        self.entries = [read(number, value, self.codes) for number, value in enumerate(self.values)]

    def mend(self) -> Patch:
        """Return every change."""
        unpaired(self.entries, self.codes, self.dialect)
        names = repeated(self.entries, self.codes) if self.dialect == "anthropic" else {}
        gone = {
            number for number, entry in enumerate(self.entries) if entry.is_gone(number, self.codes)
        }
        gone |= {number for number, value in enumerate(self.values) if value is None}
        take_elements(self.patch, [self._place(span) for span in self.spans], gone)
        for number, value in enumerate(self.values):
            if value is None:
                self.patch.note("null-message", number + 1, "A null message is taken out.")
        for number in sorted({number for number, _ in self.codes} - gone):
            self._take_blocks(number)
        for (number, block), code in sorted(self.codes.items()):
            outcome = "it is taken out with its message" if number in gone else "it is taken out"
            detail = f"{FAULTS[code].format(block + 1)}; {outcome}."
            self.patch.note(code, number + 1, detail)
        for place, call_id in sorted(names.items()):
            self._rename(place, call_id)
        return self.patch

    def _take_blocks(self, number: int) -> None:
        blocks = {block for each, block in self.codes if each == number}
        members = self._members(self.spans[number])
        span = members["content" if self.dialect == "anthropic" else "tool_calls"]
        spans = _elements(self.data, span)
        if len(blocks) < len(spans):
            take_elements(self.patch, [self._place(span) for span in spans], blocks)
        else:
            whole = _member(self.data, self.spans[number], members.values(), span)
            self.patch.take(self._place(span), self._place(whole))

    def _rename(self, place: Place, call_id: str) -> None:
        number, block = place
        content = self._members(self.spans[number])["content"]
        members = self._members(_elements(self.data, content)[block])
        key = "id" if self.entries[number].role == "assistant" else "tool_use_id"
        self.patch.take(self._place(members[key]), new=encode(call_id))
        what = "Call" if key == "id" else "The call of result"
        detail = f"{what} {block + 1} has the id of an earlier turn's call; it gets one of its own."
        self.patch.note("duplicate-call-id", number + 1, detail)

    def _members(self, span: Span) -> Mapping[str, Span]:
        start, end = span
        spans = member_spans(self.data[start:end])
        return {key: (start + begin, start + stop) for key, (begin, stop) in spans.items()}

    def _place(self, span: Span) -> Span:
        """Return a span of the data as a span of the source."""
        return self.start + span[0], self.start + span[1]


def _list_in(document: Json, data: bytes) -> tuple[Sequence[Json], Span]:
    """Return the message list a document is or holds, and where it stands."""
    if isinstance(document, list):
        return document, (0, len(data))
    key = next(key for key in LIST_KEYS if isinstance(document.get(key), list))
    return document[key], member_spans(data)[key]


def _elements(data: bytes, span: Span) -> list[Span]:
    start, end = span
    return [(start + begin, start + stop) for begin, stop in element_spans(data[start:end])]


def _member(data: bytes, span: Span, values: Iterable[Span], value: Span) -> Span:
    """Return where a member of an object stands with its key, and with one comma where it has one.

    Args:
        data: Bytes that hold the object at ``span``.
        span: Of the object.
        values: Spans of its members' values.
        value: Span of this one's value.
    """
    before = max((end for _, end in values if end <= value[0]), default=0)
    if before:
        return before, value[1]
    comma = data.find(b",", value[1], span[1])
    return data.index(b"{", span[0]) + 1, (comma + 1 if comma >= 0 else value[1])


def _anthropic_entry(number: int, message: Json, codes: Codes) -> Entry:
    role = message.get("role") if isinstance(message, dict) else None
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or role not in ("user", "assistant"):
        return Entry(role if role in ("user", "assistant") else "", has_more=True)
    entry = Entry(role, len(content))
    for at, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if block is None:
            codes[number, at] = "null-block"
        elif kind == "tool_use" and role == "assistant" and isinstance(block.get("id"), str):
            entry.calls.append((at, block["id"]))
        elif kind == "tool_result" and role == "user":
            entry.results.append((at, block.get("tool_use_id")))
        elif kind in THINKING:
            entry.thinking.append(at)
    return entry


def _openai_entry(number: int, message: Json, codes: Codes) -> Entry:
    del number, codes  # nothing of a message is null but the message
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ROLES:
        return Entry("", has_more=True)
    if role == "tool":
        return Entry(role, 1, results=[(0, message.get("tool_call_id"))])
    calls = message.get("tool_calls") if role == "assistant" else None
    if not isinstance(calls, list):
        return Entry(role, has_more=True)
    return Entry(
        role,
        len(calls),
        [
            (at, call["id"])
            for at, call in enumerate(calls)
            if isinstance(call, dict) and isinstance(call.get("id"), str) and call["id"]
        ],
        has_more=any(message.get(key) for key in ("content", "refusal", "audio", "function_call")),
    )
