"""What a method is given at a turn boundary, and what it returns: the same for ours and for others.

P, the protected set, is given: every method keeps it whole and pays for it out of B, so that what
differs is what a method makes of the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from recap.blocks.protected import protect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recap.blocks.table import BlockTable, BoolArray
    from recap.config import Settings
    from recap.graph.state import ContextGraph
    from recap.transcript.model import Part, Role


T = TypeVar("T", str, int)

OPTION = "option"
"""Key under which a field says what it is as an option."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A history to shorten for an arriving request.

    Attributes:
        table: The history's blocks, n of them.
        is_protected: bool ``[n]``: P.
        request: The arriving request.
        budget_chars: B, P included.
        seed: What draws are keyed by.
        graph: What earlier turns used of it.
        settings: Coefficients.
    """

    table: BlockTable
    is_protected: BoolArray
    request: str
    budget_chars: int
    seed: bytes
    graph: ContextGraph
    settings: Settings

    @property
    def protected_chars(self) -> int:
        """cost(P)."""
        return int(self.table.cost_chars[self.is_protected].sum())

    @property
    def free_chars(self) -> int:
        """What P leaves of B, 0 where it leaves nothing."""
        return max(self.budget_chars - self.protected_chars, 0)

    def parts(self, block: int) -> list[Part]:
        """Return the parts of a block in the order they go out."""
        messages = self.table.messages
        return [messages[ref.message].parts[ref.part] for ref in self.table.blocks[block].refs]

    def roles(self, block: int) -> list[Role]:
        """Return the role of each of these parts."""
        return [self.table.messages[ref.message].role for ref in self.table.blocks[block].refs]


def protected_mask(table: BlockTable, settings: Settings) -> BoolArray:
    """Return P of a history, as the product has it: bool ``[n]``."""
    mask = np.zeros(len(table), np.bool_)
    mask[list(protect(table.blocks, settings.edit_cap))] = True
    return mask


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the shortened history.

    Attributes:
        role: Whose words they are.
        text: As the agent's model reads it.
        block: Index of the block it comes from; -1 where it comes from none, as a summary does.
        is_verbatim: The whole part, unchanged.
    """

    role: Role
    text: str
    block: int = -1
    is_verbatim: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """A shortened history, chronological, without the request.

    Attributes:
        pieces: Its texts.
        kept: Indices of blocks that are in it whole.
        cost_chars: What it costs by the rules of the budget: cost of the blocks kept whole, cost of
            messages and calls that stay whole in other blocks, and characters of all other pieces.
        model_calls: Calls of a model that were made for it.
        input_tokens: Tokens these models read.
        output_tokens: Tokens they wrote.
        memory_bytes: What has to be kept for the session until its next turn, the log aside.
        other_seconds: Time it took outside the thread that asked: processor time of a child process,
            waiting for an endpoint.
    """

    pieces: tuple[Piece, ...]
    kept: frozenset[int]
    cost_chars: int
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    memory_bytes: int = 0
    other_seconds: float = 0.0


class Method(Protocol):
    """A way to shorten a history."""

    @property
    def name(self) -> str:
        """What the user calls it."""
        ...

    @property
    def help(self) -> str:
        """One line for the user, with its source."""
        ...

    def missing(self) -> str:
        """Return what is missing to run it here and how to get it; "" where nothing is."""
        ...

    def shorten(self, task: Task) -> Context:
        """Return the shortened history. P is in it whole.

        Raises:
            MethodError: It cannot run here.
        """
        ...


class Local:
    """A method that needs nothing but the product."""

    __slots__ = ()

    def missing(self) -> str:
        """Return "": it always runs."""
        return ""


class Option(NamedTuple):
    """A field of a method that the user may set, by its name."""

    name: str
    default: str | int
    help: str


def option(default: T, help: str) -> T:
    """Return a field of a method that the user may set: text, or a whole number."""
    made: T = field(default=default, metadata={OPTION: help})
    return made


def options_of(method: Method) -> tuple[Option, ...]:
    """Return the options of a method, with the values it has as defaults."""
    told: Any = method
    return tuple(
        Option(each.name, getattr(method, each.name), each.metadata[OPTION])
        for each in fields(told)
        if OPTION in each.metadata
    )


def verbatim(task: Task, blocks: Iterable[int]) -> list[Piece]:
    """Return the parts of blocks as pieces, in order; thinking and images have no words."""
    return [
        Piece(role, part.text(), block, is_verbatim=True)
        for block in blocks
        for role, part in zip(task.roles(block), task.parts(block), strict=True)
        if part.kind not in ("thinking", "image")
    ]


def of_blocks(task: Task, kept: Iterable[int], memory_bytes: int = 0) -> Context:
    """Return the context of blocks kept whole."""
    chosen = sorted(kept)
    return Context(
        pieces=tuple(verbatim(task, chosen)),
        kept=frozenset(chosen),
        cost_chars=int(task.table.cost_chars[chosen].sum()) if chosen else 0,
        memory_bytes=memory_bytes,
    )
