"""What a compaction returns: the messages, the selection behind them, and the numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from recap.transcript.tree import to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.blocks.table import BlockTable
    from recap.economics import CostVerdict
    from recap.graph.state import ContextGraph
    from recap.policy import Action
    from recap.select.render import Rendering
    from recap.select.selection import Selection
    from recap.session.known import Known
    from recap.transcript.model import Finding, Json


class _RequestForm(NamedTuple):
    """How a request holds its system text, and its messages."""

    head: bytes
    key: bytes


NOT_OBSERVED = "turns-not-observed"
"""Note: turns of the history that the graph has not seen yet."""

REQUESTS: Mapping[str, _RequestForm] = {
    "anthropic": _RequestForm(b'{"system": [%b]', b'"messages": %b'),
    "responses": _RequestForm(b'{"instructions": %b', b'"input": %b'),
    "gemini": _RequestForm(b'{"systemInstruction": {"parts": [%b]}', b'"contents": %b'),
}
"""Dialect -> its request; any other dialect with system text beside the list as Anthropic's."""


@dataclass(frozen=True, slots=True)
class Report:
    """A compaction in numbers.

    Attributes:
        policy: Recipe used.
        dialect: Dialect of the result; it passed that dialect's check.
        history_chars: c(V), characters of the live history's blocks.
        budget_chars: B.
        protected_chars: cost(P).
        protected_share: cost(P) / B; 0 when B is 0 and nothing is protected.
        over_budget: True when P alone exceeds B.
        kept_chars: Characters of kept blocks.
        fixed_chars: System and injected root text, always kept, outside the budget.
        current_chars: The request and the current turn, untouched, outside the budget.
        marker_chars: Omission markers, outside the budget.
        markers: Their number.
        blocks: Blocks of the history.
        kept_blocks: Of these kept.
        expanded_blocks: Of these pulled in by a support edge.
        revived_blocks: Of these from before a native compaction.
        is_effective: True when the result is smaller than the input.
        excluded: Parts that no provider accepts, by reason.
        notes: Further changes, by kind.
        findings: What the reader could not use or found odd, by code (``Transcript.findings``).
        over_limit: Codes of the vendor's size limits that the result exceeds; it cannot be sent as
            it is, and what exceeds them is protected or belongs to the current turn.
        turn_key: Key of the turn the selection holds for, "" without a real user message.
        action: What was done: ``select`` anew, ``extend`` the last kept set, ``reuse`` the one of
            this turn, or ``pass`` everything.
        reason: Why, see ``recap.policy``; "" where no policy was asked.
    """

    policy: str
    dialect: str
    history_chars: int
    budget_chars: int
    protected_chars: int
    protected_share: float
    over_budget: bool
    kept_chars: int
    fixed_chars: int
    current_chars: int
    marker_chars: int
    markers: int
    blocks: int
    kept_blocks: int
    expanded_blocks: int
    revived_blocks: int
    is_effective: bool
    excluded: Mapping[str, int]
    notes: Mapping[str, int]
    findings: Mapping[str, int]
    turn_key: str
    over_limit: tuple[str, ...] = ()
    action: Action = "select"
    reason: str = ""

    @property
    def turns_not_observed(self) -> int:
        """Turns of the history that the graph has not seen yet."""
        return self.notes.get(NOT_OBSERVED, 0)

    @property
    def prompt_chars(self) -> int:
        """Characters of the whole result, what lies outside the budget included."""
        return self.kept_chars + self.fixed_chars + self.current_chars + self.marker_chars


@dataclass(frozen=True, slots=True, eq=False)
class Compaction:
    """A compacted context with everything that explains it.

    Attributes:
        messages: The vendor's message list; a Python caller's kept messages are the same objects.
        system: System text for a dialect that carries it beside the list: blocks for Anthropic and
            OpenCode, parts for Gemini, the ``instructions`` for Responses.
        selection: Which blocks, and why.
        report: The numbers.
        known: What is known of the session, these messages included.
        rendering: The result before decoding, with the original bytes.
        verdict: What it costs now and saves later; None for a call outside a session.
    """

    messages: list[Json]
    system: list[Json]
    selection: Selection
    report: Report
    known: Known
    rendering: Rendering
    verdict: CostVerdict | None = None

    @property
    def table(self) -> BlockTable:
        """The history's blocks."""
        return self.known.table

    @property
    def graph(self) -> ContextGraph:
        """The graph the selection used."""
        return self.known.graph

    def to_json(self) -> bytes:
        """Return the result as a JSON array, one message a line, kept parts byte for byte.

        With system blocks: an object as the vendor's request holds them, Anthropic's for example
        with ``system`` and ``messages``.
        """
        trees = self.rendering.messages
        if len(trees) != len(self.messages):  # joined for strict alternation
            trees = tuple(self.messages)
        array = b"[\n" + b",\n".join(to_bytes(tree) for tree in trees) + b"\n]"
        if not self.rendering.system:
            return array + b"\n"
        keys = REQUESTS.get(self.report.dialect, REQUESTS["anthropic"])
        system = b", ".join(to_bytes(tree) for tree in self.rendering.system)
        return keys.head % system + b",\n" + keys.key % array + b"}\n"


def report_of(
    known: Known,
    selection: Selection,
    rendering: Rendering,
    findings: Sequence[Finding],
    dialect: str,
    over_limit: tuple[str, ...],
) -> Report:
    """Return the numbers of a compaction."""
    unseen = Counter({NOT_OBSERVED: known.turns_not_observed})
    messages, whole, table = known.moment.messages, known.whole, known.table
    kept = selection.is_kept
    excluded = Counter(exclusion.reason for exclusion in whole.excluded)
    budget = selection.budget_chars
    protected = selection.protected_chars
    dropped_active = bool((table.is_active & ~kept).any())
    return Report(
        policy=selection.policy,
        dialect=dialect,
        history_chars=selection.active_chars,
        budget_chars=budget,
        protected_chars=protected,
        protected_share=protected / budget if budget else float(protected > 0),
        over_budget=protected > budget,
        kept_chars=selection.cost_chars,
        fixed_chars=sum(messages[r.message].parts[r.part].cost_chars for r in whole.fixed),
        current_chars=sum(block.cost_chars for block in whole.blocks[len(table) :]),
        marker_chars=rendering.marker_chars,
        markers=rendering.markers,
        blocks=len(table),
        kept_blocks=int(kept.sum()),
        expanded_blocks=selection.count("expanded"),
        revived_blocks=int((kept & ~table.is_active).sum()),
        is_effective=dropped_active and selection.cost_chars < selection.active_chars,
        excluded=dict(sorted(excluded.items())),
        notes=dict(sorted((known.notes + rendering.notes + unseen).items())),
        findings=dict(sorted(Counter(finding.code for finding in findings).items())),
        turn_key=known.moment.turn_key,
        over_limit=over_limit,
    )
