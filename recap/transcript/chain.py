"""The conversation of a Claude Code log: which lines belong to it, and in which order.

The lines are a graph of parents. The live context is the walk from the last leaf to the root or to
the compaction at which it stops, with what hangs beside that walk and yet belongs to it: results of
its calls, further lines of its messages, messages a compaction preserved. What is left out (rewound
turns, islands) is reported. The rules are the client's own, as observed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from recap.transcript.links import GAP, ROOT, Node, Parents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recap.transcript.lines import Report


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
    return _Walk(Parents(nodes, report), report).run()


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

    def __init__(self, parents: Parents, report: Report) -> None:
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
        repeated = self.parents.repeated
        spoken = [at for at, node in enumerate(self.nodes) if node.is_spoken and at not in repeated]
        leaves = (at for at in reversed(spoken) if at not in self.parents.followed)
        return next(leaves, spoken[-1] if spoken else ROOT)

    def _up(self, at: int) -> tuple[list[int], int]:
        """Return the walk from a node to its root, in chain order, and the boundary it stops at."""
        path: list[int] = []
        seen: set[int] = set()
        below = at
        while at >= 0 and at not in seen:
            seen.add(at)
            fold = self._fold_at(at, below)
            if fold and (at == fold.anchor or fold.anchor not in seen):
                size = len(fold.segment) if at == fold.anchor else fold.segment.index(at) + 1
                led = fold.segment[:size][::-1]
                path.extend(each for each in led if each == at or each not in seen)
                seen.update(led)
                at = fold.anchor
                seen.add(at)
            path.append(at)
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

    def __init__(self, parents: Parents, place: dict[int, _Place]) -> None:
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
