"""``recap verify``: is the store whole, and what of a damaged one can be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.options import json_option
from recap.cli.output import Line, counted, number, say, say_json
from recap.cli.state import State, folder_option
from recap.cli.versions import homes, settle_first
from recap.errors import StoreError, UsageError
from recap.store import SnapshotRow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.cli.output import Tone
    from recap.store.repair import Repair
    from recap.store.verify import Fault
    from recap.transcript.model import Json

SCHEMA = "recap.verify/1"
WORDS = {
    "whole": "is whole: all its bytes are what was kept",
    "damaged": "cannot be read whole",
    "as made": "is as it was made",
    "went on": "holds other bytes than were written: its client went on with it",
    "gone": "has no file any more",
}


@click.command("verify", cls=Command, example="recap verify --repair\nrecap verify before-refactor")
@click.argument("name", required=False)
@folder_option
@click.option(
    "--repair", "is_repair", is_flag=True, help="Keep what hashes prove of a damaged store."
)
@click.option("--dry-run", is_flag=True, help="With --repair: say what is wrong, change nothing.")
@json_option
def command(name: str | None, state: State, is_repair: bool, dry_run: bool, as_json: bool) -> None:
    """Prove every row of the store and of its backups by its hash; exit 1 when something is wrong.

    With NAME one snapshot is read whole, or the file of one branch. --repair copies the damaged files to
    a folder of their own first, and never touches that copy; files that a command left unfinished when it
    was killed it completes or takes away. It exits 1 when something is lost, or may be.
    """
    from recap.store.verify import verify

    if not state.is_made:
        raise StoreError(f"there is no store in {state.place}; `recap observe SESSION` makes one")
    if name is not None:
        _prove(name, state, is_repair=is_repair, as_json=as_json)
        return
    faults = verify(state.folder)
    done, settled = _mended(state, faults) if is_repair and not dry_run else (None, [])
    left = verify(state.folder) if done or settled else faults
    if as_json:
        repaired = None if done is None else repair_json(done)
        shown = [fault._asdict() for fault in faults]
        said = {"store": str(state.place), "faults": shown, "repair": repaired}
        say_json(SCHEMA, {**said, "settled": settled})
    else:
        _tell(state, faults, done, is_settled=bool(settled))
    if left or (done and is_loss(done)):
        raise click.exceptions.Exit(1)


def is_loss(done: Repair) -> bool:
    """Return True when a repair could not save everything, or cannot know that it did."""
    return bool(done.lost or done.unknown)


def _mended(state: State, faults: Sequence[Fault]) -> tuple[Repair | None, list[Json]]:
    """Repair a damaged store, then complete or undo what was left unfinished."""
    from recap.store.repair import repair

    done = repair(state.folder) if any(each.code != "unfinished" for each in faults) else None
    if not faults:
        return None, []
    with state.opened() as store:
        return done, settle_first(store)


def _prove(name: str, state: State, *, is_repair: bool, as_json: bool) -> None:
    """Judge one snapshot or branch."""
    from recap.cmv.names import find
    from recap.cmv.proving import BAD, prove

    if is_repair:
        raise UsageError("--repair is for the whole store: leave the name out")
    with state.opened() as store:
        row = find(store.history, name)
        proof = prove(store.history, row, homes())
    kind = "snapshot" if isinstance(row, SnapshotRow) else "branch"
    if as_json:
        said = {"kind": kind, "id": row.id, "name": row.name, "state": proof.state}
        path = str(proof.path) if proof.path else None
        say_json(SCHEMA, {**said, "detail": proof.detail, "path": path})
    else:
        text = WORDS[proof.state]
        tone: Tone = "bad" if proof.state in BAD else "good"
        say(Line(f"{kind} {row.name or row.id[:8]} {text}", tone))
        for more in (proof.detail, str(proof.path or "")):
            if more:
                say(f"  {more}")
    if proof.state in BAD:
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
        "damaged_backups": done.backups,
    }


def _tell(state: State, faults: Sequence[Fault], done: Repair | None, *, is_settled: bool) -> None:
    if not faults:
        say(Line(f"nothing is wrong with the store in {state.place}", "good"))
        return
    for fault in faults:
        say(Line(f"{fault.code}: {fault.detail}", "bad"))
        if done is None and not is_settled and not fault.detail.endswith(fault.advice):
            say(f"  {fault.advice}")
    if done is None:
        if not is_settled:
            say(f"{counted(len(faults), 'fault')} in {state.place}")
        return
    say(*_outcome(done))


def _outcome(done: Repair) -> list[Line]:
    lines = [Line("repaired, not all of it" if is_loss(done) else "repaired", _tone(done))]
    if done.kept or done.restored or is_loss(done):
        lines += [
            Line(f"  kept        {_rows(done.kept) or 'nothing'}"),
            Line(f"  from backup {_rows(done.restored) or 'nothing'}"),
            Line(f"  lost        {_losses(done)}", _tone(done)),
        ]
    if done.backups:
        lines.append(Line(f"  backups     {number(done.backups)} damaged, moved away"))
    if done.is_new_secret:
        lines.append(Line("  secret      made anew: sessions and selections cannot be found again"))
    if done.copy is not None:
        lines.append(Line(f"  as it was   {done.copy}"))
    return lines


def _tone(done: Repair) -> Tone:
    return "bad" if is_loss(done) else "good"


def _losses(done: Repair) -> str:
    """Return what is gone: rows that something still names, and those that nothing does."""
    unknown = f"what nothing names any more of {', '.join(done.unknown)}" if done.unknown else ""
    return ", and ".join(filter(None, (_rows(done.lost), unknown))) or "nothing"


def _rows(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{number(count)} of {table}" for table, count in rows.items() if count)
