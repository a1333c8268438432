"""Identifiers and lines of single parts: which parts feed the index, and a memory of those read.

A list that grows by a turn and comes again costs one lookup for each part it had the last time.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from recap.blocks.identifiers import identifiers, visible
from recap.transcript.model import HUMAN_AUTHORS, strings
from recap.transcript.parts import parsed_arguments

if TYPE_CHECKING:
    from recap.transcript.model import Part

MEMORY_BYTES = 128 << 20
"""Bound of the memory of a process. Strings count as if no other part or table shared them; where
sessions repeat their names, as real ones do, it takes about a third."""

_ENTRY_BYTES = 300  # key, place in the order, empty tuple
_TERM_BYTES = 57  # reference and empty string

MIN_LINE_CHARS = 16
"""A shorter line, white space around it apart, is a bracket or a word and says nothing."""

_FEEDING_AUTHORS = HUMAN_AUTHORS | {"agent", "tool"}
_SILENT_KINDS = frozenset(("thinking", "image"))


class Terms(NamedTuple):
    """What a part holds, each once and sorted.

    Attributes:
        names: Its identifiers.
        lines: CRC-32 of its lines in hex, of which one in a hundred thousand may meet another's.
    """

    names: tuple[str, ...]
    lines: tuple[str, ...]


_NOTHING = Terms((), ())


def part_terms(part: Part) -> Terms:
    """Return the identifiers and the lines of a part.

    Words of the person, the agent and its tools feed the index. Thinking does not, as it is no part
    of a block's identity, and no machine text in the user role does.
    """
    if part.author not in _FEEDING_AUTHORS or part.kind in _SILENT_KINDS:
        return _NOTHING
    found = _MEMORY.get(part.digest)
    if found is None:
        text = _text(part)
        found = Terms(tuple(sorted(identifiers(text))), _lines(text))
        _MEMORY.put(part.digest, found)
    return found


def _lines(text: str) -> tuple[str, ...]:
    stripped = {line.strip() for line in visible(text).split("\n")}
    long = [line for line in stripped if len(line) >= MIN_LINE_CHARS]
    return tuple(sorted({f"{crc32(line.encode('utf-8', 'replace')):08x}" for line in long}))


def _text(part: Part) -> str:
    """Return the text that feeds the index, the same for equal digests whatever the dialect."""
    if part.kind == "call":
        return "\n".join((part.name, *strings(parsed_arguments(part.payload()))))
    return part.text()


class _Memory:
    """What parts hold, by content digest; what was not asked for longest goes first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.entries: OrderedDict[bytes, Terms] = OrderedDict()
        self.lock = Lock()

    def get(self, key: bytes) -> Terms | None:
        with self.lock:
            found = self.entries.get(key)
            if found is not None:
                self.entries.move_to_end(key)
            return found

    def put(self, key: bytes, terms: Terms) -> None:
        """Remember terms; a part without a digest (b"") cannot be recognised again."""
        with self.lock:
            if not key or key in self.entries:
                return
            self.entries[key] = terms
            self.size += _cost_bytes(terms)
            while self.size > self.limit:
                _, oldest = self.entries.popitem(last=False)
                self.size -= _cost_bytes(oldest)


def _cost_bytes(terms: Terms) -> int:
    strings = (*terms.names, *terms.lines)
    return _ENTRY_BYTES + _TERM_BYTES * len(strings) + sum(map(len, strings))


_MEMORY = _Memory(MEMORY_BYTES)
