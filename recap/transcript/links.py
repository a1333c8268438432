"""Links of a Claude Code log: its lines as nodes, and the parent of each.

A parent that was never written is a gap. It is joined where the log proves enough; the walk over
the links reports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap.transcript.lines import Report

NodeKind = Literal["user", "assistant", "system", "link"]

ROOT, GAP, UNSTATED = -1, -2, -3
"""Places of a parent that is no line: there is none, it was never written, it is not stated."""


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

    @property
    def is_spoken(self) -> bool:
        """True for a line of the conversation."""
        return self.kind in ("user", "assistant")


class Parents:
    """Parents of all nodes, gaps joined where the log proves enough."""

    def __init__(self, nodes: Sequence[Node], report: Report) -> None:
        self.nodes = nodes
        self.index: dict[str, int] = {}
        self.repeated: set[int] = set()
        for at, node in enumerate(nodes):
            if node.uuid in self.index:
                report.add(
                    "duplicate-uuid", "a later line has the same uuid and replaces this one",
                    nodes[self.index[node.uuid]].line, "warning",
                )  # fmt: skip
                self.repeated.add(self.index[node.uuid])
            if node.uuid:
                self.index[node.uuid] = at
        self.stated = [self._stated(at) for at in range(len(nodes))]
        self.followed = self._followed()
        self.parent = list(self._joined())
        self._speaker: list[int | None] = [None] * len(nodes)

    def _stated(self, at: int) -> int:
        parent = self.nodes[at].parent
        if parent is None:
            return ROOT
        found = self.index.get(parent, GAP if parent else UNSTATED)
        return GAP if found == at else found

    def _followed(self) -> set[int]:
        """Return the nodes from which the conversation went on."""
        followed: set[int] = set()
        for at, node in enumerate(self.nodes):
            is_there = node.is_spoken and at not in self.repeated
            above = self.stated[at] if is_there else ROOT
            while above >= 0 and above not in followed:
                followed.add(above)
                if self.nodes[above].is_spoken:
                    break
                above = self.stated[above]
        return followed

    def _joined(self) -> Iterator[int]:
        """Yield each node's parent; a missing one is where the session stood just before.

        That is the last line of the conversation ahead of it in the file, if nothing followed it:
        the client falls back to the previous line too. A line that a later one of the same uuid
        replaces is none: its text comes with the later one.
        """
        last = ROOT
        for at, node in enumerate(self.nodes):
            stated = self.stated[at]
            if stated in (GAP, UNSTATED):
                yield ROOT if last in self.followed else last
            else:
                yield stated
            if node.kind != "link" and at not in self.repeated:
                last = at

    def before(self, at: int) -> int:
        """Return the last line of the conversation ahead of a node in the file, or ROOT."""
        while (at := at - 1) >= 0:
            if self.nodes[at].kind != "link" and at not in self.repeated:
                break
        return at

    def speaker(self, at: int) -> int:
        """Return the nearest line of the conversation above a node, or ROOT."""
        path = []
        found = self._speaker[at]
        while found is None:
            path.append(at)
            self._speaker[at] = ROOT  # ends a cycle
            at = self.parent[at]
            found = at if at < 0 or self.nodes[at].is_spoken else self._speaker[at]
        for passed in path:
            self._speaker[passed] = found
        return found
