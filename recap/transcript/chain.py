"""The conversation of a Claude Code log: which lines belong to it, and in which order.

The lines are a graph of parents. The live context is the walk from the last leaf to the root or to
the compaction at which it stops, with what hangs beside that walk and yet belongs to it: results of
its calls, further lines of its messages, messages a compaction preserved. What is left out (rewound
turns, islands) is reported. The rules are the client's own, as observed. The reader and the trimmer
share them, so they work on arrays: a log may have millions of lines.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from recap.errors import counted
from recap.transcript.links import ASSISTANT, GAP, ROOT, Links, Parents, key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recap.transcript.lines import Report

MOST_WALKS = 250
"""Native compactions up to which the number of a walk takes one byte."""

REPLACED, LIVE = 1, 2
"""Where a node stands: before the live context, or in it."""


class Chain(NamedTuple):
    """Places of the nodes that belong to the session.

    Attributes:
        replaced: Those from before a native compaction, in file order.
        live: Those of the live context, in chain order.
        boundary: The native compaction at which the live context begins, ROOT without one.
        parents: The parents the walk followed.
    """

    replaced: Sequence[int]
    live: Sequence[int]
    boundary: int
    parents: Parents


def chain_of(links: Links, report: Report) -> Chain:
    """Return the session's nodes; what is odd or left out is reported."""
    return chain_along(Parents(links, report), report)


def chain_along(parents: Parents, report: Report) -> Chain:
    """Return the nodes of a session whose parents are known; what is left out is reported."""
    return _Walk(parents, report).run()


class _Fold(NamedTuple):
    """Preserved messages of a compaction: they follow the anchor and lead to the rest."""

    boundary: int
    anchor: int
    segment: list[int]


