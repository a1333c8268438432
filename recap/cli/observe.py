"""``recap observe``: build the context graphs of sessions, into the store or into a file."""

from __future__ import annotations

import functools
import os
import stat
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recap.cli.command import Command
from recap.cli.options import (
    STDIN,
    Session,
    json_option,
    session_path,
    settings_in_force,
    settings_options,
)
from recap.cli.output import Line, byte_size, counted, milliseconds, safe, say, say_json, working
from recap.cli.state import NO_STATE, State, state_options
from recap.cli.writing import refuse_inputs, write_whole
from recap.errors import InputError, RecapError, UnknownFormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from recap.config import Settings
    from recap.session.known import Known

SCHEMA = "recap.observe/2"
MOST_JOBS = 256


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of one session.

    Attributes:
        session: Its file.
        blocks, edges, turns, bytes: Size of its graph.
        seconds: Time it took.
        error: Why there is no graph, "" where there is one.
        is_skipped: A file of a folder that is no session.
    """

    session: str
    blocks: int = 0
    edges: int = 0
    turns: int = 0
    bytes: int = 0
    seconds: float = 0.0
    error: str = ""
    is_skipped: bool = False


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
    @click.option("--latest", is_flag=True, help="Take the newest session of any agent.")
    @click.option("--format", "format_name", metavar="NAME", help="Format; detected by default.")
    @functools.wraps(function)
    def wrapped(
        sessions: tuple[str, ...], latest: bool, format_name: str | None, **given: Any
    ) -> Any:
        if latest or len(sessions) < 2:
            first = sessions[0] if sessions else None
            paths: tuple[Path | None, ...] = (session_path(first, latest),)
        else:
            paths = tuple(None if name == STDIN else Path(name) for name in sessions)
        return function(named=Named(paths, format_name), **given)

    return wrapped


@click.command("observe", cls=Command, example="recap observe ~/.claude/projects --jobs 4")
@sessions_options
@click.option("-o", "--out", metavar="GRAPH", help="Write the graph of one session to a file.")
@click.option(
    "--jobs", type=click.IntRange(1, MOST_JOBS), default=1, help="Sessions worked on at a time."
)
@click.option("--dry-run", is_flag=True, help="Write nothing, say what would be written.")
@state_options
@settings_options
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
    """Build the context graph of each session from text reuse, and keep it in the store.

    SESSIONS are logs, or folders that are searched for logs. A graph holds block ids, scores and
    links, and no text. `compact`, `explain` and `graph` go on from it; with -o it is written to a
    file that they take with --graph.
    """
    settings, _ = settings_in_force(overrides)
    if out is not None:
        if len(named.paths) > 1:
            raise UsageError("-o writes the graph of one session; leave it out for several")
        session = Session(named.paths[0], named.format)
        _to_file(session, Path(out), settings, dry_run, as_json)
        return
    if not state.is_kept and not dry_run:
        raise UsageError("--no-store keeps nothing: give -o GRAPH, or --dry-run")
    if not dry_run:  # by name, so that a store that cannot be opened is an error: this keeps graphs
        state = replace(state, folder=state.place)
    files = list(_files(named.paths))
    task = _Task(named.format, settings, state, not dry_run)
    rows = []
    with working(f"observing {counted(len(files), 'session')}"):
        for row in _observed(files, task, jobs):
            rows.append(row)
            if not as_json and not row.is_skipped:
                say(_line(row))
    rows.sort(key=lambda row: row.session)
    _finish(rows, dry_run, as_json)


@dataclass(frozen=True, slots=True)
class _Task:
    """What is done with each file; travels to the processes that do it."""

    format: str | None
    settings: Settings
    state: State
    keep: bool


def _files(paths: Sequence[Path | None]) -> Iterator[tuple[Path | None, bool]]:
    """Yield each file with whether it was found in a folder; there, what is no log is passed over."""
    for path in paths:
        if path is not None and path.is_dir():
            for folder, folders, names in os.walk(path):
                folders.sort()
                found = (Path(folder) / name for name in sorted(names))
                yield from ((file, True) for file in found if _is_regular(file))
        else:
            yield path, False


def _is_regular(path: Path) -> bool:
    """Return False for a pipe, a device or a link to nothing; what cannot be looked at is tried."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _observed(
    files: Sequence[tuple[Path | None, bool]], task: _Task, jobs: int
) -> Iterator[Observed]:
    """Yield what became of each file, as it is done."""
    if jobs == 1 or len(files) < 2:
        yield from (_observe(path, found, task) for path, found in files)
        return
    # A new interpreter for each worker: a forked one would share the store's threads and locks.
    with ProcessPoolExecutor(min(jobs, len(files)), get_context("spawn")) as pool:
        running = [pool.submit(_observe, path, found, task) for path, found in files]
        try:
            yield from (each.result() for each in as_completed(running))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _observe(path: Path | None, is_found: bool, task: _Task) -> Observed:
    """Observe one session; its faults are its row's."""
    started = time.perf_counter()
    session = Session(path, task.format)
    try:
        known = _known(session, task)
    except UnknownFormatError as err:
        return Observed(session.name, error=str(err), is_skipped=is_found)
    except RecapError as err:
        return Observed(session.name, error=str(err))
    if not known.table.blocks:
        error = f"{session.name}: no conversation in it"
        return Observed(session.name, error=error, is_skipped=is_found)
    return _row(session.name, known, time.perf_counter() - started)


def _known(session: Session, task: _Task) -> Known:
    transcript = session.read()
    opened = task.state.session(transcript, session.name, task.settings, keep=task.keep)
    with opened as past:
        return past.observe(transcript, keep=task.keep)


def _row(name: str, known: Known, seconds: float) -> Observed:
    from recap.graph.codec import encode

    graph = known.graph
    return Observed(
        name, len(graph.ids), len(graph.source), graph.turns, len(encode(graph)), round(seconds, 6)
    )


def _line(row: Observed) -> Line:
    if row.error:
        return Line(f"failed    {row.error}", "bad")
    return Line(
        f"{counted(row.blocks, 'block')}, {counted(row.edges, 'support edge')}, "
        f"{counted(row.turns, 'turn')}, {byte_size(row.bytes)} in {milliseconds(row.seconds)}\n"
        f"  {safe(row.session)}"
    )


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


def _to_file(
    session: Session, target: Path, settings: Settings, dry_run: bool, as_json: bool
) -> None:
    """Write the graph of one session to a file."""
    from recap.graph.codec import encode

    refuse_inputs(target, {"the session": session.path})
    started = time.perf_counter()
    known = _known(session, _Task(session.format, settings, NO_STATE, keep=False))
    row = _row(session.name, known, time.perf_counter() - started)
    if not dry_run:
        write_whole(target, encode(known.graph))
    if as_json:
        content = {"out": str(target), "written": not dry_run, "sessions": [asdict(row)]}
        say_json(SCHEMA, {**content, "skipped": 0})
        return
    say(_line(row), f"{'not written (dry run)' if dry_run else 'written'} to {target}")
