"""``recap branch``: a new session that begins where a snapshot stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recap.cli.command import Command
from recap.cli.options import json_option
from recap.cli.output import remark, say, say_json, working
from recap.cli.state import State, folder_option
from recap.cli.trim import trim_options
from recap.cli.versions import (
    homes,
    inherit_graphs,
    launch,
    made_json,
    made_lines,
    opened_store,
    settle_first,
    tell_drastic,
)

if TYPE_CHECKING:
    from recap.cmv.branch import Wish
    from recap.cmv.options import TrimOptions
    from recap.store import SnapshotRow

SCHEMA = "recap.branch/1"


@click.command(
    "branch", cls=Command, example="recap branch before-refactor -n auth --orient 'Only auth now.'"
)
@click.argument("snapshot")
@click.option("-n", "name", metavar="NAME", default="", help="Name of the branch.")
@click.option("--no-trim", is_flag=True, help="Leave everything in it.")
@click.option("--orient", "text", metavar="TEXT", default="", help="A message that ends it.")
@click.option("--to-project", metavar="DIR", help="Project folder it is for.")
@click.option("-o", "--out", metavar="OUT", help="File to write; where the agent looks if absent.")
@click.option("--launch", "is_launched", is_flag=True, help="Start the agent on it.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, write nothing.")
@trim_options
@folder_option
@json_option
def command(
    snapshot: str, is_launched: bool, dry_run: bool, state: State, as_json: bool, **given: Any
) -> None:
    """Make a new session of a snapshot under a fresh id, trimmed unless --no-trim says otherwise.

    It lies where its agent looks for sessions of that project; nothing that exists is changed. Sessions
    of agents that have no such place go to the file named with -o.
    """
    from recap.cmv.branch import branch
    from recap.cmv.names import find_snapshot

    with opened_store(state) as store:
        if not dry_run:
            settle_first(store)
        row = find_snapshot(store.history, snapshot)
        wish = _wish(row, **given)
        with working(f"branching {row.name or row.id}"):
            made = branch(store, row, wish, homes(), dry_run=dry_run)
            if not dry_run:
                inherit_graphs(store, row, made)
            elif wish.trim is not None and made.report is not None:
                tell_drastic(made.report, wish.trim)
    if as_json:
        say_json(SCHEMA, made_json(made, is_written=not dry_run))
    else:
        say(*made_lines(made, is_written=not dry_run))
    if is_launched and not dry_run:
        raise click.exceptions.Exit(launch(made))


def _wish(
    row: SnapshotRow,
    options: TrimOptions,
    *,
    no_trim: bool,
    name: str,
    text: str,
    to_project: str | None,
    out: str | None,
) -> Wish:
    from recap.cmv.branch import Wish
    from recap.cmv.facts import CLAUDE_CODE
    from recap.cmv.options import TrimOptions

    is_trimmed = not no_trim
    if is_trimmed and row.agent != CLAUDE_CODE and options == TrimOptions():
        remark(f"sessions of {row.agent} are not trimmed: the branch holds everything")
        is_trimmed = False
    return Wish(
        name=name,
        trim=options if is_trimmed else None,
        orientation=text,
        project=Path(to_project) if to_project else None,
        out=Path(out) if out else None,
    )
