"""The process behind ``recap.session.worker``: reads jobs from a pipe and brings sessions up to date.

It ends when the pipe closes, whatever it is doing: what it measured is kept turn by turn. It prints
events to its pipe and nothing else.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from recap.config import Settings
from recap.errors import RecapError
from recap.session.facade import Session
from recap.session.model import ProxyObserver
from recap.store import Store

if TYPE_CHECKING:
    from recap.session.observing import Observer, Progress

NICE = 10
REMEMBERED = 8
"""Sessions whose blocks stay in memory between jobs."""


class Cancelled(Exception):  # noqa: N818 - no error
    """The session in work was given up."""


class Inbox:
    """Jobs from the pipe; a line about the job in work is taken at once."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.jobs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.cancelled = 0
        self._stream = stream
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._stream:
            message = json.loads(line)
            if "cancel" in message:
                self.cancelled = message["cancel"]
            else:
                self.jobs.put(message)
        os._exit(0)  # whoever started this process is gone


class Desk:
    """Open stores and sessions that were worked on last."""

    def __init__(self) -> None:
        self._stores: dict[str, Store] = {}
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def session(self, job: dict[str, Any]) -> Session:
        """Return the session of a job, as it was left if it was worked on before."""
        name = json.dumps([job["store"], job["session"], job["settings"], job["observer"]])
        session = self._sessions.pop(name, None)
        if session is None:
            settings = Settings(**job["settings"])
            session = Session(
                **job["session"],
                store=self._store(job["store"]),
                settings=settings,
                observer=_observer(job["observer"], settings),
            )
        self._sessions[name] = session
        if len(self._sessions) > REMEMBERED:
            self._sessions.popitem(last=False)
        return session

    def _store(self, folder: str) -> Store:
        if folder not in self._stores:
            self._stores[folder] = Store.open(Path(folder))
        return self._stores[folder]


def _observer(name: str, settings: Settings) -> Observer:
    if not name:
        return ProxyObserver(settings)
    module, _, factory = name.partition(":")
    return cast("Observer", getattr(import_module(module), factory)(settings))


def work(job: dict[str, Any], desk: Desk, inbox: Inbox, events: IO[bytes]) -> tuple[str, str]:
    """Bring a session up to date; return how that ended and the error."""

    def told(progress: Progress) -> None:
        _tell(events, {"done": progress.done, "total": progress.total})
        if inbox.cancelled == job["number"]:
            raise Cancelled

    try:
        session = desk.session(job)
        if "log" in job:
            from recap.transcript.formats import open_log

            session.observe(open_log(Path(job["log"])), open_turn=False, progress=told)
        else:
            session.observe(job["messages"], dialect=job["dialect"], open_turn=False, progress=told)
    except Cancelled:
        return "cancelled", ""
    except RecapError as err:
        return "failures", str(err)
    except Exception as err:  # noqa: BLE001 - the process edge: its text may hold a conversation
        return "failures", type(err).__name__
    return "done", ""


def _tell(events: IO[bytes], content: dict[str, object]) -> None:
    events.write(json.dumps(content).encode() + b"\n")
    events.flush()


def main() -> None:
    """Work until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for whoever started this process
    with suppress(OSError):
        os.nice(NICE)
    events = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # libraries print
    inbox, desk = Inbox(sys.stdin.buffer), Desk()
    with suppress(BrokenPipeError):
        while True:
            ending, error = work(inbox.jobs.get(), desk, inbox, events)
            _tell(events, {"end": ending, "error": error})


if __name__ == "__main__":
    main()
