"""The context graphs of sessions, one by one or in processes of their own: what became of each."""

from __future__ import annotations

import os
import stat
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from recap.cli.failures import Stopped
from recap.cli.options import Session
from recap.cli.output import counted, remark
from recap.errors import RecapError, UnknownFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from recap.cli.state import State
    from recap.config import Settings
    from recap.session.known import Known
    from recap.session.observing import Progress


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
class Task:
    """What is done with each file; travels to the processes that do it.

    Attributes:
        format: Format given by the user, None to detect it.
        settings: In force.
        state: Where what is learned is kept.
        keep: False looks, and leaves no trace.
    """

    format: str | None
    settings: Settings
    state: State
    keep: bool


def files_of(paths: Sequence[Path | None]) -> Iterator[tuple[Path | None, bool]]:
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


def observed(
    files: Sequence[tuple[Path | None, bool]], task: Task, jobs: int, report: Callable[[str], None]
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
    path: Path | None, is_found: bool, task: Task, report: Callable[[str], None] | None = None
) -> Observed:
    """Observe one session; its faults are its row's."""
    started = time.perf_counter()
    session = Session(path, task.format)
    try:
        known = known_of(session, task, report)
    except UnknownFormatError as err:
        return Observed(session.name, error=str(err), is_skipped=is_found)
    except RecapError as err:
        return Observed(session.name, error=str(err))
    if not known.table.blocks:
        error = f"{session.name}: no conversation in it"
        return Observed(session.name, error=error, is_skipped=is_found)
    return row_of(session.name, known, time.perf_counter() - started)


def known_of(
    session: Session,
    task: Task,
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


def row_of(name: str, known: Known, seconds: float) -> Observed:
    """Return what is told of a session of which this is known, after the time it took."""
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
