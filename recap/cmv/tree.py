"""The lineage of snapshots and branches as rows of a tree. Pure, without recursion, cycle-safe."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from recap.store import BranchRow, SnapshotRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Sort = Literal["date", "name", "branches"]
Remark = Literal["", "parent deleted", "snapshot deleted", "its own ancestor"]

Node: TypeAlias = SnapshotRow | BranchRow


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One row of the tree.

    Attributes:
        node: The snapshot or branch.
        depth: Nodes above it.
        is_last: For each node on the way from its root, itself included, whether it is the last
            of its siblings; as many as ``depth``.
        remark: What is odd about its place.
    """

    node: Node
    depth: int
    is_last: tuple[bool, ...]
    remark: Remark = ""


GUIDES = 40
"""Levels for which a row says which lines go on beside it: a chain of thousands stays readable."""


def tree(
    snapshots: Sequence[SnapshotRow],
    branches: Sequence[BranchRow],
    *,
    sort: Sort = "date",
    depth: int | None = None,
    tag: str = "",
) -> list[TreeRow]:
    """Return the lineage, roots first, each followed by what came of it.

    A branch stands below its snapshot, a snapshot below the branch it was taken of.

    Args:
        snapshots: All of them.
        branches: All of them.
        sort: Order of siblings: oldest first, by name, or by number of branches, most first.
        depth: Levels shown; None for all.
        tag: Show snapshots that have it, and what they came of; "" for all.
    """
    forest = _Forest(snapshots, branches, _order(sort, branches))
    wanted = (
        None if not tag else forest.with_ancestors(row.id for row in snapshots if tag in row.tags)
    )
    return forest.rows(depth, wanted)


def flat(
    snapshots: Iterable[SnapshotRow],
    branches: Iterable[BranchRow],
    *,
    sort: Sort = "date",
    tag: str = "",
) -> list[SnapshotRow]:
    """Return the snapshots as a list in the order of ``tree``."""
    order = _order(sort, branches)
    return sorted((row for row in snapshots if not tag or tag in row.tags), key=order)


def _order(sort: Sort, branches: Iterable[BranchRow]) -> Callable[[Node], tuple[object, ...]]:
    if sort == "name":
        return lambda node: (node.name, node.created, node.id)
    if sort == "branches":
        counts: dict[str, int] = defaultdict(int)
        for branch in branches:
            counts[branch.snapshot] += 1
        return lambda node: (-counts[node.id], node.created, node.id)
    return lambda node: (node.created, node.id)


class _Forest:
    """Parents and children of all nodes."""

    def __init__(
        self,
        snapshots: Sequence[SnapshotRow],
        branches: Sequence[BranchRow],
        order: Callable[[Node], tuple[object, ...]],
    ) -> None:
        self.order = order
        self.nodes: dict[str, Node] = {}
        self.nodes |= {row.id: row for row in snapshots}
        self.nodes |= {row.id: row for row in branches}
        of_session = {(row.snapshot, row.session): row.id for row in branches}
        self.parents: dict[str, str] = {}
        self.remarks: dict[str, Remark] = {}
        self.children: dict[str, list[Node]] = defaultdict(list)
        self.roots: list[Node] = []
        for row in self.nodes.values():
            if isinstance(row, BranchRow):
                self._add(row, row.snapshot, "snapshot deleted")
            else:
                made = of_session.get((row.parent or "", row.session))
                self._add(row, made or row.parent, "parent deleted")

    def _add(self, row: Node, parent: str | None, otherwise: Remark) -> None:
        if parent in self.nodes:
            self.parents[row.id] = parent
            self.children[parent].append(row)
            return
        self.roots.append(row)
        if parent is not None:
            self.remarks[row.id] = otherwise

    def with_ancestors(self, ids: Iterable[str]) -> set[str]:
        """Return ids with those of all nodes above."""
        found: set[str] = set()
        for each in ids:
            above: str | None = each
            while above is not None and above not in found:
                found.add(above)
                above = self.parents.get(above)
        return found

    def rows(self, depth: int | None, wanted: set[str] | None) -> list[TreeRow]:
        """Return the rows of all trees; what no root leads to goes round in a circle."""
        rows: list[TreeRow] = []
        seen: set[str] = set()
        for root in sorted(self.roots, key=self.order):
            self._walk(root, self.remarks.get(root.id, ""), depth, wanted, seen, rows)
        for row in sorted(self.nodes.values(), key=self.order):
            if row.id not in seen:
                self._walk(row, "its own ancestor", depth, wanted, seen, rows)
        return rows

    def _walk(
        self,
        root: Node,
        remark: Remark,
        depth: int | None,
        wanted: set[str] | None,
        seen: set[str],
        rows: list[TreeRow],
    ) -> None:
        stack = [TreeRow(root, 0, (), remark)]
        while stack:
            row = stack.pop()
            if row.node.id in seen:
                continue
            seen.add(row.node.id)
            is_shown = (depth is None or row.depth < depth) and (
                wanted is None or row.node.id in wanted
            )
            if is_shown:
                rows.append(row)
            below = self.children.get(row.node.id, ())
            if wanted is not None:
                below = [each for each in below if each.id in wanted]
            ordered = sorted(below, key=self.order)
            stack += [
                TreeRow(node, row.depth + 1, (*row.is_last, at == 0)[:GUIDES])
                for at, node in enumerate(reversed(ordered))
            ]
