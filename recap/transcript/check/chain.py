"""Rules about the parent chain of a Claude Code log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from recap.transcript.check.rules import Report


class Node(NamedTuple):
    """A line that is a link of the chain; ids are "" where there is none."""

    line: int
    uuid: str
    parent: str
    is_message: bool
    is_side: bool
    is_boundary: bool


def check_chain(nodes: Sequence[Node], uuids: Set[str], report: Report) -> None:
    """Report gaps, circles and what the walk from the active leaf does not reach."""
    for node in nodes:
        if node.parent and node.parent not in uuids:
            report.add("dangling-parent", node.line)
    positions = {node.uuid: at for at, node in enumerate(nodes) if node.uuid}
    parents = [_parent(nodes, at, positions) for at in range(len(nodes))]
    _check_circles(nodes, parents, report)
    main = [at for at, node in enumerate(nodes) if node.is_message and not node.is_side]
    if len(main) > 1 and not any(nodes[at].parent for at in main):
        report.add("no-chain")
    elif main and (at := _root(parents, main[-1])) is not None:
        root = nodes[at]
        lost = sum(nodes[at].line < root.line for at in main)
        if lost and not root.is_boundary:
            report.add("cut-chain", root.line, count=lost)


def _parent(nodes: Sequence[Node], at: int, positions: Mapping[str, int]) -> int:
    """Return the position of a node's parent, -1 at a root.

    Where the parent is missing the client goes on with the line before.
    """
    parent = nodes[at].parent
    return positions.get(parent, at - 1) if parent else -1


def _root(parents: Sequence[int], at: int) -> int | None:
    """Return where the walk from a node ends, None when it runs in a circle."""
    seen = set[int]()
    while at not in seen:
        seen.add(at)
        if parents[at] < 0:
            return at
        at = parents[at]
    return None


def _check_circles(nodes: Sequence[Node], parents: Sequence[int], report: Report) -> None:
    """Report each circle once, on its first line met; every node is walked once."""
    walks = [0] * len(parents)  # which walk came by, 1-based
    for walk, start in enumerate(range(len(parents)), 1):
        at = start
        while at >= 0 and not walks[at]:
            walks[at] = walk
            at = parents[at]
        if at >= 0 and walks[at] == walk:
            report.add("parent-cycle", nodes[at].line)
