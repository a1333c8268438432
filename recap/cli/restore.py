"""``recap restore``: the original bytes of a snapshot, in a new file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.options import json_option
from recap.cli.output import Column, Line, Row, Table, byte_size, counted, say, say_json
from recap.cli.state import State, folder_option
from recap.cli.versions import local_time, opened_store, settle_first, snapshot_json
from recap.cli.writing import refuse_inputs
from recap.cmv.names import short_ids
from recap.errors import UsageError

if TYPE_CHECKING:
    from recap.store import History

SCHEMA = "recap.restore/1"


@click.command("restore", cls=Command, example="recap restore before-refactor --to session.jsonl")
@click.argument("snapshot", required=False)
@click.option("--to", "out", metavar="OUT", help="File to write.")
@click.option("--replace", is_flag=True, help="Take the place of a file that is there.")
@click.option("--list", "is_list", is_flag=True, help="List what can be restored.")
@click.option("--dry-run", is_flag=True, help="Read and prove everything, write nothing.")
@folder_option
@json_option
def command(
    snapshot: str | None, out: str | None, replace: bool, is_list: bool, dry_run: bool,
    state: State, as_json: bool,
) -> None:  # fmt: skip
    """Write a snapshot's original bytes to a new file, and the files beside it.

    Says whether it is the first snapshot of its session: the nearest to the original there is.
    """
    from recap.cmv.names import find_snapshot
    from recap.cmv.restoring import is_first, restore

    with opened_store(state) as store:
        if is_list:
            _list(store.history, as_json)
            return
        if snapshot is None or (out is None and not dry_run):
            raise UsageError("give a snapshot and --to FILE, or --list")
        if not dry_run:
            settle_first(store)
        row = find_snapshot(store.history, snapshot)
        path = Path(out or "restored")
        refuse_inputs(path, state.inputs)
        done = restore(store, row, path, replace=replace, dry_run=dry_run)
        first = is_first(store.history, row)
    if as_json:
        said = {"written": not dry_run, "path": out, "is_first": first}
        files = [str(each) for each in done.files]
        say_json(SCHEMA, {**said, "side_files": files, "snapshot": snapshot_json(row)})
        return
    verb = "would restore" if dry_run else "restored"
    place = f" to {out}" if out and not dry_run else ""
    beside = f", {counted(len(done.files), 'file')} beside it" if done.files else ""
    say(
        Line(f"{verb} {byte_size(row.size)}{place}{beside}; its sha256 is proved", "good"),
        f"  {_standing(first)}",
    )


def _standing(first: bool) -> str:
    if first:
        return "it is the first snapshot of its session"
    return "older snapshots of its session are kept: it may hold less than the original"


def _list(history: History, as_json: bool) -> None:
    rows = history.snapshots()
    oldest: dict[str, str] = {}
    for row in rows:  # newest first: the last one of a session stays
        oldest[row.session] = row.id
    if as_json:
        shown = [{**snapshot_json(row), "is_first": oldest[row.session] == row.id} for row in rows]
        say_json(SCHEMA, {"snapshots": shown})
        return
    short = short_ids(row.id for row in rows)
    columns = (
        Column("id"), Column("name"), Column("taken"), Column("size", "right"), Column("first"),
        Column("session", is_flexible=True),
    )  # fmt: skip
    shown_rows = (
        Row(
            (
                short[row.id], row.name, local_time(row.created), byte_size(row.size),
                "yes" if oldest[row.session] == row.id else "", row.session,
            )
        )
        for row in rows
    )  # fmt: skip
    say(Table(columns, tuple(shown_rows)) if rows else "no snapshots")
