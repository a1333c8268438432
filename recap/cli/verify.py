"""``recap verify``: is the store whole, and what of a damaged one can be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.options import json_option
from recap.cli.output import Line, counted, say, say_json
from recap.cli.state import State, folder_option
from recap.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.store.repair import Repair
    from recap.store.verify import Fault
    from recap.transcript.model import Json

SCHEMA = "recap.verify/1"


@click.command("verify", cls=Command, example="recap verify --repair")
@folder_option
@click.option(
    "--repair", "is_repair", is_flag=True, help="Keep what hashes prove of a damaged store."
)
@click.option("--dry-run", is_flag=True, help="With --repair: say what is wrong, change nothing.")
@json_option
def command(state: State, is_repair: bool, dry_run: bool, as_json: bool) -> None:
    """Prove every row of the store by its hash; exit 1 when something is wrong.

    --repair copies the damaged files to a folder of their own first, and never touches that copy.
    """
    from recap.store.repair import repair
    from recap.store.verify import verify

    if not state.is_made:
        raise StoreError(f"there is no store in {state.place}; `recap observe SESSION` makes one")
    faults = verify(state.folder)
    done = repair(state.folder) if is_repair and faults and not dry_run else None
    left = verify(state.folder) if done is not None else faults
    if as_json:
        repaired = None if done is None else repair_json(done)
        shown = [fault._asdict() for fault in faults]
        say_json(SCHEMA, {"store": str(state.place), "faults": shown, "repair": repaired})
    else:
        _tell(state, faults, done)
    if left:
        raise click.exceptions.Exit(1)


def repair_json(done: Repair) -> dict[str, Json]:
    """Return a repair as the object that ``--json`` prints; its keys are stable."""
    return {
        "copy": str(done.copy) if done.copy else None,
        "kept": dict(done.kept),
        "restored": dict(done.restored),
        "lost": dict(done.lost),
        "unknown": list(done.unknown),
        "new_secret": done.is_new_secret,
    }


def _tell(state: State, faults: Sequence[Fault], done: Repair | None) -> None:
    if not faults:
        say(Line(f"nothing is wrong with the store in {state.place}", "good"))
        return
    for fault in faults:
        say(Line(f"{fault.code}: {fault.detail}", "bad"))
        if done is None and not fault.detail.endswith(fault.advice):
            say(f"  {fault.advice}")
    if done is None:
        say(f"{counted(len(faults), 'fault')} in {state.place}")
        return
    say(
        Line("repaired", "good"),
        f"  kept        {_rows(done.kept)}",
        f"  from backup {_rows(done.restored)}",
        f"  lost        {_rows(done.lost)}",
    )
    if done.unknown:
        say(f"  unknown     rows of {', '.join(done.unknown)} may be gone that nothing names")
    if done.is_new_secret:
        say("  secret      made anew: sessions and selections cannot be found again")
    if done.copy is not None:
        say(f"  as it was   {done.copy}")


def _rows(rows: Mapping[str, int]) -> str:
    named = [f"{count} of {table}" for table, count in rows.items() if count]
    return ", ".join(named) or "nothing"
