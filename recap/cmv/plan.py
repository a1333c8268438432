"""Second step: which lines stay, which parents change, and what may go of the lines that stay."""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import chain, zip_longest
from operator import mul
from typing import TYPE_CHECKING, Final

from recap.cmv.contents import (
    ASSISTANT,
    LONG,
    META,
    NO_MESSAGE,
    PROGRESS,
    RESULT,
    SIDE,
    SOLID,
    THINKING,
    USER,
    WORDS,
)  # fmt: skip
from recap.cmv.index import HISTORY, LANE, NULL, QUEUE, STATE
from recap.cmv.pairs import Pairs
from recap.errors import InputError, InvalidContextError
from recap.transcript.chain import chain_along, chain_of
from recap.transcript.lines import Report
from recap.transcript.links import GAP, NO_PARENT, ROOT, SYSTEM, UNKNOWN, Links, key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap.cmv.index import Index

ACTIVE: Final = 1  # in the live context
DROPPED: Final = 2
WINDOW: Final = 4  # nothing that is sent changes in it
OPEN: Final = 8  # of a turn that is not finished: its thinking stays
NAMED: Final = 16  # the line has to stay, whatever it holds
SPARED: Final = 32  # its results stay


class Plan:
    """What is done with each line of a log.

    Attributes:
        index: The log.
        chain: Its conversation.
        state: What is decided of each node: ``ACTIVE`` and so on.
        pairs: The call of each result.
        boundary: Line at which the live context begins, 0 without a compaction.
        counts: Numbers for the report.
        new_parents: The node each kept node follows now, ROOT for none; UNKNOWN where nothing
            changes.
    """

    def __init__(self, index: Index) -> None:
        self.index = index
        self.links = index.links
        self.options = index.options
        self.chain = chain_of(index.links, Report())
        self.parents = self.chain.parents
        self.state = bytearray(len(index.links))
        self.boundary = self.links.line[self.chain.boundary] if self.chain.boundary >= 0 else 0
        self.counts: Counter[str] = Counter()
        self._above = array("i")
        self.new_parents = array("i")
        for at in self.chain.live:
            self.state[at] = ACTIVE
        self._mark_named()
        self._mark_window()
        self._mark_open_turn()
        self._drop_lines()
        self.pairs = Pairs(self)
        self._drop_empty()
        self._drop_beyond()

    def keeps(self, number: int, fate: int) -> bool:
        """Return True when a line stays that is no node; what goes is counted."""
        if fate == NULL:
            self.counts["odd_lines_dropped"] += 1
        elif fate == HISTORY:
            self.counts["file_history_removed"] += 1
        elif fate == QUEUE:
            self.counts["queue_operations_removed"] += 1
        elif number < self.boundary and fate != STATE:
            self.counts["pre_boundary_lines"] += 1
        else:
            return True
        return False

    def loses_thinking(self, at: int) -> bool:
        """Return True when the thinking of a node goes."""
        return not (self.options.keep_thinking or self.state[at] & (WINDOW | OPEN))

    def _find_parents(self) -> None:
        """Give kept nodes whose parent goes the first kept one above it."""
        new = self.new_parents = array("i", [UNKNOWN]) * len(self.state)
        self._above = array("i")
        state, stated = self.state, self.parents.stated
        for at, parent in enumerate(stated):
            if state[at] & DROPPED:
                continue
            above = self._stated(at) if parent == GAP else parent
            if above >= 0 and state[above] & DROPPED:
                next_above = stated[above]
                is_next = next_above >= 0 and not state[next_above] & DROPPED
                new[at] = next_above if is_next else self._kept(above)
        self._above = array("i")

    def key_for(self, at: int, parent: int) -> int:
        """Return the key of its new parent as a node states it."""
        if parent < 0:
            return NO_PARENT
        flags = self.index.flags
        return self.links.uuid[parent] ^ (LANE if (flags[at] ^ flags[parent]) & SIDE else 0)

    def stated_key(self, at: int) -> int:
        """Return the key of the parent that the line of a node states in the log."""
        above = self.parents.stated[at]
        if above >= 0:
            return self.links.uuid[above]
        return self.links.parent[at] if above == GAP else NO_PARENT if above == ROOT else 0

    def _stated(self, at: int) -> int:
        """Return the node whose id a node names, of whatever lane; negative for none.

        Where its parent was never written, that is the one the client takes for it.
        """
        parent = self.parents.stated[at]
        if parent != GAP:
            return parent
        other = self.parents.find(self.links.parent[at] ^ LANE)
        return other if other >= 0 or self.index.flags[at] & SIDE else self.parents.parent[at]

    def _kept(self, at: int) -> int:
        """Return the first kept node from one upwards, ROOT for none."""
        if not self._above:
            self._above = array("i", [GAP]) * len(self.state)
        path = []
        while at >= 0 and self.state[at] & DROPPED:
            if self._above[at] != GAP:
                at = self._above[at]
                break
            self._above[at] = ROOT  # ends a cycle
            path.append(at)
            at = self._stated(at)
        for passed in path:
            self._above[passed] = max(at, ROOT)
        return max(at, ROOT)

    def secure(self) -> None:
        """Make sure that the client takes the same lines in the same order from what is written.

        Where leaving lines out would mislead it, each line of the conversation is made to follow the
        one before it, and what is beside the conversation goes. The index serves no other plan then:
        keys of parents that are known otherwise are let go.

        Raises:
            InputError: Nothing is left that would be sent.
            InvalidContextError: That does not help either.
        """
        if GAP not in self.parents.stated:
            self.links.parent = array("q")
        self._find_parents()
        if self._deviation() is None:
            return
        for at in range(len(self.state)):
            if self.links.is_spoken(at) and not self.state[at] & (ACTIVE | DROPPED):
                self._drop(at, "inactive_lines")
        self._find_parents()
        if self._deviation() is None:
            return
        before = ROOT
        for at in self.chain.live:
            if self.state[at] & DROPPED:
                continue
            above = self.parents.stated[at]
            is_root = before < 0 and above < 0 and above != GAP
            self.new_parents[at] = UNKNOWN if above == before or is_root else before
            before = at if self.links.uuid[at] else before
        line = self._deviation()
        if line is not None:
            raise InvalidContextError(
                f"the copy would not hold the same conversation from line {line:,} on; nothing was "
                "written, please report this"
            )

    def _deviation(self) -> int | None:
        """Return the first line that would not be sent as it was; None for none."""
        live, line, state, flags = self.chain.live, self.links.line, self.state, self.index.flags
        for at in live:
            if state[at] & DROPPED and flags[at] & WORDS:
                return line[at]
        before = (at for at in _sent(self.links, live) if not state[at] & DROPPED)
        first = next(before, None)
        if first is None:
            raise InputError(f"{self.index.source.name}: holds nothing that a client would send")
        links = self._links_after()
        new = (
            (at, self.key_for(at, parent))
            for at, parent in enumerate(self.new_parents)
            if parent != UNKNOWN
        )
        parents = self.parents.without(links, bytes(state.translate(_IS_GONE)), new)
        after = _sent(links, chain_along(parents, Report()).live)
        pairs = zip_longest(chain((first,), before), after, fillvalue=ROOT)
        return next((line[max(at, 0)] for at, other in pairs if at != other), None)

    def _mark_named(self) -> None:
        """Mark what the compaction names, and thinking from which lines of its message fork."""
        compaction = self.links.compactions.get(self.chain.boundary)
        if compaction:
            self.state[self.chain.boundary] |= NAMED
            for uuid in (
                compaction.anchor,
                compaction.head,
                compaction.tail,
                *compaction.preserved,
            ):
                at = self.parents.find(key_of(uuid))
                if at >= 0:
                    self.state[at] |= NAMED
        flags, message, parents = self.index.flags, self.links.message_of, self.parents.parent
        first: dict[int, int] = {}
        for at in self.chain.live:
            above = parents[at]
            if above < 0 or not flags[above] & THINKING:
                continue
            if message(above) == message(at) != 0 and first.setdefault(above, at) != at:
                self.state[above] |= NAMED

    def _mark_window(self) -> None:
        """Mark the newest entries, and what stands among them."""
        left = self.options.keep_last
        for at in reversed(self.chain.live):
            if not left:
                break
            self.state[at] |= WINDOW
            left -= self.links.is_spoken(at)

    def _mark_open_turn(self) -> None:
        """Mark the last turn when no text of the assistant closes it."""
        live, flags = self.chain.live, self.index.flags
        last = next((at for at in reversed(live) if self.links.is_spoken(at)), ROOT)
        has_calls = last >= 0 and bool(self.links.tools_of(last))
        if last < 0 or (flags[last] & ASSISTANT and flags[last] & SOLID and not has_calls):
            return
        for at in reversed(live):
            if flags[at] & USER and not flags[at] & (RESULT | META) and at != last:
                break
            self.state[at] |= OPEN

    def _drop_lines(self) -> None:
        """Drop what goes whatever else happens."""
        state, line, links = self.state, self.links.line, self.links
        for at, flags in enumerate(self.index.flags):
            if flags & PROGRESS:
                self._drop(at, "progress_removed")
            elif flags & NO_MESSAGE:
                self._drop(at, "odd_lines_dropped")
            elif state[at] & ACTIVE:
                if line[at] < self.boundary and links.is_spoken(at):
                    self.counts["preserved_messages"] += 1
            elif line[at] < self.boundary:
                self._drop(at, "pre_boundary_lines")
            elif self.options.drop_inactive:
                self._drop(at, "inactive_lines")

    def _drop(self, at: int, reason: str) -> None:
        self.state[at] |= DROPPED
        self.counts[reason] += 1

    def _drop_empty(self) -> None:
        """Drop the lines of which nothing is left."""
        state, pairs = self.state, self.pairs
        for at, flags in enumerate(self.index.flags):
            if flags & SOLID or not flags & (USER | ASSISTANT) or state[at] & DROPPED:
                continue
            if flags & THINKING and not self.loses_thinking(at):
                continue
            if flags & RESULT and pairs.has_pair(at):
                continue
            if state[at] & NAMED:
                state[at] |= OPEN
                pairs.spare(at)
            else:
                self._drop(at, "empty_lines_removed")

    def _drop_beyond(self) -> None:
        """Drop what would be taken for the last line of the conversation, and earlier copies of it.

        Of lines with one id the client takes the last; where that goes, the others go too.
        """
        live, links = self.chain.live, self.links
        kept = (at for at in reversed(live) if links.is_spoken(at) and not self.state[at] & DROPPED)
        last = next(kept, ROOT)
        for at in range(last + 1, len(self.state)) if last >= 0 else ():
            if links.is_spoken(at) and not self.state[at] & (ACTIVE | DROPPED):
                self._drop(at, "inactive_lines")
        for at, is_repeated in enumerate(self.parents.repeated):
            if is_repeated and not self.state[at] & DROPPED:
                later = self.parents.find(links.uuid[at])
                if self.state[later] & DROPPED:
                    self._drop(at, "inactive_lines")

    def spare_results(self, importance: dict[int, float] | None, target: float) -> None:
        """Spare the results that matter most once the others bring the wanted reduction.

        Ours: results go in ascending importance per character, larger ones first among equals.

        Args:
            importance: Of each node that holds results.
            target: Share of the active characters that is to go.
        """
        cost, state = self.index.cost, self.state
        known = importance or {}
        total = sum(cost[at] for at in self.chain.live)
        gone = sum(cost[at] for at in self.chain.live if state[at] & DROPPED)
        candidates = [
            at for at in self.chain.live
            if self.index.flags[at] & LONG and not state[at] & (WINDOW | DROPPED)
        ]  # fmt: skip
        candidates.sort(key=lambda at: (known.get(at, 0.0) / max(1, cost[at]), -cost[at], at))
        for at in candidates:
            if gone >= target * total:
                state[at] |= SPARED
            else:
                gone += max(0, cost[at] - STUB_CHARS)

    def _links_after(self) -> Links:
        """Return the links of the log as it is to be written, less those between nodes.

        Nodes that go stay in their places as links that nobody sends. What does not change is shared.
        """
        links, after = self.links, Links()
        kept = self.state.translate(_IS_KEPT)
        after.line, after.uuid, after.group = links.line, links.uuid, links.group
        after.kind = bytearray(map(mul, links.kind, kept))
        if self.pairs.has_orphans:
            for at in range(len(kept)):
                after.tools.extend(self.pairs.kept_tools(at))
                after.first_tool.append(len(after.tools))
        else:
            after.tools, after.first_tool = links.tools, links.first_tool
        after.is_queued.update(at for at in links.is_queued if kept[at])
        after.compactions.update((at, held) for at, held in links.compactions.items() if kept[at])
        return after


def _sent(links: Links, nodes: Sequence[int]) -> Iterator[int]:
    """Return those of the nodes that a client sends."""
    kinds, queued = links.kind, links.is_queued
    return (at for at in nodes if 0 < kinds[at] < SYSTEM or at in queued)


_IS_KEPT = bytes(not state & DROPPED for state in range(256))
_IS_GONE = bytes(bool(state & DROPPED) for state in range(256))


STUB_CHARS = 150
"""Characters a stub is taken to have when results are chosen."""
