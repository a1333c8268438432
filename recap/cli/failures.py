"""Errors to one line and an exit status: what the user sees instead of a traceback."""

from __future__ import annotations

import errno
from typing import NamedTuple

import click

from recap.errors import RecapError, UsageError

INTERRUPTED = 130
PIPE_CLOSED = 141
"""What a shell reports for a program ended by SIGPIPE."""


class Failure(NamedTuple):
    """What to print (nothing when empty) and the exit status."""

    message: str
    status: int


def failure_of(err: BaseException) -> Failure:
    """Return how an exception that reached the top is reported."""
    match err:
        case click.exceptions.Exit():
            return Failure("", err.exit_code)
        case KeyboardInterrupt() | click.Abort():
            return Failure("interrupted", INTERRUPTED)
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


def _click_message(err: click.ClickException) -> str:
    message = err.format_message().strip().rstrip(".")
    context = getattr(err, "ctx", None)
    if context is None:
        return message
    return f"{message}{'' if message.endswith('?') else '.'} Try `{context.command_path} --help`"


def _os_message(err: OSError) -> str:
    where = f" {err.filename}" if err.filename else ""
    if err.errno == errno.ENOSPC:
        return f"no space left on the device{' for' + where if where else ''}; nothing was changed"
    return f"cannot use{where or ' a file'}: {err.strerror or err}"
