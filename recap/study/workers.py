"""Work spread over processes, results as they come; nothing of it outlives an interruption."""

from __future__ import annotations

import signal
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from typing import TYPE_CHECKING, TypeVar

from recap.errors import RecapError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

T = TypeVar("T")
R = TypeVar("R")


class Workers:
    """Processes to hand work to; one job is done in this process. Use it in a ``with``."""

    def __init__(self, jobs: int) -> None:
        self._others = set(active_children())
        # A new interpreter each: a forked one would share this process's threads and locks.
        self._pool = (
            ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_end_quietly)
            if jobs > 1
            else None
        )

    def each(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Yield what a function makes of each task, in the order they are done.

        Raises:
            RecapError: A process ended.
        """
        if self._pool is None:
            yield from map(function, tasks)
            return
        running = [self._pool.submit(function, task) for task in tasks]
        try:
            yield from (each.result() for each in as_completed(running))
        except BrokenProcessPool:
            raise RecapError(
                "a process of the study ended, most likely for want of memory; try fewer --jobs"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait for the processes; end them where something was raised."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
        if kind is not None:
            for child in set(active_children()) - self._others:
                child.terminate()


def _end_quietly() -> None:
    """Let an interrupt from the keyboard end this process at once; the main one answers it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
