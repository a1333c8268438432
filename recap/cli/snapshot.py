"""``recap snapshot``: keep a session as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.options import json_option, session_path
from recap.cli.output import Line, byte_size, counted, say, say_json, working
from recap.cli.state import State, folder_option
from recap.cli.versions import sizes, snapshot_json, tell_gaps
from recap.errors import UsageError

if TYPE_CHECKING:
    from recap.cmv.snapshot import Labels, Seen

SCHEMA = "recap.snapshot/1"


@click.command("snapshot", cls=Command, example="recap snapshot before-refactor --latest -t auth")
@click.argument("name")
@click.option("--session", metavar="ID", help="A session file, an id, or the beginning of one.")
@click.option("--latest", is_flag=True, help="Take the newest session found.")
@click.option("-d", "description", metavar="TEXT", default="", help="What it is.")
@click.option("-t", "tags", metavar="A,B", default="", help="Tags.")
@click.option("--dry-run", is_flag=True, help="Say what would be kept, keep nothing.")
@folder_option
@json_option
def command(
    session: str | None, latest: bool, dry_run: bool, state: State, as_json: bool, **labels: str
) -> None:
    """Keep a session as it is now, for good: its bytes, files beside it, its context graphs.

    The session may be in use: it is read up to its last complete line and never changed. What is kept
    already is not kept twice.
    """
    from recap.cmv.snapshot import look, take

    named = _labels(**labels)
    path = session_path(session, latest, "--session (a file or an id)")
    if path is None:
        raise UsageError("a snapshot is taken of a session's file, not of standard input")
    with working(f"reading {path}"):
        seen = look(path)
    if dry_run:
        _tell_seen(named.name, seen, as_json)
        return
    with working(f"keeping {path}"), state.opened() as store:
        row = take(store, seen, named)
    tell_gaps(seen)
    if as_json:
        say_json(SCHEMA, {"taken": True, "snapshot": snapshot_json(row), **_gaps(seen)})
        return
    say(
        Line(f"snapshot {row.name}  {row.id[:8]}", "good"),
        f"  {sizes(row)} of {row.agent} session {row.session}",
        *([f"  with {counted(len(seen.beside), 'file')} beside it"] if seen.beside else []),
        *([f"  continues {row.parent[:8]}"] if row.parent else []),
    )


def _labels(name: str, description: str, tags: str) -> Labels:
    from recap.cmv.snapshot import Labels

    listed = tuple(tag.strip() for tag in tags.split(",") if tag.strip())
    return Labels(name=name, description=description, tags=listed)


def _gaps(seen: Seen) -> dict[str, list[str]]:
    return {"missing": list(seen.missing), "left_out": list(seen.left_out)}


def _tell_seen(name: str, seen: Seen, as_json: bool) -> None:
    tell_gaps(seen)
    size, facts = seen.live.source.size, seen.facts
    if as_json:
        found = {
            "name": name,
            "agent": facts.format,
            "session": facts.session,
            "project": facts.project,
            "client_versions": list(facts.versions),
            "bytes": size,
            "messages": dict(facts.messages),
            "side_files": [each.name for each in seen.beside],
        }
        say_json(SCHEMA, {"taken": False, "snapshot": found, **_gaps(seen)})
        return
    beside = counted(len(seen.beside), "file")
    say(
        f"would keep {byte_size(size)} of {facts.format} session {facts.session}, {beside} beside it"
    )
