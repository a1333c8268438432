"""Which call each result of a log answers: on the live path by position, elsewhere by id."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from recap.cmv.contents import ASSISTANT, USER
from recap.transcript.links import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recap.cmv.plan import Plan

ACTIVE, DROPPED = 1, 2


class Pairs:
    """The call of each result of the lines that are kept.

    Attributes:
        makers: The node of the call for each result, ROOT for an orphan; see ``Links.tools``.
        open_calls: Calls of the live context without a result.
        has_orphans: Some result that is kept otherwise answers no call.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._links = plan.links
        self._flags = plan.index.flags
        self.makers = array("i", [ROOT]) * len(plan.links.tools)
        self._spared: set[int] = set()
        self.has_orphans = False
        self.open_calls = self._pair_live()
        self._pair_others()

    def makers_of(self, at: int) -> array[int]:
        """Return the node of the call for each result of a node, ROOT for an orphan."""
        first = self._links.first_tool
        return self.makers[first[at] : first[at + 1]]

    def has_pair(self, at: int) -> bool:
        """Return True when one of a node's results answers a call."""
        makers = self.makers_of(at)
        return bool(makers) and max(makers) >= 0

    def _pair(self, place: int, at: int, maker: int) -> None:
        """Note the node of the call that a result of a node answers, ROOT for none."""
        self.makers[place] = maker
        if maker < 0 and not self._plan.state[at] & DROPPED:
            self.has_orphans = True

    def has_orphan(self, at: int) -> bool:
        """Return True when a result of a node goes because it answers no call."""
        if not self.has_orphans or at in self._spared:
            return False
        return any(maker < 0 for maker in self.makers_of(at))

    def spare(self, at: int) -> None:
        """Let a node keep its orphans: its line has to stay."""
        self._spared.add(at)

    def is_spared(self, at: int) -> bool:
        """Return True for a node that keeps its orphans."""
        return at in self._spared

    def kept_tools(self, at: int) -> array[int]:
        """Return the keys of the calls a node makes, or still answers."""
        tools = self._links.tools_of(at)
        if not self._flags[at] & USER or not tools or not self.has_orphan(at):
            return tools
        pairs = zip(tools, self.makers_of(at), strict=True)
        return array("q", [tool for tool, maker in pairs if maker >= 0])

    def _pair_live(self) -> int:
        waiting: dict[int, list[int]] = {}
        answered: dict[int, int] | None = None
        first, flags, tools = self._links.first_tool, self._flags, self._links.tools
        makers = self.makers
        for order, at in enumerate(self._plan.chain.live):
            begin, end = first[at], first[at + 1]
            if begin == end:
                continue
            if flags[at] & ASSISTANT:
                for call in tools[begin:end]:
                    waiting.setdefault(call, []).append(at)
                    if answered is not None:
                        answered[call] = at
                continue
            for place in range(begin, end):
                call = tools[place]
                made = waiting.get(call)
                if made:
                    makers[place] = made.pop(0)
                    if not made:
                        del waiting[call]
                    continue
                if answered is None:
                    answered = self._calls_before(order)
                self._pair(place, at, answered.get(call, ROOT))
        return sum(map(len, waiting.values()))

    def _calls_before(self, order: int) -> dict[int, int]:
        """Return the calls made on the live path before a place in it."""
        live = self._plan.chain.live[:order]
        made = (at for at in live if self._flags[at] & ASSISTANT)
        return {call: at for at in made for call in self._links.tools_of(at)}

    def _pair_others(self) -> None:
        """Pair what stands beside the live context with a call before it, else with any."""
        results = [at for at in self._others(USER) if self._links.tools_of(at)]
        if not results:
            return
        wanted = {call for at in results for call in self._links.tools_of(at)}
        made: dict[int, list[int]] = {}
        for at in range(len(self._flags)):
            if self._flags[at] & ASSISTANT and not self._plan.state[at] & DROPPED:
                for call in wanted.intersection(self._links.tools_of(at)):
                    made.setdefault(call, []).append(at)
        for at in results:
            for place, call in enumerate(self._links.tools_of(at), self._links.first_tool[at]):
                makers = made.get(call, [])
                before = [maker for maker in makers[:1] if maker < at]
                self._pair(place, at, (before or makers or [ROOT])[-1])

    def _others(self, role: int) -> Iterator[int]:
        for at, flags in enumerate(self._flags):
            if flags & role and not self._plan.state[at] & (ACTIVE | DROPPED):
                yield at
