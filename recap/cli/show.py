"""``recap show``: what is known of a snapshot or branch, or the content a stub stands for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.options import json_option
from recap.cli.output import (
    Element,
    Line,
    byte_size,
    counted,
    is_terminal,
    number,
    remark,
    say,
    say_bytes,
    say_json,
)
from recap.cli.state import State, folder_option
from recap.cli.versions import branch_json, local_time, opened_store, snapshot_json
from recap.cli.writing import refuse_inputs, write_whole
from recap.errors import UsageError, shown
from recap.store import SnapshotRow

if TYPE_CHECKING:
    from recap.cmv.restoring import Original
    from recap.store import BranchRow, History

SCHEMA = "recap.show/1"
LISTED = 20
"""Branches and files that are shown one by one."""


@click.command(
    "show", cls=Command, example="recap show before-refactor\nrecap show 3f2a9c1d toolu_01ABC"
)
@click.argument("name")
@click.argument("block", required=False, metavar="[ID]")
@click.option("--request", "is_call", is_flag=True, help="The call of ID instead of its result.")
@click.option("--out", metavar="OUT", help="Write the content of ID to a file.")
@folder_option
@json_option
def command(
    name: str, block: str | None, is_call: bool, out: str | None, state: State, as_json: bool
) -> None:
    """Show a snapshot or branch; with ID the original content that a stub stands for.

    ID is that of a call, as stubs name it, or the id of a block. A call shows its result; with
    --request what it was to write or run.
    """
    from recap.cmv.names import find, find_snapshot

    with opened_store(state) as store:
        history = store.history
        if block is None:
            row = find(history, name)
            _tell(history, row, as_json)
            return
        from recap.cmv.restoring import originals

        found = originals(history, find_snapshot(history, name), block)
    calls = [each for each in found if each.kind == "call"]
    results = [each for each in found if each.kind != "call"]
    if is_call and not calls:
        raise UsageError(f"snapshot {name} holds no call {shown(block)}")
    _give(calls if is_call or not results else results, out, as_json, state)


def _give(found: list[Original], out: str | None, as_json: bool, state: State) -> None:
    if len(found) > 1:
        lines = ", ".join(number(each.line) for each in found[:LISTED])
        remark(f"{len(found)} blocks have this id, in lines {lines}; the first one is shown")
    first = found[0]
    text = first.text.encode("utf-8", "replace")
    if out is not None:
        refuse_inputs(Path(out), state.inputs)
        write_whole(Path(out), text)
    elif as_json:
        shown = [
            {"line": each.line, "kind": each.kind, "text": each.text, "content": each.value}
            for each in found
        ]
        say_json(SCHEMA, {"originals": shown})
    elif is_terminal():
        say(first.text)
    else:
        say_bytes(text)


def _tell(history: History, row: SnapshotRow | BranchRow, as_json: bool) -> None:
    if isinstance(row, SnapshotRow):
        above, branches = history.lineage(row.id), history.branches(snapshot=row.id)
        kind, shown, lines = "snapshot", snapshot_json(row), _snapshot_lines(row)
    else:
        above, branches = history.lineage(row.snapshot), []
        kind, shown, lines = "branch", branch_json(row), _branch_lines(row)
    lost = _lost_parent(above, row)
    if as_json:
        lineage = [{"id": each.id, "name": each.name} for each in above]
        said = {"lineage": lineage, "lineage_end": lost or None}
        made = [branch_json(each) for each in branches]
        say_json(SCHEMA, {"kind": kind, **shown, **said, "branches": made})
        return
    chain = [each.name or each.id[:8] for each in above if each.id != row.id]
    if chain or lost:
        lines.append(f"came of    {' <- '.join((*chain, *([lost] if lost else [])))}")
    for each in branches[:LISTED]:
        named = f"{each.name or each.id[:8]}, session {each.session}, {local_time(each.created)}"
        lines.append(f"branch     {named}")
    if len(branches) > LISTED:
        more = counted(len(branches) - LISTED, "more branch", "more branches")
        lines.append(f"           and {more}")
    say(*lines)


def _lost_parent(above: list[SnapshotRow], row: SnapshotRow | BranchRow) -> str:
    """Return why a lineage ends where it does; "" where it begins there."""
    if not above:
        return "snapshot deleted"
    parent = above[-1].parent
    if parent is None:
        return ""
    return "its own ancestor" if parent in {each.id for each in above} else "parent deleted"


def _snapshot_lines(row: SnapshotRow) -> list[Element]:
    sides = [side for side in row.sides if not side.name.startswith(".recap/")]
    counts = ", ".join(f"{number(count)} {kind}" for kind, count in row.messages)
    state = ", less than two minutes after its file was written to" if row.is_active else ""
    lines: list[Element] = [
        Line(f"snapshot   {row.name or '-'}", "strong"),
        f"id         {row.id}",
        f"taken      {local_time(row.created)}{state}",
        f"session    {row.session} ({row.agent})",
        f"project    {row.project or '-'}",
        f"size       {byte_size(row.size)}, {counted(row.lines, 'line')}; {counts or 'no messages'}",
        f"sha256     {row.sha256.hex()}",
    ]
    for label, said in (
        ("about", row.description),
        ("tags", ", ".join(row.tags)),
        ("client", ", ".join(row.versions)),
        ("graph", f"revision {row.graph_rev}" if row.graph_rev else ""),
    ):
        if said:
            lines.append(f"{label:<10} {said}")
    if sides:
        total = byte_size(sum(side.size for side in sides))
        lines.append(f"beside it  {counted(len(sides), 'file')}, {total}")
        lines += [f"             {side.name}" for side in sides[:LISTED]]
    return lines


def _branch_lines(row: BranchRow) -> list[Element]:
    return [
        Line(f"branch     {row.name or '-'}", "strong"),
        f"id         {row.id}",
        f"made       {local_time(row.created)}",
        f"session    {row.session}",
        f"snapshot   {row.snapshot}",
        f"sha256     {row.sha256.hex() or '-'}",
        f"options    {row.options or '-'}",
    ]
