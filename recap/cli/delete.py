"""``recap delete``: take a snapshot away, or the record of a branch."""

from __future__ import annotations

import sys

import click

from recap.cli.command import Command
from recap.cli.options import json_option
from recap.cli.output import counted, remark, say, say_json
from recap.cli.state import State, folder_option
from recap.cli.versions import opened_store
from recap.errors import UsageError
from recap.store import SnapshotRow

SCHEMA = "recap.delete/1"


@click.command("delete", cls=Command, example="recap delete before-refactor -f")
@click.argument("name")
@click.option("-f", "--force", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would go, remove nothing.")
@folder_option
@json_option
def command(name: str, force: bool, dry_run: bool, state: State, as_json: bool) -> None:
    """Take a snapshot away, or the record of a branch. Session files are never removed.

    The bytes go with `recap gc`. What came of a snapshot stays and shows that its parent is deleted.
    """
    from recap.cmv.names import find
    from recap.cmv.removing import came_of, delete

    with opened_store(state) as store:
        row = find(store.history, name)
        kind = "snapshot" if isinstance(row, SnapshotRow) else "branch"
        children, branches = came_of(store.history, row)
        if children or branches:
            came = f"{counted(branches, 'branch', 'branches')} and {counted(children, 'snapshot')}"
            remark(f"{came} came of it; they stay")
        if not dry_run:
            if not force and not _is_agreed(f"Delete {kind} {row.name or row.id}?"):
                raise UsageError("nothing was deleted; -f deletes without asking")
            delete(store.history, row)
    if as_json:
        say_json(SCHEMA, {"deleted": not dry_run, "kind": kind, "id": row.id, "name": row.name})
    else:
        say(f"{'would delete' if dry_run else 'deleted'} {kind} {row.name or '-'}  {row.id[:8]}")


def _is_agreed(question: str) -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and click.confirm(question, err=True)
