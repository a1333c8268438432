"""``recap sessions``: the sessions of all agents on this computer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from recap.cli.command import Command
from recap.cli.options import json_option
from recap.cli.output import Column, Row, Table, byte_size, number, say, say_json, working
from recap.cli.state import State, folder_option
from recap.cli.versions import homes, local_time, stamp

if TYPE_CHECKING:
    from recap.cmv.listing import Listed

SCHEMA = "recap.sessions/1"
TITLE_CHARS = 40


@click.command("sessions", cls=Command, example="recap sessions --all --sort size")
@click.option(
    "--project", metavar="DIR", help="Sessions of this folder; the current one if absent."
)
@click.option("--all", "is_all", is_flag=True, help="Sessions of all folders.")
@click.option("--agent", metavar="NAME", default="", help="Sessions of this agent: claude, codex.")
@click.option(
    "--sort", type=click.Choice(("date", "size", "messages")), default="date", help="Order, date."
)
@folder_option
@json_option
def command(
    project: str | None, is_all: bool, agent: str, sort: Literal["date", "size", "messages"],
    state: State, as_json: bool,
) -> None:  # fmt: skip
    """List the sessions of agents: id, project, size, messages, snapshots, branches, title of each."""
    from recap.cmv.homes import real_folder
    from recap.cmv.listing import CACHE_NAME, Counts, Known, sessions

    if is_all and project:
        raise click.UsageError("give one of --project and --all", click.get_current_context())
    folder = "" if is_all else real_folder(project or Path.cwd())
    is_made = state.is_made
    counts = Counts(state.place / CACHE_NAME if is_made else None)
    known = Known()
    if is_made:
        with state.opened() as store:
            known = Known(store.history.snapshots(), store.history.branches())
    with working("reading sessions"):
        listed = sessions(homes(), counts, known, project=folder, agent=agent, sort=sort)
    counts.save()
    if as_json:
        say_json(SCHEMA, {"sessions": [_as_json(each) for each in listed]})
    elif not listed:
        say(
            f"no sessions of {folder}; --all lists those of all folders"
            if folder
            else "no sessions"
        )
    else:
        say(_table(listed))


def _as_json(each: Listed) -> dict[str, object]:
    return {
        "id": each.id,
        "path": str(each.path),
        "agent": each.agent,
        "project": each.project,
        "bytes": each.size,
        "modified": stamp(each.modified),
        "messages": each.messages,
        "snapshots": each.snapshots,
        "branches": each.branches,
        "title": each.title or None,
    }


def shortened(title: str) -> str:
    """Return a title as a cell has room for it, in one line."""
    words = " ".join(title.split())
    return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 3] + "..."


def _table(listed: list[Listed]) -> Table:
    columns = (
        Column("id"), Column("agent", is_optional=True), Column("modified"),
        Column("size", "right"), Column("messages", "right"), Column("snapshots", "right"),
        Column("branches", "right"), Column("title", is_optional=True),
        Column("project", is_flexible=True, is_path=True),
    )  # fmt: skip
    rows = (
        Row(
            (
                each.id, each.agent, local_time(each.modified), byte_size(each.size),
                number(each.messages), number(each.snapshots), number(each.branches),
                shortened(each.title), each.project,
            )
        )
        for each in listed
    )  # fmt: skip
    return Table(columns, tuple(rows))
