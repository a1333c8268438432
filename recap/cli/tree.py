"""``recap tree``: snapshots and branches, and what came of what."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from recap.cli.command import Command
from recap.cli.options import json_option
from recap.cli.output import Column, Line, Row, Table, byte_size, number, say, say_json
from recap.cli.state import State, folder_option
from recap.cli.versions import branch_json, local_time, sizes, snapshot_json
from recap.cmv.names import short_ids
from recap.cmv.tree import Sort, flat, tree
from recap.store import SnapshotRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.cli.output import Tone
    from recap.cmv.tree import TreeRow
    from recap.store import BranchRow

SCHEMA = "recap.tree/1"
GUIDES = ("│  ", "├─ ", "└─ ")
ASCII_GUIDES = ("|  ", "|- ", "`- ")


@click.command("tree", cls=Command, example="recap tree --tag auth")
@click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Levels shown.")
@click.option(
    "--tag", metavar="TAG", default="", help="Snapshots with this tag, and what is above."
)
@click.option(
    "--sort", type=click.Choice(get_args(Sort)), default="date", help="Order of siblings."
)
@click.option("--flat", "is_flat", is_flag=True, help="The list of snapshots.")
@click.option("--ascii", "is_ascii", is_flag=True, help="Draw with ASCII characters.")
@folder_option
@json_option
def command(
    depth: int | None, tag: str, sort: Sort, is_flat: bool, is_ascii: bool, state: State,
    as_json: bool,
) -> None:  # fmt: skip
    """Show snapshots and branches, each below what it came of."""
    snapshots: list[SnapshotRow] = []
    branches: list[BranchRow] = []
    if state.is_made:
        with state.opened() as store:
            snapshots, branches = store.history.snapshots(), store.history.branches()
    if is_flat:
        _tell_flat(flat(snapshots, branches, sort=sort, tag=tag), branches, as_json)
        return
    rows = tree(snapshots, branches, sort=sort, depth=depth, tag=tag)
    if as_json:
        nodes = [
            {"depth": row.depth, "remark": row.remark or None, **_node_json(row)} for row in rows
        ]
        say_json(SCHEMA, {"nodes": nodes})
    elif not rows:
        say("no snapshots; `recap snapshot NAME --latest` takes one")
    else:
        short = _short(snapshots, branches)
        guides = ASCII_GUIDES if is_ascii else GUIDES
        say(*(Line(_drawn(row, guides) + _text(row, short), _tone(row)) for row in rows))


def _short(snapshots: Sequence[SnapshotRow], branches: Sequence[BranchRow]) -> Mapping[str, str]:
    return short_ids([*(row.id for row in snapshots), *(row.id for row in branches)])


def _node_json(row: TreeRow) -> dict[str, object]:
    if isinstance(row.node, SnapshotRow):
        return {"kind": "snapshot", **snapshot_json(row.node)}
    return {"kind": "branch", **branch_json(row.node)}


def _drawn(row: TreeRow, guides: Sequence[str]) -> str:
    """Return the lines that lead to a row; below a certain depth its number instead."""
    if row.depth > len(row.is_last):
        return "   " * len(row.is_last) + f"({row.depth}) "
    above = ("   " if is_last else guides[0] for is_last in row.is_last[:-1])
    own = [guides[2] if is_last else guides[1] for is_last in row.is_last[-1:]]
    return "".join((*above, *own))


def _text(row: TreeRow, short: Mapping[str, str]) -> str:
    node = row.node
    id = short[node.id]
    if isinstance(node, SnapshotRow):
        tags = f"  [{', '.join(node.tags)}]" if node.tags else ""
        said = f"{node.name or '-'}  {id}  {local_time(node.created)}  {sizes(node)}{tags}"
    else:
        said = f"-> {node.name or '-'}  {id}  {local_time(node.created)}  session {node.session}"
    return f"{said}  ({row.remark})" if row.remark else said


def _tone(row: TreeRow) -> Tone:
    return "bad" if row.remark == "its own ancestor" else ""


def _tell_flat(rows: list[SnapshotRow], branches: list[BranchRow], as_json: bool) -> None:
    if as_json:
        say_json(SCHEMA, {"snapshots": [snapshot_json(row) for row in rows]})
        return
    if not rows:
        say("no snapshots; `recap snapshot NAME --latest` takes one")
        return
    short = _short(rows, branches)
    columns = (
        Column("id"), Column("name"), Column("taken"), Column("size", "right"),
        Column("messages", "right"), Column("agent", is_optional=True),
        Column("project", is_flexible=True, is_path=True), Column("tags", is_optional=True),
    )  # fmt: skip
    shown = (
        Row(
            (
                short[row.id], row.name, local_time(row.created), byte_size(row.size),
                number(sum(count for _, count in row.messages)), row.agent, row.project,
                ", ".join(row.tags),
            )
        )
        for row in rows
    )  # fmt: skip
    say(Table(columns, tuple(shown)))
