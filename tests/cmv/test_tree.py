"""The lineage as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.cmv.names import find, find_snapshot, short_ids
from recap.cmv.removing import came_of, delete
from recap.cmv.tree import GUIDES, flat, tree
from recap.errors import UsageError
from recap.store import BranchRow, SnapshotRow
from tests.cmv.worlds import dumped, line

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cmv.worlds import World

ZERO = bytes(32)


def snap(id: str, parent: str | None = None, **changes: Any) -> SnapshotRow:
    fields = {"name": id, "session": f"of {id}", "created": float(len(id)), **changes}
    return SnapshotRow(id=id, root=ZERO, sha256=ZERO, size=1, parent=parent, **fields)


def made(id: str, snapshot: str, session: str = "", **changes: Any) -> BranchRow:
    return BranchRow(id=id, snapshot=snapshot, session=session or f"made {id}", name=id, **changes)


def shown(rows: Any) -> list[tuple[str, int, str]]:
    return [(row.node.id, row.depth, row.remark) for row in rows]


def test_a_snapshot_stands_below_the_branch_it_was_taken_of() -> None:
    rows = [snap("root"), snap("child", "root", session="made b"), snap("other", "root")]
    found = tree(rows, [made("b", "root", created=1.0), made("c", "root", created=9.0)])
    assert shown(found) == [
        ("root", 0, ""), ("b", 1, ""), ("child", 2, ""), ("other", 1, ""), ("c", 1, "")
    ]  # fmt: skip
    assert [row.is_last for row in found] == [(), (False,), (False, True), (False,), (True,)]


def test_what_was_deleted_is_named() -> None:
    found = tree([snap("child", "gone")], [made("b", "gone too")])
    assert shown(found) == [("b", 0, "snapshot deleted"), ("child", 0, "parent deleted")]


def test_a_circle_ends_and_is_named() -> None:
    found = tree([snap("a", "b"), snap("bb", "a"), snap("b", "bb"), snap("self", "self")], [])
    assert sorted(row.node.id for row in found) == ["a", "b", "bb", "self"]
    assert [row.remark for row in found if row.depth == 0] == ["its own ancestor"] * 2


@given(
    st.lists(st.tuples(st.integers(-1, 20), st.booleans()), max_size=20),
    st.sampled_from(["date", "name", "branches"]),
)
def test_every_node_is_shown_once_whatever_the_parents(
    links: list[tuple[int, bool]], sort: Any
) -> None:
    ids = [f"n{at}" for at in range(len(links))]
    snapshots, branches = [], []
    for id, (parent, is_branch) in zip(ids, links, strict=True):
        above = f"n{parent}" if parent >= 0 else None
        if is_branch:
            branches.append(made(id, above or "none"))
        else:
            snapshots.append(snap(id, above))
    rows = tree(snapshots, branches, sort=sort)
    assert sorted(row.node.id for row in rows) == sorted(ids)


def test_a_chain_of_thousands_is_walked_without_recursion() -> None:
    rows = [snap(f"{at:06}", f"{at - 1:06}" if at else None) for at in range(20_000)]
    found = tree(rows, [])
    assert found[-1].depth == 19_999
    assert len(found[-1].is_last) == GUIDES


def test_depth_tag_and_order() -> None:
    rows = [snap("b", tags=("x",)), snap("aa"), snap("ccc", "b"), snap("dddd", "aa", tags=("x",))]
    branches = [made("z", "aa")]
    assert [r.node.id for r in tree(rows, branches, depth=1)] == ["b", "aa"]
    assert [r.node.id for r in tree(rows, branches, tag="x")] == ["b", "aa", "dddd"]
    assert [r.node.id for r in tree(rows, branches, sort="name", depth=1)] == ["aa", "b"]
    assert flat(rows, branches, sort="branches")[0].id == "aa"
    assert [row.id for row in flat(rows, branches, tag="x")] == ["b", "dddd"]


def test_c25_lineage_is_by_id_and_not_by_name(
    world: World, case: Callable[[str], dict[str, Any]]
) -> None:
    data = case("c25")["data"]
    root = world.snap(world.session(data), "root")
    child = world.snap(world.branch(root).path, "child")
    assert came_of(world.store.history, root) == (1, 1)
    delete(world.store.history, root)
    stranger = world.snap(world.session(data), "root")
    rows = tree(world.store.history.snapshots(), world.store.history.branches())
    remarks = {row.node.id: (row.depth, row.remark) for row in rows}
    assert child.parent == root.id != stranger.id
    assert remarks[stranger.id] == (0, "")
    assert all(row.remark != "" for row in rows if row.depth == 0 and row.node.id != stranger.id)
    with pytest.raises(UsageError, match="gone already"):
        delete(world.store.history, root)


def test_names_ids_and_prefixes_name_a_node(world: World) -> None:
    path = world.session(dumped([line("user", 0, "x")]))
    row = world.snap(path, "one")
    branch = world.branch(row, name="b").row
    history = world.store.history
    for ref in (row.id, "one", row.id[:4], row.id[:12]):
        assert find(history, ref) == row == find_snapshot(history, ref)
    for ref in (branch.id, "b", branch.id[:10]):
        assert find(history, ref) == branch
    for ref in ("", "two", row.id[:3], "%", "_", row.id + "0"):
        with pytest.raises(UsageError, match="there is no"):
            find_snapshot(history, ref)


def test_what_could_be_several_lists_them(world: World) -> None:
    row = world.snap(world.session(dumped([line("user", 0, "x")])), "one")
    world.branch(row, name="same")
    world.branch(row, name="same")
    with pytest.raises(UsageError, match=r"could be \w{16} \(same\), \w{16} \(same\); give more"):
        find(world.store.history, "same")


def test_a_name_that_is_the_beginning_of_an_id_is_the_name(world: World) -> None:
    path = world.session(dumped([line("user", 0, "x")]))
    one = world.snap(path, "one")
    two = world.snap(path, one.id[:8])
    assert find(world.store.history, one.id[:8]) == two


@given(st.sets(st.text("0123456789abcdef", min_size=32, max_size=32), max_size=30))
def test_short_ids_are_unique_and_of_eight_digits_at_least(ids: set[str]) -> None:
    short = short_ids(ids)
    assert len(set(short.values())) == len(ids)
    assert all(id.startswith(short[id]) and len(short[id]) >= 8 for id in ids)
    assert all(sum(other.startswith(short[id]) for other in ids) == 1 for id in ids)
