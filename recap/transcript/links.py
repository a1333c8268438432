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
    """Places by key, in some 5 bytes each: an open table of 4-byte slots over an array of keys.

    Args:
        keys: A key for each place; 0 for a place that has none. The last place of a key counts.
    """

    __slots__ = ("_keys", "_size", "_slots", "replaced")

    def __init__(self, keys: array[int]) -> None:
        self._keys = keys
        self._size = size = len(keys) * 4 // 3 + 8
        self._slots = slots = array("i", [0]) * size  # 0: free; else place + 1
        self.replaced: list[int] = []
        """Places whose key a later place has too; of one key in rising order."""
        for place, key in enumerate(keys, 1):
            if not key:
                continue
            slot = key % size
            while (held := slots[slot]) and keys[held - 1] != key:
                slot = slot + 1 if slot + 1 < size else 0
            if held:
                self.replaced.append(held - 1)
            slots[slot] = place

    def find(self, key: int, default: int) -> int:
        """Return the last place of a key, the default where it has none."""
        if not key:
            return default
        size = self._size
        slot = key % size
        while held := self._slots[slot]:
            if self._keys[held - 1] == key:
                return held - 1
            slot = slot + 1 if slot + 1 < size else 0
        return default


class Links:
    """The nodes of a log in arrays, some 40 bytes for each: a log may have millions of lines.

    Ids are kept as keys, see ``key_of``. ``group`` holds what a line belongs to: an assistant line to
    an API message, another line to the assistant line whose call it answers, where that is stated.
    """

    def __init__(self) -> None:
        self.line = array("I")
        self.kind = bytearray()
        self.uuid = array("q")
        self.parent = array("q")
        self.group = array("q")
        self.tools = array("q")
        self.first_tool = array("I", [0])
        self.is_queued: set[int] = set()
        self.compactions: dict[int, Compaction] = {}

    def __len__(self) -> int:
        return len(self.kind)

    def extend(self, rows: Iterable[tuple[int, int, int, int, int, int]]) -> None:
        """Add nodes.

        Args:
            rows: For each its 1-based line; its kind (``LINK``, ``USER``, ``ASSISTANT``,
                ``SYSTEM``); the key of its id; that of its parent's, ``NO_PARENT`` for a root, 0
                where the line does not say; that of what it belongs to; and how many tools there
                are up to its own: keys of the calls that it makes or answers.
        """
        columns = self.line, self.kind, self.uuid, self.parent, self.group
        for held, column in zip((*columns, self.first_tool), zip(*rows, strict=True), strict=False):
            held.extend(column)

    def tools_of(self, at: int) -> array[int]:
        """Return the keys of the calls a node makes or answers."""
        return self.tools[self.first_tool[at] : self.first_tool[at + 1]]

    def message_of(self, at: int) -> int:
        """Return the key of the API message a node belongs to; 0 for none."""
        return self.group[at] if self.kind[at] == ASSISTANT else 0

    def owner_of(self, at: int) -> int:
        """Return the key of the assistant line whose call a node answers; 0 where not stated."""
        return 0 if self.kind[at] == ASSISTANT else self.group[at]

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
        group = key_of(node.message_id if node.kind == "assistant" else node.owner)
        rows.append(
            (node.line, CODES[node.kind], key_of(node.uuid), parent, group, len(links.tools))
        )
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
        self._heirs: dict[int, int] = {}
        self._gone = b""
        self.repeated = bytearray(len(links))
        for at in self._index.replaced:
            report.add(
                "duplicate-uuid", "a later line has the same uuid and replaces this one",
                links.line[at], "warning",
            )  # fmt: skip
            self.repeated[at] = 1
        self._follow(self._stated())

    def without(self, links: Links, gone: bytes, new: Iterable[tuple[int, int]]) -> Parents:
        """Return the parents in the log that is left when some nodes go and others follow new ones.

        Where a key leads is known already: to the last place that has it and stays.

        Args:
            links: The nodes: each in its place, what does not count of those that go is left out.
            gone: 1 for each node that goes.
            new: Nodes that name another parent now, and its key.
        """
        left = Parents.__new__(Parents)
        left.links, left._index, left._gone = links, self._index, gone
        replaced = [at for at in self._index.replaced if not gone[at]]
        left._heirs = {
            links.uuid[at]: at for at in replaced if gone[self.find(links.uuid[at])]
        }  # of one key the last one stays
        left.repeated = bytearray(len(links))
        for at in replaced:
            left.repeated[at] = left.find(links.uuid[at]) != at
        left._follow(left._stated_after(self.stated, new))
        return left

    def _follow(self, stated: array[int]) -> None:
        self.stated = stated
        self.followed = self._followed()
        self.parent = self._joined()
        self._speaker = array("i")

    def find(self, uuid: int) -> int:
        """Return the place of a uuid's key, ROOT where no line has it."""
        at = self._index.find(uuid, ROOT)
        return self._heirs.get(uuid, ROOT) if self._gone and at >= 0 and self._gone[at] else at

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
        above = self.find(parent) if parent else UNSTATED
        return GAP if above in (ROOT, at) else above

    def _stated_after(self, before: array[int], new: Iterable[tuple[int, int]]) -> array[int]:
        """Return the parents that nodes name, of what they were before nodes went."""
        gone, stated, heirs = self._gone, before[:], self._heirs
        for at, (is_gone, above) in enumerate(zip(gone, before, strict=True)):
            if is_gone:
                stated[at] = UNSTATED
            elif above >= 0 and gone[above]:
                stated[at] = self._place_of(self.links.uuid[above], at) if heirs else GAP
        for at, key in new:
            stated[at] = self._place_of(key, at)
        return stated

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
