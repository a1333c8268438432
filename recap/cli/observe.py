"""``recap observe``: build the context graphs of sessions, into the store or into a file."""

from __future__ import annotations

import functools
import os
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recap.cli.command import Command
from recap.cli.observing import Observed, Task, files_of, known_of, observed, row_of
from recap.cli.options import (
    STDIN,
    Session,
    json_option,
    merged,
    session_file,
    session_path,
    settings_in_force,
    settings_options,
    source_options,
)
from recap.cli.output import (
    Line,
    byte_size,
    counted,
    milliseconds,
    safe,
    say,
    say_json,
    working,
)
from recap.cli.state import NO_STATE, State, state_options
from recap.cli.writing import refuse_inputs, write_whole
from recap.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.config import Settings

SCHEMA = "recap.observe/2"
MOST_JOBS = 256


@dataclass(frozen=True, slots=True)
class Named:
    """The sessions an invocation names.

    Attributes:
        paths: Logs, and folders to search.
        format: Format given by the user, None to detect it.
    """

    paths: tuple[Path | None, ...]
    format: str | None


def sessions_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add SESSIONS, --latest and --format; the command gets ``named: Named``."""

    @click.argument("sessions", nargs=-1)
    @source_options
    @functools.wraps(function)
    def wrapped(
        sessions: tuple[str, ...], latest: bool, format_name: str | None, **given: Any
    ) -> Any:
        if latest or len(sessions) < 2:
            first = sessions[0] if sessions else None
            paths: tuple[Path | None, ...] = (session_path(first, latest),)
        else:
            paths = tuple(None if name == STDIN else _one_of_several(name) for name in sessions)
        return function(named=Named(paths, format_name), **given)

    return wrapped


def _one_of_several(name: str) -> Path:
    """Return the file of a session; one that is not there fails alone, when it is its turn."""
    try:
        return session_file(name)
    except InputError:
        return Path(name)


def model_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --model to a command that takes ``overrides``, which then hold it."""

    @click.option("--model", metavar="DIR", help="Folder of a proxy model, not the installed one.")
    @functools.wraps(function)
    def wrapped(model: str | None, overrides: Mapping[str, object], **given: Any) -> Any:
        return function(overrides=merged(overrides, {"proxy_model": model}), **given)

    return wrapped


@click.command(
    "observe", cls=Command, example="recap observe ~/.claude/projects --observer proxy --dry-run"
)
@sessions_options
@click.option("-o", "--out", metavar="GRAPH", help="Write the graph of one session to a file.")
@click.option(
    "--jobs", type=click.IntRange(1, MOST_JOBS), default=1, help="Sessions worked on at a time."
)
@click.option("--dry-run", is_flag=True, help="Write nothing, say what would be written.")
@state_options
@settings_options
@model_option
@json_option
def command(
    named: Named,
    out: str | None,
    jobs: int,
    dry_run: bool,
    state: State,
    overrides: Mapping[str, object],
    as_json: bool,
) -> None:
    """Build the context graph of each session, and keep it in the store.

    SESSIONS are logs, or folders that are searched for logs. A graph holds block ids, scores and
    links, and no text. `compact`, `explain` and `graph` go on from it; with -o it is written to a
    file that they take with --graph.

    The observer `reuse` takes milliseconds a session. `proxy` replays each completed turn that the
    graph has not seen with a small local model, seconds each: every turn is kept before the
    next one begins, so it may be interrupted.
    """
    settings, _ = settings_in_force(overrides)
    if "proxy_model" in overrides and settings.observer == "reuse":
        raise UsageError("--model names a proxy model: give --observer proxy as well")
    if not dry_run:
        _demand_model(settings)
    task = Task(named.format, settings, state, not dry_run)
    if out is not None:
        if len(named.paths) > 1:
            raise UsageError("-o writes the graph of one session; leave it out for several")
        _to_file(named.paths[0], Path(out), task, as_json)
        return
    if not state.is_kept and not dry_run:
        raise UsageError("--no-store keeps nothing: give -o GRAPH, or --dry-run")
    if not dry_run:  # by name, so that a store that cannot be opened is an error: this keeps graphs
        task = replace(task, state=replace(state, folder=state.place))
    files = list(files_of(named.paths))
    rows = []
    with working(f"observing {counted(len(files), 'session')}") as report:
        for row in observed(files, task, jobs, report):
            rows.append(row)
            if not as_json and not row.is_skipped:
                say(*_lines(row, dry_run))
    rows.sort(key=lambda row: row.session)
    _finish(rows, dry_run, as_json)


def _demand_model(settings: Settings) -> None:
    """Raise an error, with the command that mends it, where the observer's model is missing."""
    if settings.observer == "proxy":
        from recap.capture.models import resolve

        resolve(settings.proxy_model, os.environ)


def _lines(row: Observed, dry_run: bool) -> list[Line]:
    if row.error:
        return [Line(f"failed    {row.error}", "bad")]
    lines = [
        Line(
            f"{counted(row.blocks, 'block')}, {counted(row.edges, 'support edge')}, "
            f"{counted(row.turns, 'turn')}, {byte_size(row.bytes)} in {milliseconds(row.seconds)}\n"
            f"  {safe(row.session)}"
        )
    ]
    if dry_run and row.to_observe:
        lines.append(Line(f"  {counted(row.to_observe, 'turn')} would be replayed"))
    lines += [
        Line(f"  {counted(times, 'turn')} not measured: {reason}", "bad")
        for reason, times in row.dropped.items()
    ]
    return lines


def _finish(rows: Sequence[Observed], dry_run: bool, as_json: bool) -> None:
    """Print the sum; exit status 1 when a session failed, or there was none."""
    failed = [row for row in rows if row.error and not row.is_skipped]
    done = [row for row in rows if not row.error]
    skipped = len(rows) - len(done) - len(failed)
    if as_json:
        sessions = [asdict(row) for row in rows if not row.is_skipped]
        say_json(SCHEMA, {"written": not dry_run, "sessions": sessions, "skipped": skipped})
    else:
        what = "would be kept (dry run)" if dry_run else "kept"
        passed = f", {counted(skipped, 'other file')} passed over" if skipped else ""
        say(f"{counted(len(done), 'graph')} {what}, {len(failed)} failed{passed}")
    if not rows or (not done and not failed):
        raise InputError("no session found there; name a log, or a folder that holds some")
    if failed:
        raise click.exceptions.Exit(1)


def _to_file(path: Path | None, target: Path, task: Task, as_json: bool) -> None:
    """Write the graph of one session to a file, that of a turn in work included."""
    from recap.graph.codec import encode

    session = Session(path, task.format)
    refuse_inputs(target, {"the session": path})
    started = time.perf_counter()
    # What a model measured before is not measured again; text reuse takes milliseconds anyway.
    state = NO_STATE if task.settings.observer == "reuse" else task.state
    look = replace(task, state=state, keep=False)
    with working(f"observing {session.name}") as report:
        known = known_of(session, look, report, open_turn=task.keep or state is NO_STATE)
    row = row_of(session.name, known, time.perf_counter() - started)
    if task.keep:
        write_whole(target, encode(known.graph))
    if as_json:
        content = {"out": str(target), "written": task.keep, "sessions": [asdict(row)]}
        say_json(SCHEMA, {**content, "skipped": 0})
        return
    what = "written" if task.keep else "not written (dry run)"
    say(*_lines(row, not task.keep), f"{what} to {target}")
