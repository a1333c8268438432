"""Errors to one line and an exit status: what the user sees instead of a traceback."""

from __future__ import annotations

import errno
import re
import signal
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from recap.errors import SHOWN_CHARS, RecapError, UsageError, shown_path

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

PIPE_CLOSED = 141
"""What a shell reports for a program ended by SIGPIPE."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end the program after it has cleaned up."""


AGAIN_SECONDS = 0.001
"""How much later a signal is answered that came where no exception can leave."""


class Stopped(BaseException):
    """The program was told to end by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def answer_signals() -> None:
    """Let the signals that are not ignored raise ``Stopped``."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.unraisablehook = _answer_again


def end_at_once() -> None:
    """Let a further signal end the program as it is: there is nothing left to clean up."""
    if sys.unraisablehook is _answer_again:
        signal.setitimer(signal.ITIMER_REAL, 0)
    for number in SIGNALS:
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_DFL)


def _stop(number: int, frame: object) -> None:
    raise Stopped(number)


def _answer_again(lost: UnraisableHookArgs) -> None:
    """Raise ``Stopped`` a moment later: what a finalizer or a callback raises, Python drops."""
    if not isinstance(lost.exc_value, Stopped):
        sys.__unraisablehook__(lost)
        return
    number = lost.exc_value.number
    signal.signal(signal.SIGALRM, lambda *_: _stop(number, None))
    signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)


class Failure(NamedTuple):
    """What to print (nothing when empty) and the exit status."""

    message: str
    status: int


def failure_of(err: BaseException) -> Failure:
    """Return how an exception that reached the top is reported."""
    match err:
        case click.exceptions.Exit():
            return Failure("", err.exit_code)
        case Stopped():
            told = "interrupted" if err.number == signal.SIGINT else "told to end"
            return Failure(told, 128 + err.number)
        case KeyboardInterrupt() | click.Abort():
            return Failure("interrupted", 128 + signal.SIGINT)
        case click.ClickException():
            return Failure(_click_message(err), err.exit_code)
        case UsageError():
            return Failure(str(err), 2)
        case RecapError():
            return Failure(str(err), 1)
        case BrokenPipeError() | SystemExit():
            return Failure("", PIPE_CLOSED)  # click makes an exit of a closed pipe
        case OSError():
            return Failure(_os_message(err), 1)
        case MemoryError():
            return Failure("out of memory: try a smaller session, or `recap inspect` on it", 1)
        case _:
            return Failure(
                f"internal error, {type(err).__name__}: {err}; run it again with --debug and "
                "report the trace",
                1,
            )


_QUOTED = re.compile(rf"('[^']{{{SHOWN_CHARS}}})[^']+(')")
_WORD = re.compile(rf"(\S{{{SHOWN_CHARS}}})[^\s')]{{{SHOWN_CHARS},}}")
"""Values that click repeats and that are too long for it, in quotes or bare."""


def _click_message(err: click.ClickException) -> str:
    message = _QUOTED.sub(r"\1...\2", err.format_message().strip().rstrip("."))
    message = _WORD.sub(r"\1...", message)
    context = getattr(err, "ctx", None)
    if context is None:
        return message
    return f"{message}{'' if message.endswith('?') else '.'} Try `{context.command_path} --help`"


def _os_message(err: OSError) -> str:
    if isinstance(err, FileNotFoundError) and not err.filename:
        return "the current folder is gone; change to another one"
    where = f" {shown_path(err.filename)}" if err.filename else ""
    if err.errno == errno.ENOSPC:
        return f"no space left on the device{' for' + where if where else ''}; nothing was changed"
    return f"cannot use{where or ' a file'}: {err.strerror or err}"
