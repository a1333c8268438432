"""The paper's ablations: paragraphs or lines instead of blocks, fenced code kept in one.

The history beside P is cut into units that tile its texts; a call is one unit. Units are ranked and
packed like blocks by a recipe of ``recap.select``, over an index of their own, and take importance and
marks from the block they come from. There is no expansion, since support edges join whole blocks:
compare with the recipe at ``expansion=0``. Thinking and images are no units and are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.baselines.chat import SILENT_KINDS
from recap.baselines.method import Context, Local, Piece, option, verbatim
from recap.blocks.pairing import PartRef
from recap.blocks.segment import Segmentation
from recap.blocks.table import build_table
from recap.errors import UsageError, shown
from recap.graph.codec import encode
from recap.graph.state import AlignedGraph, align
from recap.select.pack import Room
from recap.select.policies import recipe_of
from recap.select.relevance import known_terms, relevance
from recap.select.score import Evidence
from recap.transcript.model import Envelope, Held, Message
from recap.transcript.parts import text_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from recap.baselines.method import Task
    from recap.blocks.segment import Block
    from recap.blocks.table import BlockTable, BoolArray, IntArray
    from recap.graph.state import ContextGraph
    from recap.transcript.model import Role

CALL_KINDS = frozenset(("call", "other"))
"""Parts that are one unit: their text is no part of the JSON that they cost."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


