"""``recap gc``: bytes that no snapshot needs any more."""

from __future__ import annotations

import re

import click

from recap.cli.command import Command
from recap.cli.options import json_option
from recap.cli.output import byte_size, counted, say, say_json, working
from recap.cli.state import State, folder_option
from recap.cli.versions import opened_store, settle_first
from recap.errors import UsageError, shown

SCHEMA = "recap.gc/1"
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@click.command("gc", cls=Command, example="recap gc --dry-run")
@click.option("--grace", metavar="TIME", default="7d", help="Younger bytes stay: 7d, 12h, 0.")
@click.option("--dry-run", is_flag=True, help="Say what would go, remove nothing.")
@folder_option
@json_option
def command(grace: str, dry_run: bool, state: State, as_json: bool) -> None:
    """Remove bytes that no snapshot needs, and overwrite them with zeros.

    Files that a command left unfinished when it was killed are completed or taken away first. Backups of the store keep them until they are replaced. With a grace of less than a day no other
    process may have the store open.
    """
    from recap.cmv.removing import collect

    seconds = seconds_of(grace)
    with opened_store(state) as store, working("collecting"):
        settled = [] if dry_run else settle_first(store)
        unneeded = collect(store, grace_seconds=0, dry_run=True)
        gone = collect(store, grace_seconds=seconds, dry_run=dry_run)
    waiting = unneeded.objects - gone.objects
    if as_json:
        said = {
            "removed": not dry_run,
            "objects": gone.objects,
            "bytes": gone.size,
            "waiting": waiting,
        }
        say_json(SCHEMA, {**said, "grace_seconds": seconds, "settled": settled})
    else:
        verb = "would remove" if dry_run else "removed"
        say(f"{verb} {counted(gone.objects, 'object')}, {byte_size(gone.size)}")
        if waiting:
            what = f"{counted(waiting, 'object')} that no snapshot needs"
            say(f"{what} came less than {grace.strip()} ago: --grace 0 removes them as well")


def seconds_of(text: str) -> float:
    """Return the seconds of ``7d``, ``12h``, ``30m`` or a number of seconds."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smhd]?)", text.strip(), re.ASCII)
    if match is None:
        raise UsageError(f"--grace takes a time like 7d, 12h or 30m; got {shown(text)}")
    return float(match[1]) * UNITS[match[2]]
