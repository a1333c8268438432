"""The conversation of a Claude Code log: which lines belong to it, and in which order.

The lines are a graph of parents. The live context is the walk from the last leaf to the root or to
the compaction at which it stops, with what hangs beside that walk and yet belongs to it: results of
its calls, further lines of its messages, messages a compaction preserved. What is left out (rewound
turns, islands) is reported. The rules are the client's own, as observed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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


class Chain(NamedTuple):
    """Indices of the nodes that belong to the session.

    Attributes:
        replaced: Those from before a native compaction, in file order.
        live: Those of the live context, in chain order.
    """

    replaced: list[int]
    live: list[int]


def chain_of(nodes: Sequence[Node], report: Report) -> Chain:
    """Return the session's nodes; what is odd or left out is reported."""
    return _Walk(_Parents(nodes, report), report).run()


class _Parents:
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
            above = self.stated[at] if node.is_spoken else ROOT
            while above >= 0 and above not in followed:
                followed.add(above)
                if self.nodes[above].is_spoken:
                    break
                above = self.stated[above]
        return followed

    def _joined(self) -> Iterator[int]:
        """Yield each node's parent; a missing one is where the session stood just before.

        That is the last line of the conversation ahead of it in the file, if nothing followed it:
        the client falls back to the previous line too.
        """
        last = ROOT
        for at, node in enumerate(self.nodes):
            stated = self.stated[at]
            if stated in (GAP, UNSTATED):
                yield ROOT if last in self.followed else last
            else:
                yield stated
            if node.kind != "link":
                last = at

    def before(self, at: int) -> int:
        """Return the last line of the conversation ahead of a node in the file, or ROOT."""
        while (at := at - 1) >= 0:
            if self.nodes[at].kind != "link":
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


class _Place(NamedTuple):
    """Where a node stands: in the live context or before it, and at what place."""

    is_live: bool
    order: int
    line: int


class _Fold(NamedTuple):
    """Preserved messages of a compaction: they follow the anchor and lead to the rest."""

    boundary: int
    anchor: int
    segment: list[int]


class _Walk:
    """State of finding one session's chain."""

    def __init__(self, parents: _Parents, report: Report) -> None:
        self.parents = parents
        self.nodes = parents.nodes
        self.report = report
        self.by_anchor: dict[int, _Fold] = {}
        self.by_member: dict[int, list[_Fold]] = {}
        for at in range(len(self.nodes)):
            self._add_fold(at)
        self.place: dict[int, _Place] = {}
        self.tops: dict[int, int] = {}

    def run(self) -> Chain:
        leaf = self._leaf()
        if leaf < 0:
            return Chain([], [])
        live, boundary = self._up(leaf)
        for order, at in enumerate(live):
            self.place[at] = _Place(True, order, 0)
        for at in self._replaced(boundary):
            self.place.setdefault(at, _Place(False, at, 0))
        _Beside(self.parents, self.place).add()
        self._report_rest()
        chosen = sorted(self.place, key=self.place.__getitem__)
        return Chain(
            sorted(at for at in chosen if not self.place[at].is_live),
            [at for at in chosen if self.place[at].is_live],
        )

    def _leaf(self) -> int:
        """Return the last line of the conversation in file order that nothing follows."""
        spoken = [at for at, node in enumerate(self.nodes) if node.is_spoken]
        leaves = (at for at in reversed(spoken) if at not in self.parents.followed)
        return next(leaves, spoken[-1] if spoken else ROOT)

    def _up(self, at: int) -> tuple[list[int], int]:
        """Return the walk from a node to its root, in chain order, and the boundary it stops at."""
        path: list[int] = []
        seen: set[int] = set()
        below = at
        while at >= 0 and at not in seen:
            fold = self._fold_at(at, below)
            if fold:
                size = len(fold.segment) if at == fold.anchor else fold.segment.index(at) + 1
                path.extend(fold.segment[:size][::-1])
                at = fold.anchor
            path.append(at)
            seen.add(at)
            if self.nodes[at].compaction:
                return path[::-1], at
            self._report_gap(at)
            below, at = at, self.parents.parent[at]
        return path[::-1], ROOT

    def _fold_at(self, at: int, below: int) -> _Fold | None:
        """Return the compaction whose preserved messages a step up from ``below`` leads into."""
        later = [fold for fold in self.by_member.get(at, ()) if fold.boundary < below]
        return later[-1] if later else self.by_anchor.get(at)

    def _report_gap(self, at: int) -> None:
        if self.parents.stated[at] != GAP:
            return
        joined = self.parents.parent[at] >= 0
        detail = (
            "the lines just before it are taken for it" if joined else "the context begins here"
        )
        detail = f"its parent is not in the log; {detail}"
        self.report.add("gap", detail, self.nodes[at].line, "warning" if joined else "note")

    def _replaced(self, boundary: int) -> Iterator[int]:
        """Yield the nodes of the contexts that native compactions replaced, the newest first."""
        seen = set()
        while boundary >= 0 and boundary not in seen:
            seen.add(boundary)
            self.report.counts["compactions"] += 1
            compaction = self.nodes[boundary].compaction
            stated = compaction.logical_parent if compaction else ""
            end = self.parents.index.get(stated, ROOT)
            if end < 0:
                end = self.parents.before(boundary)
            path, boundary = self._up(end)
            yield from path

    def _add_fold(self, boundary: int) -> None:
        compaction, index = self.nodes[boundary].compaction, self.parents.index
        if compaction is None or not (compaction.anchor or compaction.tail):
            return
        anchor = index.get(compaction.anchor, ROOT)
        segment = [index[uuid] for uuid in compaction.preserved if uuid in index]
        if not segment:
            segment = self._segment(index.get(compaction.head), index.get(compaction.tail))
        if anchor < 0 or not segment or anchor in segment:
            detail = "its preserved messages are not in the log as it describes them"
            self.report.add("preserved", detail, self.nodes[boundary].line, "warning")
            return
        fold = self.by_anchor[anchor] = _Fold(boundary, anchor, segment)
        for at in segment:
            self.by_member.setdefault(at, []).append(fold)

    def _segment(self, head: int | None, tail: int | None) -> list[int]:
        """Return the nodes from head to tail; none when the tail's chain misses the head."""
        path: list[int] = []
        at = ROOT if head is None or tail is None else tail
        seen = set()
        while at >= 0 and at not in seen:
            seen.add(at)
            path.append(at)
            if at == head:
                return path[::-1]
            at = self.parents.parent[at]
        return []

    def _report_rest(self) -> None:
        """Report the lines of the conversation that are left out, one finding for each branch."""
        branches: dict[int, list[int]] = {}
        for at, node in enumerate(self.nodes):
            if node.is_spoken and at not in self.place and at not in self.parents.repeated:
                branches.setdefault(self._branch(at), []).append(node.line)
        for root, lines in branches.items():
            span = f"{len(lines)} lines ({min(lines)} to {max(lines)})"
            if self.parents.speaker(root) >= 0:
                self.report.counts["rewound_lines"] += len(lines)
                detail = f"{span} of a branch that was left, a rewound turn for example"
                self.report.add("rewound", detail, min(lines), "note")
            else:
                self.report.counts["island_lines"] += len(lines)
                detail = f"{span} are not proven to belong to the conversation and are left out"
                self.report.add("island", detail, min(lines), "warning")

    def _branch(self, at: int) -> int:
        """Return the topmost node of the branch or island a left-out node belongs to."""
        path = []
        while at not in self.tops:
            path.append(at)
            self.tops[at] = at  # ends a cycle
            above = self.parents.speaker(at)
            if above < 0 or above in self.place:
                break
            at = above
        self.tops.update(dict.fromkeys(path, self.tops[at]))
        return self.tops[at]