class Unit(NamedTuple):
    """A piece of a block that is kept or left out as a whole.

    Attributes:
        block: Block it comes from.
        part: Which of the block's parts; -1 for a whole block of P.
        text: Its text, with the line ends that follow it.
        cost_chars: What it costs.
    """

    block: int
    part: int
    text: str
    cost_chars: int


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text with the blank lines that follow each; they tile the text."""
    return _tiles(text, by_line=False)


def lines(text: str) -> list[str]:
    """Return the lines of a text with the blank lines that follow each; they tile the text."""
    return _tiles(text, by_line=True)


CUTTERS: dict[str, Callable[[str], list[str]]] = {"paragraphs": paragraphs, "lines": lines}


@dataclass(frozen=True, slots=True)
class FinerBlocks(Local):
    """A recipe over finer blocks."""

    unit: str = option("paragraphs", "what a block is cut into: paragraphs or lines")
    policy: str = option("coverage", "recipe whose ranking and packer it has")

    def __post_init__(self) -> None:
        if self.unit not in CUTTERS:
            raise UsageError(f"unit must be one of {', '.join(CUTTERS)}; got {shown(self.unit)}")
        recipe_of(self.policy)

    @property
    def name(self) -> str:
        """What the user calls it."""
        return f"{self.policy}-{self.unit}"

    @property
    def help(self) -> str:
        """One line for the user."""
        return f"{self.policy} over {self.unit} instead of blocks, fenced code in one (ReCAP, ablation)"

    def shorten(self, task: Task) -> Context:
        """Return P and the units that the recipe packs beside it."""
        recipe = recipe_of(self.policy)
        units = list(_units_of(task, CUTTERS[self.unit]))
        if not units:
            return Context((), frozenset(), 0)
        table = _table(task, units)
        parent = np.array([unit.block for unit in units])
        terms = known_terms(recipe.terms(task.request), table.index)
        evidence = Evidence(
            table=table,
            graph=_aligned(task.graph if recipe.uses_graph else None, task.table.ids, parent),
            terms=terms,
            relevance=relevance(table.index, terms),
            seed=task.seed,
            settings=task.settings,
        )
        is_kept = task.is_protected[parent]
        room = Room(is_kept, np.flatnonzero(~is_kept), task.budget_chars - task.protected_chars)
        for _, chosen in recipe.pack(evidence, recipe.rank(evidence), room).kept:
            is_kept[chosen] = True
        memory = len(encode(task.graph)) if recipe.uses_graph else 0
        return replace(_context(task, units, is_kept), memory_bytes=memory)


def _tiles(text: str, *, by_line: bool) -> list[str]:
    """Return the text cut before lines with words that do not stand inside fenced code.

    By paragraph, such a line has to follow a blank one or the end of fenced code.
    """
    tiles: list[list[str]] = []
    has_words, fence, before = False, "", ""
    for line in text.splitlines(keepends=True):
        is_blank = not line.strip()
        is_cut = has_words and not fence and not is_blank and (by_line or not before.strip())
        if is_cut or not tiles:
            tiles.append([])
            has_words = False
        tiles[-1].append(line)
        has_words = has_words or not is_blank
        before = line
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = before = ""
    return ["".join(tile) for tile in tiles]


def _units_of(task: Task, cut: Callable[[str], list[str]]) -> Iterator[Unit]:
    for block, cost in enumerate(task.table.cost_chars.tolist()):
        if task.is_protected[block]:
            yield Unit(block, -1, "", cost)
            continue
        for at, part in enumerate(task.parts(block)):
            if part.kind in CALL_KINDS:
                yield Unit(block, at, part.text(), part.cost_chars)
            elif part.kind not in SILENT_KINDS:
                for text in cut(part.text()):
                    yield Unit(block, at, text, len(text))


def _table(task: Task, units: Sequence[Unit]) -> BlockTable:
    """Return the table of the units, each in the place of a block."""
    blocks: list[Block] = []
    messages: list[Message] = []
    for at, unit in enumerate(units):
        parent = task.table.blocks[unit.block]
        parts, roles = task.parts(unit.block), task.roles(unit.block)
        if unit.part >= 0:
            part = parts[unit.part]
            is_call = part.kind in CALL_KINDS
            parts = [part if is_call else text_part(Held(unit.text), unit.text, part.author)]
        role = roles[max(unit.part, 0)]
        messages.append(Message(role, tuple(parts), at, Envelope(None, len(parts), "anthropic")))
        block = replace(
            parent,
            id=f"{parent.id}.{at}",
            refs=tuple(PartRef(at, place) for place in range(len(parts))),
            cost_chars=unit.cost_chars,
        )
        blocks.append(block)
    return build_table(messages, Segmentation(tuple(blocks), (), ()))


def _aligned(graph: ContextGraph | None, ids: tuple[str, ...], parent: IntArray) -> AlignedGraph:
    """Return the graph as units see it: what holds of a block holds of its units; no edges."""
    known = None if graph is None else align(graph, ids)
    nothing = np.zeros(0, np.int32)
    return AlignedGraph(
        importance=np.zeros(len(parent)) if known is None else known.importance[parent],
        is_observed=np.zeros(len(parent), np.bool_) if known is None else known.is_observed[parent],
        is_stale=np.zeros(len(parent), np.bool_) if known is None else known.is_stale[parent],
        source=nothing,
        target=nothing,
        mass=np.zeros(0),
    )


def _context(task: Task, units: Sequence[Unit], is_kept: BoolArray) -> Context:
    pieces: list[Piece] = []
    whole: set[int] = set()
    cost = 0
    for block, group in groupby(zip(units, is_kept.tolist(), strict=True), lambda x: x[0].block):
        of_block = list(group)
        chars = sum(unit.cost_chars for unit, kept in of_block if kept)
        if chars == task.table.cost_chars[block] and all(kept for _, kept in of_block):
            whole.add(block)
            pieces += verbatim(task, [block])
        else:
            pieces += _cut_pieces(task, block, of_block)
        cost += chars
    return Context(tuple(pieces), frozenset(whole), cost)


def _cut_pieces(task: Task, block: int, units: list[tuple[Unit, bool]]) -> Iterator[Piece]:
    """Yield a piece for each run of units that were kept side by side in one part."""
    roles: list[Role] = task.roles(block)
    parts = task.parts(block)
    for (part, kept), run in groupby(units, lambda pair: (pair[0].part, pair[1])):
        if kept:
            text = "".join(unit.text for unit, _ in run)
            yield Piece(roles[part], text, block, is_verbatim=text == parts[part].text())
