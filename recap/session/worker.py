"""A background worker: one process of low priority that measures turns while requests go on.

A request hands its session over and goes on: nothing here blocks or raises into it. Sessions wait in
a bounded queue, of which the newest state counts. The process may be killed at any instant: the turns
it measured are kept, the one in work is measured again. It ends with the process that started it.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from recap.transcript.model import Transcript

if TYPE_CHECKING:
    from recap.config import Settings
    from recap.turns import SessionKey

QUEUE = 64
"""Sessions that wait at most."""

QUEUE_BYTES = 1 << 28
"""Bytes of messages that wait at most; one session may have more."""

ATTEMPTS = 3
"""Times a session may end the process before a turn of it was measured; then it is given up."""

IDLE_SECONDS = 300.0
"""How long a process with nothing to do keeps its model in memory."""

CHILD = "recap.session.background"
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Job:
    """A session to bring up to date.

    Attributes:
        store: Folder of its store.
        session: What names it; jobs of one name in one store are states of one session.
        label: What people know it by.
        settings: Coefficients.
        dialect: Dialect of its messages, or ``auto``; of a log its format, "" to detect it.
    """

    store: Path
    session: SessionKey
    label: str
    settings: Settings
    dialect: str = "auto"


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """What a worker does and did, in numbers.

    Attributes:
        session: What it works on; None for nothing.
        turns_done, turns_total: Of that.
        queued: Sessions that wait.
        done: Sessions that were brought up to date.
        dropped: Sessions that were never begun: the queue was full, they are no JSON, or were given
            up before.
        cancelled: Sessions that were cancelled.
        failures: Sessions that ended with an error, or were given up.
        restarts: Times the process ended by itself.
        error: The last error, in one line without a word of a conversation.
        pid: The process; None while there is none.
    """

    session: SessionKey | None = None
    turns_done: int = 0
    turns_total: int = 0
    queued: int = 0
    done: int = 0
    dropped: int = 0
    cancelled: int = 0
    failures: int = 0
    restarts: int = 0
    error: str = ""
    pid: int | None = None


@dataclass(slots=True)
class _Task:
    """A job in the queue."""

    job: Job
    number: int
    data: bytes
    is_cancelled: bool = False

    @property
    def name(self) -> tuple[Path, SessionKey]:
        return self.job.store, self.job.session


class Worker:
    """Measures sessions in the background, one after the other; for all threads.

    Nothing is started before the first session is submitted.
    """

    def __init__(self, *, queue: int = QUEUE, attempts: int = ATTEMPTS, observer: str = "") -> None:
        """Make a worker.

        Args:
            queue: Sessions that may wait; when one more comes the oldest goes.
            attempts: Times a session may end the process before a turn of it was measured.
            observer: Another observer than the settings' model, as ``module:name`` of what makes it
                of ``Settings``.
        """
        self._most, self._attempts, self._observer = queue, attempts, observer
        self._changed = threading.Condition()
        self._queue: OrderedDict[tuple[Path, SessionKey], _Task] = OrderedDict()
        self._progress = WorkerProgress()
        self._numbers = count(1)
        self._crashes: dict[tuple[Path, SessionKey], int] = {}
        self._current: _Task | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._is_paused = False
        self._is_closed = self._is_killed = False

    def submit(self, job: Job, messages: object) -> bool:
        """Have a session brought up to date; False where it cannot be handed over.

        Args:
            job: The session.
            messages: Its message list, or the path of its log. A transcript that was read already
                is not handed over.
        """
        number = next(self._numbers)
        data = _encoded(job, number, messages, self._observer)
        with self._changed:
            crashes = self._crashes.get((job.store, job.session), 0)
            if data is None or self._is_closed or crashes >= self._attempts:
                self._count(dropped=1)
                return False
            task = _Task(job, number, data)
            self._queue[task.name] = task  # a state that waits already keeps its place
            waiting = sum(len(each.data) for each in self._queue.values())
            while len(self._queue) > self._most or (waiting > QUEUE_BYTES and len(self._queue) > 1):
                _, oldest = self._queue.popitem(last=False)
                waiting -= len(oldest.data)
                self._count(dropped=1)
            self._is_paused = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="recap-worker", daemon=True)
                self._thread.start()
                atexit.register(self.close)
            self._changed.notify_all()
        return True

    def cancel(self, session: SessionKey) -> bool:
        """Give up a session, in whatever store; False when it neither waits nor is in work.

        The turn in work is finished, and kept.
        """
        with self._changed:
            names = [name for name in self._queue if name[1] == session]
            for name in names:
                del self._queue[name]
                self._count(cancelled=1)
            task, child = self._current, self._child
            if task is None or task.job.session != session:
                return bool(names)
            task.is_cancelled = True
        if child is not None:
            _cancel(child, task)
        return True

    def progress(self) -> WorkerProgress:
        """Return what it does at the moment."""
        with self._changed:
            return replace(
                self._progress,
                session=None if self._current is None else self._current.job.session,
                queued=len(self._queue),
                pid=None if self._child is None else self._child.pid,
            )

    def close(self, *, wait: bool = False, timeout: float | None = None) -> None:
        """End the process, with what waits given up; with ``wait`` after all of it is done."""
        with self._changed:
            self._is_closed, self._is_paused = True, False
            if not wait:
                self._is_killed = True
                self._count(dropped=len(self._queue))
                self._queue.clear()
            child, thread = self._child, self._thread
            self._changed.notify_all()
        if not wait and child is not None:
            _end(child)
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        atexit.unregister(self.close)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        """Work off the queue: the only place that starts, feeds and reads the process."""
        while (task := self._next()) is not None:
            try:
                is_ended = self._work(task)
            except (OSError, ValueError):  # no process can be started, or its pipe is gone
                is_ended = False
            if not is_ended:
                self._recover(task)
        self._stop()

    def _next(self) -> _Task | None:
        """Return the next job, as soon as there is one; None when the worker is closed."""
        with self._changed:
            self._current = None
            self._progress = replace(self._progress, turns_done=0, turns_total=0)
            while not (self._queue and not self._is_paused):
                if self._is_closed:
                    return None
                if not self._changed.wait(IDLE_SECONDS):
                    self._stop()
            _, self._current = self._queue.popitem(last=False)
            return self._current

    def _work(self, task: _Task) -> bool:
        """Have the process do a job; False when it ended before the job did."""
        child = self._started()
        assert child.stdin is not None
        assert child.stdout is not None
        if not _write(child.stdin, task.data):
            return False
        if task.is_cancelled:  # before there was a process, or while it was written
            _cancel(child, task)
        for line in child.stdout:
            event = json.loads(line)
            with self._changed:
                if "end" in event:
                    self._count(**{event["end"]: 1})
                    self._progress = replace(self._progress, error=event["error"])
                    return True
                done, total = event["done"], event["total"]
                self._progress = replace(self._progress, turns_done=done, turns_total=total)
                self._crashes.pop(task.name, None)
        return False

    def _started(self) -> subprocess.Popen[bytes]:
        """Return the process, a new one where it has ended."""
        child = self._child
        if child is None or child.poll() is not None:
            self._stop()  # one that ended by itself has its pipes still
            path = os.pathsep.join(each or str(Path.cwd()) for each in sys.path)
            child = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    CHILD,
                ],  # -P: the current folder is no place of modules
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=os.environ | dict.fromkeys(ONE_THREAD, "1") | {"PYTHONPATH": path},
            )
        with self._changed:
            self._child = child
            if self._is_killed:
                child.kill()
        return child

    def _recover(self, task: _Task) -> None:
        """Put a job back whose process is gone; alone it waits until one is submitted again."""
        self._stop()
        with self._changed:
            if self._is_killed:
                return
            self._crashes[task.name] = self._crashes.get(task.name, 0) + 1
            self._is_paused = not (self._is_closed or self._queue)
            if task.is_cancelled:
                self._count(restarts=1, cancelled=1)
            elif self._crashes[task.name] >= self._attempts:
                self._count(restarts=1, failures=1)
            else:
                self._count(restarts=1)
                if task.name not in self._queue:  # a newer state goes before
                    self._queue[task.name] = task
                self._queue.move_to_end(task.name, last=False)

    def _stop(self) -> None:
        with self._changed:
            child, self._child = self._child, None
        if child is not None:
            _end(child)

    def _count(self, **more: int) -> None:
        """Add to counts; the lock is held."""
        sums = {name: getattr(self._progress, name) + n for name, n in more.items()}
        self._progress = replace(self._progress, **sums)


def _encoded(job: Job, number: int, messages: object, observer: str) -> bytes | None:
    """Return the line that hands a job over; None for messages that are no JSON."""
    if isinstance(messages, Transcript):
        return None
    session = {"id": job.session.id, "agent": job.session.agent, "tenant": job.session.tenant}
    content: dict[str, Any] = {
        "number": number,
        "store": os.fsdecode(job.store),
        "session": session | {"label": job.label},
        "settings": asdict(job.settings),
        "dialect": job.dialect,
        "observer": observer,
    }
    content |= (
        {"log": os.fsdecode(messages)} if isinstance(messages, Path) else {"messages": messages}
    )
    try:
        return msgspec.json.encode(content) + b"\n"
    except (TypeError, ValueError, OverflowError, RecursionError):  # lone surrogates, infinity
        with suppress(TypeError, ValueError, RecursionError):
            return json.dumps(content).encode() + b"\n"
    return None


def _cancel(child: subprocess.Popen[bytes], task: _Task) -> None:
    if child.stdin is not None:
        _write(child.stdin, b'{"cancel": %d}\n' % task.number)


def _write(stream: IO[bytes], line: bytes) -> bool:
    """Write a line; False where nobody reads any more."""
    try:
        stream.write(line)
        stream.flush()
    except (OSError, ValueError):  # ValueError: closed meanwhile
        return False
    return True


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a process: all it has to lose is the turn in work."""
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