class _Beside:
    """Nodes that hang beside the walk and yet belong to it."""

    def __init__(self, parents: _Parents, place: dict[int, _Place]) -> None:
        self.parents = parents
        self.nodes = parents.nodes
        self.place = place
        self.makers: dict[str, int] = {}
        for at, node in enumerate(self.nodes):
            for call_id in node.call_ids:
                self.makers[call_id] = at if call_id not in self.makers else ROOT
        self.open: Counter[tuple[str | int, str]] = Counter()
        for at in place:
            self._count(at)

    def add(self) -> None:
        for at, node in enumerate(self.nodes):
            if at in self.place or at in self.parents.repeated:
                continue
            owner = self._owner(at, node)
            if owner in self.place:
                is_live, order, _ = self.place[owner]
                self.place[at] = _Place(is_live, order, node.line)
                self._count(at)

    def _count(self, at: int) -> None:
        """Keep the number of unanswered calls of each API message."""
        node = self.nodes[at]
        for call_id in node.call_ids:
            self.open[self._message(at), call_id] += 1
        for call_id in node.result_ids:
            maker = self._maker(at, node, (call_id,))
            self.open[self._message(maker), call_id] -= 1

    def _message(self, at: int) -> str | int:
        return (self.nodes[at].message_id or at) if at >= 0 else at

    def _owner(self, at: int, node: Node) -> int:
        """Return the node a node goes along with; ROOT if none."""
        above = self.parents.speaker(at)
        if node.is_queued:
            return ROOT if at in self.parents.followed else above
        if node.kind == "assistant" and above >= 0 and node.message_id:
            return above if self.nodes[above].message_id == node.message_id else ROOT
        maker = self._maker(at, node, node.result_ids)
        message = self._message(maker)
        return maker if any(self.open[message, one] > 0 for one in node.result_ids) else ROOT

    def _maker(self, at: int, node: Node, result_ids: Iterable[str]) -> int:
        """Return the assistant line that made the call a result answers; ROOT if unknown."""
        stated = self.parents.index.get(node.owner, ROOT)
        for maker in (stated, self.parents.speaker(at)):
            if maker >= 0 and self.nodes[maker].kind == "assistant":
                return maker
        return next((self.makers[one] for one in result_ids if one in self.makers), ROOT)
