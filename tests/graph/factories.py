"""Tables, observations and random sessions for tests of graph and capture, made by hand."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from hypothesis import strategies as st

from recap.blocks.segment import Block
from recap.blocks.table import BlockTable, TermIndex
from recap.graph.observation import TurnObservation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Row(NamedTuple):
    """A block: its turn, the identifiers it only holds, those the agent wrote, who speaks."""

    turn: int
    held: frozenset[str]
    wrote: frozenset[str] = frozenset()
    is_user: bool = False


def row(turn: int, held: str = "", wrote: str = "", *, is_user: bool = False) -> Row:
    """Return a block from identifiers separated by blanks."""
    return Row(turn, frozenset(held.split()), frozenset(wrote.split()), is_user)


def block_id(number: int) -> str:
    return f"{number:016x}"


def table_of(rows: Sequence[Row]) -> BlockTable:
    """Return the table of the rows; its blocks have ids 0, 1, ... and no messages."""
    blocks = tuple(
        Block(block_id(i), "user" if each.is_user else "tools", (), 10, each.turn)
        for i, each in enumerate(rows)
    )
    return BlockTable(
        messages=(),
        blocks=blocks,
        fixed=(),
        excluded=(),
        ids=tuple(block.id for block in blocks),
        cost_chars=np.full(len(rows), 10, np.int64),
        turn=np.array([each.turn for each in rows], np.int32),
        is_active=np.ones(len(rows), np.bool_),
        is_user=np.array([each.is_user for each in rows], np.bool_),
        index=_index(rows),
        lines=_index([row(0)] * len(rows)),
    )


def _index(rows: Sequence[Row]) -> TermIndex:
    vocabulary: dict[str, int] = {}
    terms: list[int] = []
    wrote: list[bool] = []
    starts = [0]
    for each in rows:
        names = sorted(each.held | each.wrote)
        numbered = sorted((vocabulary.setdefault(name, len(vocabulary)), name) for name in names)
        terms += [number for number, _ in numbered]
        wrote += [name in each.wrote for _, name in numbered]
        starts.append(len(terms))
    block = np.repeat(np.arange(len(rows)), np.diff(starts))
    last_use = np.zeros(len(vocabulary), np.int32)
    np.maximum.at(last_use, np.array(terms, np.int64), block.astype(np.int32))
    return TermIndex(
        vocabulary=vocabulary,
        size=len(vocabulary),
        starts=np.array(starts, np.int64),
        terms=np.array(terms, np.int32),
        wrote=np.array(wrote, np.bool_),
        document_frequency=_counts(terms, len(vocabulary)),
        last_use=last_use,
        acts=_counts([t for t, own in zip(terms, wrote, strict=True) if own], len(vocabulary)),
    )


def _counts(terms: Iterable[int], size: int) -> np.ndarray:
    return np.bincount(np.array(list(terms), np.int64), minlength=size).astype(np.int32)


NAMES = [f"name{i}" for i in range(12)]


def rows(fewest: int = 0, most: int = 14) -> st.SearchStrategy[list[Row]]:
    """Draw the blocks of a session, each of which holds at least the fewest identifiers."""
    row = st.builds(
        Row,
        st.integers(0, 1),  # how many turns after the block before it
        st.frozensets(st.sampled_from(NAMES), min_size=fewest),
        st.frozensets(st.sampled_from(NAMES)),
        st.booleans(),
    )
    return st.lists(row, max_size=most).map(_in_turns)


def _in_turns(steps: Sequence[Row]) -> list[Row]:
    turns = accumulate(step.turn for step in steps)
    return [
        each._replace(turn=turn - steps[0].turn) for each, turn in zip(steps, turns, strict=True)
    ]


BLOCKS = 9
_use = st.dictionaries(st.integers(0, BLOCKS - 1), st.floats(0, 1e6), max_size=7)
_edge = st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(0, 1))


@st.composite
def observations(draw: st.DrawFn) -> TurnObservation:
    """Draw an observation of some blocks of a session of nine, in their order."""
    use = dict(sorted(draw(_use).items()))
    edges = [edge for edge in draw(st.lists(_edge, max_size=12)) if edge[1] < edge[0] < len(use)]
    later, earlier, mass = zip(*edges, strict=True) if edges else ((), (), ())
    ids = [block_id(number) for number in use]
    return TurnObservation.of(0, ids, list(use.values()), later, earlier, mass)
