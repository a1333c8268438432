"""Links of a Claude Code log: its lines as nodes, and the parent of each.

A parent that was never written is a gap. It is joined where the log proves enough; the walk over
the links reports it.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recap.transcript.lines import Report

NodeKind = Literal["user", "assistant", "system", "link"]

ROOT, GAP, UNSTATED, UNKNOWN = -1, -2, -3, -4
"""Places of a parent that is no line: there is none, it was never written, it is not stated; it has
not been looked for."""

LINK, USER, ASSISTANT, SYSTEM = range(4)
CODES: dict[NodeKind, int] = {"link": LINK, "user": USER, "assistant": ASSISTANT, "system": SYSTEM}

NO_PARENT = -1
"""Stands for the key of the parent that a root has not; no hash is -1 in CPython."""


def key_of(text: str) -> int:
    """Return the 64 bits by which an id is told from others: 0 for "", never ``NO_PARENT``.

    Python keys the hash anew in each process, so no file can hold ids that collide on purpose.
    """
    return hash(text)


@dataclass(frozen=True, slots=True)
class Compaction:
    """A native compaction boundary.

    Attributes:
        logical_parent: uuid of the last line of the old context, "" where unknown.
        anchor: uuid of the line after which the preserved messages go.
        preserved: uuids of the preserved messages in order, where they are listed.
        head: uuid of the first preserved message, where a segment is given.
        tail: uuid of the last one.
    """

    logical_parent: str = ""
    anchor: str = ""
    preserved: tuple[str, ...] = ()
    head: str = ""
    tail: str = ""


@dataclass(slots=True)
class Node:
    """What the chain needs to know of a line.

    Attributes:
        line: 1-based line.
        kind: ``user`` and ``assistant`` are conversation; ``link`` is a line that only links others.
        uuid: Its id, "" without one.
        parent: The parent's uuid; None for a root, "" where the line does not say.
        message_id: The API message an assistant line belongs to.
        call_ids: Calls it makes.
        result_ids: Calls it answers.
        owner: uuid of the assistant line whose call it answers, where stated.
        is_queued: It holds what the person typed while the agent worked.
        compaction: Set when it is a native compaction boundary.
    """

    line: int
    kind: NodeKind
    uuid: str
    parent: str | None
    message_id: str = ""
    call_ids: tuple[str, ...] = ()
    result_ids: tuple[str, ...] = ()
    owner: str = ""
    is_queued: bool = False
    compaction: Compaction | None = None


class Index:
    """Places by key, in 8 bytes each: an open table of 4-byte slots over an array of keys.

    Args:
        keys: A key for each place; 0 for a place that has none. The last place of a key counts.
    """

    __slots__ = ("_keys", "_mask", "_slots", "replaced")

    def __init__(self, keys: array[int]) -> None:
        self._keys = keys
        self._mask = mask = (1 << max(3, (len(keys) * 3 // 2).bit_length())) - 1
        self._slots = slots = array("i", bytes(4 * (mask + 1)))  # 0: free; else place + 1
        self.replaced: list[int] = []
        """Places whose key a later place has too."""
        for place, key in enumerate(keys, 1):
            if not key:
                continue
            slot = key & mask
            while (held := slots[slot]) and keys[held - 1] != key:
                slot = slot + 1 & mask
            if held:
                self.replaced.append(held - 1)
            slots[slot] = place

    def find(self, key: int, default: int) -> int:
        """Return the last place of a key, the default where it has none."""
        if not key:
            return default
        slot = key & self._mask
        while held := self._slots[slot]:
            if self._keys[held - 1] == key:
                return held - 1
            slot = slot + 1 & self._mask
        return default


class Links:
    """The nodes of a log in arrays, some 45 bytes for each: a log may have millions of lines.

    Ids are kept as keys, see ``key_of``.
    """

    def __init__(self) -> None:
        self.line = array("I")
        self.kind = bytearray()
        self.uuid = array("q")
        self.parent = array("q")
        self.message = array("q")
        self.owner = array("q")
        self.tools = array("q")
        self.first_tool = array("I", [0])
        self.is_queued: set[int] = set()
        self.compactions: dict[int, Compaction] = {}

    def __len__(self) -> int:
        return len(self.kind)

    def extend(self, rows: Iterable[tuple[int, int, int, int, int, int, int]]) -> None:
        """Add nodes.

        Args:
            rows: For each its 1-based line; its kind (``LINK``, ``USER``, ``ASSISTANT``,
                ``SYSTEM``); the key of its id; that of its parent's, ``NO_PARENT`` for a root, 0
                where the line does not say; that of the API message an assistant line belongs to;
                that of the assistant line whose call it answers, where stated; and how many tools
                there are up to its own: keys of the calls that it makes or answers.
        """
        columns = self.line, self.kind, self.uuid, self.parent, self.message, self.owner
        for held, column in zip((*columns, self.first_tool), zip(*rows, strict=True), strict=False):
            held.extend(column)

    def tools_of(self, at: int) -> array[int]:
        """Return the keys of the calls a node makes or answers."""
        return self.tools[self.first_tool[at] : self.first_tool[at + 1]]

    def is_spoken(self, at: int) -> bool:
        """True for a line of the conversation."""
        return 0 < self.kind[at] < SYSTEM


def links_of(nodes: Iterable[Node]) -> Links:
    """Return the links of nodes."""
    links = Links()
    rows = []
    for at, node in enumerate(nodes):
        links.tools.extend(map(key_of, node.call_ids or node.result_ids))
        parent = NO_PARENT if node.parent is None else key_of(node.parent)
        rows.append(
            (
                node.line, CODES[node.kind], key_of(node.uuid), parent, key_of(node.message_id),
                key_of(node.owner), len(links.tools),
            )
        )  # fmt: skip
        if node.is_queued:
            links.is_queued.add(at)
        if node.compaction:
            links.compactions[at] = node.compaction
    links.extend(rows)
    return links


class Parents:
    """Parents of all nodes, gaps joined where the log proves enough.

    Attributes:
        stated: Place of the parent each node names, or ROOT, GAP, UNSTATED.
        parent: The same with gaps joined.
        repeated: 1 for each node that a later one of the same uuid replaces.
        followed: 1 for each node from which the conversation went on.
    """

    def __init__(self, links: Links, report: Report) -> None:
        self.links = links
        self._index = Index(links.uuid)
        self.repeated = bytearray(len(links))
        for at in self._index.replaced:
            report.add(
                "duplicate-uuid", "a later line has the same uuid and replaces this one",
                links.line[at], "warning",
            )  # fmt: skip
            self.repeated[at] = 1
        self.stated = self._stated()
        self.followed = self._followed()
        self.parent = self._joined()
        self._speaker = array("i")

    def find(self, uuid: int) -> int:
        """Return the place of a uuid's key, ROOT where no line has it."""
        return self._index.find(uuid, ROOT)

    def _stated(self) -> array[int]:
        uuids, parents = self.links.uuid, self.links.parent
        stated = array("i", range(ROOT, len(parents) - 1))  # most lines follow the one before them
        for at, (parent, before) in enumerate(zip(parents, chain((0,), uuids), strict=False)):
            if parent != before or not parent:
                stated[at] = self._place_of(parent, at)
        for at in self._index.replaced:
            if at + 1 < len(stated) and stated[at + 1] == at:
                stated[at + 1] = self._place_of(parents[at + 1], at + 1)
        return stated

    def _place_of(self, parent: int, at: int) -> int:
        """Return the place of the parent with this key, of the node at a place."""
        if parent == NO_PARENT:
            return ROOT
        above = self._index.find(parent, GAP if parent else UNSTATED)
        return GAP if above == at else above

    def _followed(self) -> bytearray:
        followed = bytearray(len(self.links))
        kinds, repeated, stated = self.links.kind, self.repeated, self.stated
        for at, kind in enumerate(kinds):
            above = stated[at] if 0 < kind < SYSTEM and not repeated[at] else ROOT
            while above >= 0 and not followed[above]:
                followed[above] = 1
                if 0 < kinds[above] < SYSTEM:
                    break
                above = stated[above]
        return followed

    def _joined(self) -> array[int]:
        """Return each node's parent; a missing one is where the session stood just before.

        That is the last line of the conversation ahead of it in the file, if nothing followed it:
        the client falls back to the previous line too. A line that a later one of the same uuid
        replaces is none: its text comes with the later one.
        """
        if not self.stated or min(self.stated) >= ROOT:
            return self.stated
        joined = self.stated[:]
        last = ROOT
        for at, kind in enumerate(self.links.kind):
            if joined[at] < ROOT:
                joined[at] = ROOT if last >= 0 and self.followed[last] else last
            if kind and not self.repeated[at]:
                last = at
        return joined

    def before(self, at: int) -> int:
        """Return the last line of the conversation ahead of a node in the file, or ROOT."""
        while (at := at - 1) >= 0:
            if self.links.kind[at] and not self.repeated[at]:
                break
        return at

    def speaker(self, at: int) -> int:
        """Return the nearest line of the conversation above a node, or ROOT."""
        if not self._speaker:
            self._speaker = array("i", [UNKNOWN]) * len(self.links)
        path = []
        found = self._speaker[at]
        while found == UNKNOWN:
            path.append(at)
            self._speaker[at] = ROOT  # ends a cycle
            at = self.parent[at]
            found = at if at < 0 or self.links.is_spoken(at) else self._speaker[at]
        for passed in path:
            self._speaker[passed] = found
        return found