class _Walk:
    """State of finding one session's chain."""

    def __init__(self, parents: Parents, report: Report) -> None:
        self.parents = parents
        self.links = parents.links
        self.report = report
        self.by_anchor: dict[int, _Fold] = {}
        self.by_member: dict[int, list[_Fold]] = {}
        for at in self.links.compactions:
            self._add_fold(at)
        size = len(self.links)
        self.walks = 0
        many = len(self.links.compactions) > MOST_WALKS
        self.walked = (
            array("i" if many else "B", [0]) * size
        )  # number of the walk that came by last
        self.side = bytearray(size)  # 0, REPLACED or LIVE
        self.tops: dict[int, int] = {}

    def run(self) -> Chain:
        leaf = self._leaf()
        if leaf < 0:
            return Chain((), (), ROOT, self.parents)
        live, boundary = self._up(leaf)
        for at in self._replaced(boundary):
            self.side[at] = REPLACED
        self.walked = array("B")  # there are no more walks
        side = self.side
        for at in live:
            side[at] = LIVE
        beside = _Beside(self.parents, side, live)
        added = [at for at in beside.add() if side[at] == LIVE]
        self._report_rest()
        replaced = array("i", (at for at, each in enumerate(side) if each == REPLACED))
        merged = self._merged(live, added, beside.order) if added else live
        return Chain(replaced, merged, boundary, self.parents)

    def _merged(self, live: array[int], beside: list[int], order: array[int]) -> array[int]:
        """Return the walk with the nodes beside it, each behind the one it goes along with."""
        merged = array("i")
        begin = 0
        for at in sorted(beside, key=lambda at: (order[at], self.links.line[at])):
            end = order[at] + 1
            merged.extend(live[begin:end])
            merged.append(at)
            begin = max(begin, end)
        merged.extend(live[begin:])
        return merged

    def _leaf(self) -> int:
        """Return the last line of the conversation in file order that nothing follows."""
        last = ROOT
        for at in reversed(range(len(self.links))):
            if self.links.is_spoken(at) and not self.parents.repeated[at]:
                if not self.parents.followed[at]:
                    return at
                last = max(last, at)
        return last

    def _up(self, at: int) -> tuple[array[int], int]:
        """Return the walk from a node to its root, in chain order, and the boundary it stops at."""
        path = array("i")
        add = path.append
        self.walks = walk = self.walks + 1
        seen, compactions, parent = self.walked, self.links.compactions, self.parents.parent
        stated, has_folds = self.parents.stated, bool(self.by_anchor)
        below = at
        while at >= 0 and seen[at] != walk:
            seen[at] = walk
            fold = self._fold_at(at, below) if has_folds else None
            if fold and (at == fold.anchor or seen[fold.anchor] != walk):
                at = self._through(fold, at, path)
            add(at)
            if compactions and at in compactions:
                path.reverse()
                return path, at
            below, at = at, parent[at]
            if stated[below] == GAP:
                self._report_gap(below)
        path.reverse()
        return path, ROOT

    def _through(self, fold: _Fold, at: int, path: array[int]) -> int:
        """Add what a compaction preserved up to a node, the node apart; return its anchor."""
        seen, walk = self.walked, self.walks
        size = len(fold.segment) if at == fold.anchor else fold.segment.index(at) + 1
        led = fold.segment[:size][::-1]
        path.extend(each for each in led if each == at or seen[each] != walk)
        for each in (*led, fold.anchor):
            seen[each] = walk
        return fold.anchor

    def _fold_at(self, at: int, below: int) -> _Fold | None:
        """Return the compaction whose preserved messages a step up from ``below`` leads into."""
        later = [fold for fold in self.by_member.get(at, ()) if fold.boundary < below]
        return later[-1] if later else self.by_anchor.get(at)

    def _report_gap(self, at: int) -> None:
        joined = self.parents.parent[at] >= 0
        detail = (
            "the lines just before it are taken for it" if joined else "the context begins here"
        )
        detail = f"its parent is not in the log; {detail}"
        self.report.add("gap", detail, self.links.line[at], "warning" if joined else "note")

    def _replaced(self, boundary: int) -> Iterator[int]:
        """Yield the nodes of the contexts that native compactions replaced, the newest first."""
        seen = set()
        while boundary >= 0 and boundary not in seen:
            seen.add(boundary)
            self.report.counts["compactions"] += 1
            end = self._find(self.links.compactions[boundary].logical_parent)
            if end < 0:
                end = self.parents.before(boundary)
            path, boundary = self._up(end)
            yield from path

    def _find(self, uuid: str) -> int:
        return self.parents.find(key_of(uuid))

    def _add_fold(self, boundary: int) -> None:
        compaction = self.links.compactions[boundary]
        if not (compaction.anchor or compaction.tail):
            return
        anchor = self._find(compaction.anchor)
        listed = map(self._find, compaction.preserved)
        segment = [at for at in listed if at >= 0]
        if not segment:
            segment = self._segment(self._find(compaction.head), self._find(compaction.tail))
        if anchor < 0 or not segment or anchor in segment:
            detail = "its preserved messages are not in the log as it describes them"
            self.report.add("preserved", detail, self.links.line[boundary], "warning")
            return
        fold = self.by_anchor[anchor] = _Fold(boundary, anchor, segment)
        for at in segment:
            self.by_member.setdefault(at, []).append(fold)

    def _segment(self, head: int, tail: int) -> list[int]:
        """Return the nodes from head to tail; none when the tail's chain misses the head."""
        path: list[int] = []
        at = ROOT if head < 0 else tail
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
        branches: dict[int, tuple[int, int, int]] = {}
        for at, side in enumerate(self.side):
            if not side and self.links.is_spoken(at) and not self.parents.repeated[at]:
                root, line = self._branch(at), self.links.line[at]
                count, first, last = branches.get(root, (0, line, line))
                branches[root] = count + 1, min(first, line), max(last, line)
        for root, (count, first, last) in branches.items():
            span = f"{counted(count, 'line')} ({first} to {last})"
            if self.parents.speaker(root) >= 0:
                self.report.counts["rewound_lines"] += count
                detail = f"{span} of a branch that was left, a rewound turn for example"
                self.report.add("rewound", detail, first, "note")
            else:
                self.report.counts["island_lines"] += count
                detail = f"{span} are not proven to belong to the conversation and are left out"
                self.report.add("island", detail, first, "warning")

    def _branch(self, at: int) -> int:
        """Return the topmost node of the branch or island a left-out node belongs to."""
        path = []
        while at not in self.tops:
            path.append(at)
            self.tops[at] = at  # ends a cycle
            above = self.parents.speaker(at)
            if above < 0 or self.side[above]:
                break
            at = above
        self.tops.update(dict.fromkeys(path, self.tops[at]))
        return self.tops[at]


