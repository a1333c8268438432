"""``recap observe``: build the context graphs of sessions, into the store or into a file."""

from __future__ import annotations

import functools
import os
import stat
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recap.cli.command import Command
from recap.cli.failures import Stopped
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
    remark,
    safe,
    say,
    say_json,
    working,
)
from recap.cli.state import NO_STATE, State, state_options
from recap.cli.writing import refuse_inputs, write_whole
from recap.errors import InputError, RecapError, UnknownFormatError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from recap.config import Settings
    from recap.session.known import Known
    from recap.session.observing import Progress

SCHEMA = "recap.observe/2"
MOST_JOBS = 256


@dataclass(frozen=True, slots=True)
class Observed:
    """What became of one session.

    Attributes:
        session: Its file.
        blocks, edges, turns, bytes: Size of its graph.
        seconds: Time it took.
        observer: What measured its turns.
        to_observe: Completed turns that the graph has not seen.
        open_turns: Turns it will see once a later message has closed them.
        dropped: Turns that could not be measured this time, by reason.
        error: Why there is no graph, "" where there is one.
        is_skipped: A file of a folder that is no session.
    """

    session: str
    blocks: int = 0
    edges: int = 0
    turns: int = 0
    bytes: int = 0
    seconds: float = 0.0
    observer: str = ""
    to_observe: int = 0
    open_turns: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
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
    task = _Task(named.format, settings, state, not dry_run)
    if out is not None:
        if len(named.paths) > 1:
            raise UsageError("-o writes the graph of one session; leave it out for several")
        _to_file(named.paths[0], Path(out), task, as_json)
        return
    if not state.is_kept and not dry_run:
        raise UsageError("--no-store keeps nothing: give -o GRAPH, or --dry-run")
    if not dry_run:  # by name, so that a store that cannot be opened is an error: this keeps graphs
        task = replace(task, state=replace(state, folder=state.place))
    files = list(_files(named.paths))
    rows = []
    with working(f"observing {counted(len(files), 'session')}") as report:
        for row in _observed(files, task, jobs, report):
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
    files: Sequence[tuple[Path | None, bool]], task: _Task, jobs: int, report: Callable[[str], None]
) -> Iterator[Observed]:
    """Yield what became of each file, as it is done."""
    if jobs == 1 or len(files) < 2:
        yield from (_observe(path, found, task, report) for path, found in files)
        return
    # A new interpreter for each worker: a forked one would share the store's threads and locks.
    with ProcessPoolExecutor(min(jobs, len(files)), get_context("spawn")) as pool:
        running = [pool.submit(_observe, path, found, task) for path, found in files]
        try:
            yield from (each.result() for each in as_completed(running))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _observe(
    path: Path | None, is_found: bool, task: _Task, report: Callable[[str], None] | None = None
) -> Observed:
    """Observe one session; its faults are its row's."""
    started = time.perf_counter()
    session = Session(path, task.format)
    try:
        known = _known(session, task, report)
    except UnknownFormatError as err:
        return Observed(session.name, error=str(err), is_skipped=is_found)
    except RecapError as err:
        return Observed(session.name, error=str(err))
    if not known.table.blocks:
        error = f"{session.name}: no conversation in it"
        return Observed(session.name, error=error, is_skipped=is_found)
    return _row(session.name, known, time.perf_counter() - started)


def _known(
    session: Session,
    task: _Task,
    report: Callable[[str], None] | None = None,
    *,
    open_turn: bool = False,
) -> Known:
    """Return what is known of a session, its turns observed unless this is a look."""
    transcript = session.read()
    watch = _Watch(session.name, report)
    opened = task.state.session(transcript, session.name, task.settings, keep=task.keep)
    with opened as past:
        if not task.keep and not open_turn:
            return past.known(transcript)
        try:
            return past.observe(
                transcript, keep=task.keep, open_turn=open_turn, progress=watch.told
            )
        except (Stopped, KeyboardInterrupt):
            turns = past.row.turns if past.row and task.keep else 0
            if turns:
                remark(f"{counted(turns, 'turn')} kept; the same command goes on from there")
            raise


class _Watch:
    """Tells a person how far the work on a session is."""

    def __init__(self, name: str, report: Callable[[str], None] | None) -> None:
        self._name = name
        self._report = report
        self._started = time.perf_counter()

    def told(self, progress: Progress) -> None:
        """Report a turn that was measured."""
        seconds = time.perf_counter() - self._started
        if self._report is not None:
            left = seconds / progress.done * (progress.total - progress.done)
            self._report(
                f"turn {progress.done} of {progress.total} observed, {seconds:.0f} s, about "
                f"{left:.0f} s to go: {self._name}"
            )


def _row(name: str, known: Known, seconds: float) -> Observed:
    from recap.graph.codec import encode
    from recap.session.observing import dropped_turns

    graph = known.graph
    return Observed(
        name,
        len(graph.ids),
        len(graph.source),
        graph.turns,
        len(encode(graph)),
        round(seconds, 6),
        observer=graph.observer,
        to_observe=max(known.closed_turns - graph.turns, 0),
        open_turns=known.turns_not_observed - max(known.closed_turns - graph.turns, 0),
        dropped=dropped_turns(known),
    )


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


def _to_file(path: Path | None, target: Path, task: _Task, as_json: bool) -> None:
    """Write the graph of one session to a file, that of a turn in work included."""
    from recap.graph.codec import encode

    session = Session(path, task.format)
    refuse_inputs(target, {"the session": path})
    started = time.perf_counter()
    # What a model measured before is not measured again; text reuse takes milliseconds anyway.
    state = NO_STATE if task.settings.observer == "reuse" else task.state
    look = replace(task, state=state, keep=False)
    with working(f"observing {session.name}") as report:
        known = _known(session, look, report, open_turn=task.keep or state is NO_STATE)
    row = _row(session.name, known, time.perf_counter() - started)
    if task.keep:
        write_whole(target, encode(known.graph))
    if as_json:
        content = {"out": str(target), "written": task.keep, "sessions": [asdict(row)]}
        say_json(SCHEMA, {**content, "skipped": 0})
        return
    what = "written" if task.keep else "not written (dry run)"
    say(*_lines(row, not task.keep), f"{what} to {target}")
