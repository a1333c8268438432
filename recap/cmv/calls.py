"""Nodes looked up in the log again: the calls they make, what stands for a result, ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.cmv.records import ABSENT, Record, record_of
from recap.cmv.results import stubbed_text
from recap.cmv.stubs import Call, about, harmless, restorable
from recap.transcript.links import key_of
from recap.transcript.model import decode, encode

if TYPE_CHECKING:
    from recap.cmv.plan import Plan


class Calls:
    """Looks up the nodes of one log."""

    def __init__(self, plan: Plan) -> None:
        self._index = plan.index
        self._options = plan.options
        self._links = plan.links
        self._pairs = plan.pairs
        self._held: dict[int, Record] = {}

    def answered_by(self, at: int) -> Call:
        """Return the call that the first result of a node answers."""
        first = self._links.first_tool[at]
        return self.call(self._pairs.makers[first], self._links.tools[first])

    def stub_of(self, at: int, size: int) -> bytes | None:
        """Return the stub of a node's one result, a text of so many bytes; None where it stays."""
        return stubbed_text(self._index.cost[at], size, self.answered_by(at), self._options)

    def record(self, at: int) -> Record:
        """Return a node's line as the trimmer reads it."""
        record, _ = record_of(self._index.line_at(at))
        assert record is not None
        return record

    def uuid(self, at: int) -> str:
        """Return a node's id, "" where it has none."""
        return self.record(at).uuid or ""

    def uuid_json(self, at: int) -> bytes:
        """Return a node's id as JSON, null for ROOT."""
        return encode(self.uuid(at)) if at >= 0 else b"null"

    def call(self, at: int, key: int) -> Call:
        """Return the call with this key that a node makes."""
        message = (self._held.get(at) or self.record(at)).message
        content = message.content if message is not None else None
        for block in content if isinstance(content, list) else ():
            if block.type == "tool_use" and block.id and key_of(block.id) == key:
                arguments = decode(bytes(block.input)) if block.input is not ABSENT else None
                return Call(harmless(block.name or ""), about(arguments), restorable(block.id))
        return Call("", "", "unknown")

    def hold(self, at: int, record: Record, size: int) -> None:
        """Hold the record of a short line that makes calls: their results follow soon."""
        if size < _SMALL and self._links.first_tool[at] != self._links.first_tool[at + 1]:
            if len(self._held) >= _HELD:
                self._held.clear()
            self._held[at] = record


_HELD = 64
"""Lines that are held."""

_SMALL = 1 << 13
"""Bytes of a line up to which it may be held."""