class _Beside:
    """Nodes that hang beside the walk and yet belong to it.

    Attributes:
        order: Where each node of the live context stands in it; empty where none may hang beside it.
    """

    def __init__(self, parents: Parents, side: bytearray, live: array[int]) -> None:
        self.parents = parents
        self.links = parents.links
        self.side = side
        self.live = live
        self.order = array("i")
        self.asked: set[int] = set()
        """Calls that results beside the walk answer; only these are looked for."""
        self.makers: dict[int, int] = {}
        self.open: Counter[tuple[int, int]] = Counter()

    def add(self) -> list[int]:
        """Take in the nodes and return them."""
        rest = [at for at, side in enumerate(self.side) if not side and self._may_belong(at)]
        if not rest:
            return rest
        self.order = array("i", [ROOT]) * len(self.side)
        for order, at in enumerate(self.live):
            self.order[at] = order
        for at in rest:
            if self.links.kind[at] != ASSISTANT:
                self.asked.update(self.links.tools_of(at))
        if self.asked:
            self._count_all()
        added = []
        for at in rest:
            owner = self._owner(at)
            if owner >= 0 and self.side[owner]:
                self.side[at], self.order[at] = self.side[owner], self.order[owner]
                self._count(at)
                added.append(at)
        return added

    def _may_belong(self, at: int) -> bool:
        if self.parents.repeated[at]:
            return False
        return self.links.is_spoken(at) or at in self.links.is_queued

    def _count_all(self) -> None:
        for at, kind in enumerate(self.links.kind):
            if kind == ASSISTANT:
                for call in self.asked.intersection(self.links.tools_of(at)):
                    self.makers[call] = at if call not in self.makers else ROOT
        for at, side in enumerate(self.side):
            if side:
                self._count(at)

    def _count(self, at: int) -> None:
        """Keep the number of unanswered calls of each API message."""
        is_maker = self.links.kind[at] == ASSISTANT
        for call in self.links.tools_of(at):
            if call not in self.asked:
                continue
            maker = at if is_maker else self._maker(at, (call,))
            self.open[self._message(maker), call] += 1 if is_maker else -1

    def _message(self, at: int) -> int:
        """Return the key of a node's API message; one of the node alone where it has none."""
        return (self.links.message_of(at) or -2 - at) if at >= 0 else at

    def _owner(self, at: int) -> int:
        """Return the node a node goes along with; ROOT if none."""
        links, above = self.links, self.parents.speaker(at)
        if at in links.is_queued:
            return ROOT if self.parents.followed[at] else above
        if links.kind[at] == ASSISTANT:
            message = links.message_of(at)
            is_same = above >= 0 and message and links.message_of(above) == message
            return above if is_same else ROOT
        results = links.tools_of(at)
        maker = self._maker(at, results)
        message = self._message(maker)
        return maker if any(self.open[message, one] > 0 for one in results) else ROOT

    def _maker(self, at: int, results: Iterable[int]) -> int:
        """Return the assistant line that made the call a result answers; ROOT if unknown."""
        stated = self.parents.find(self.links.owner_of(at))
        for maker in (stated, self.parents.speaker(at)):
            if maker >= 0 and self.links.kind[maker] == ASSISTANT:
                return maker
        return next((self.makers[one] for one in results if one in self.makers), ROOT)
