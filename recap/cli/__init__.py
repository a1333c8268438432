"""The command line: one verb per task, each a few lines over a public function of the library.

``main`` is the entry point. Commands are imported when they are called, so ``recap --help`` loads
neither numpy nor a reader.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recap import __version__
from recap.cli.failures import PIPE_CLOSED, answer_signals, end_at_once, failure_of
from recap.cli.output import complain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS = {
    "compact": "A short, valid context for a request, from a session",
    "explain": "Why each block of a session is kept or dropped for a request",
    "inspect": "What a session holds: turns, blocks, sizes, odd lines",
    "graph": "The context graph of a session: importance and support edges",
    "observe": "Build the context graphs of sessions and keep them",
    "check": "Would the provider accept these messages, the client resume this log?",
    "trim": "A session without its dead weight, every word of it kept",
    "sessions": "The sessions of all agents on this computer",
    "snapshot": "Keep a session as it is now, for good",
    "branch": "A new session that begins where a snapshot stands, trimmed or whole",
    "tree": "Snapshots and branches, and what came of what",
    "show": "A snapshot or branch; the content that a stub stands for",
    "diff": "Two sessions as the model sees them: kept, stubbed, dropped, added",
    "restore": "The original bytes of a snapshot, in a new file",
    "delete": "Take a snapshot away, or the record of a branch",
    "gc": "Remove bytes that no snapshot needs any more",
    "verify": "Is the store whole? What of a damaged one can be saved?",
    "proxy": "The small model that measures attention: install, status, remove",
    "study": "How methods compare on real sessions: does each keep what is needed next?",
    "demo": "See it work on a session that ships with the package",
    "config": "Settings in force and where they come from",
    "doctor": "What is installed, which paths are active, what is wrong",
    "completions": "Shell completions for bash, zsh or fish",
}
"""Every command and its one-line help; the module ``recap.cli.NAME`` holds it."""


class LazyGroup(click.Group):
    """A group that imports a command when it is called; its help needs the table alone."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None for an unknown one."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"recap.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is answered with the nearest name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    epilog="\b\nExamples:\n  recap demo\n"
    "  recap compact --latest --request 'add a retry to the upload' -o context.json",
)
@click.version_option(__version__, prog_name="recap", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the trace of an error.")
@click.pass_context
def recap(context: click.Context) -> None:
    """Short, valid contexts for coding agents, without a model call.

    Exit status: 0 good, 1 failure or findings, 2 wrong use.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    # Nothing here multiplies matrices: numpy's BLAS need not start its threads (0.1 s of CPU).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(run(sys.argv[1:] if arguments is None else arguments, begin=answer_signals))


def run(arguments: Sequence[str], *, begin: Callable[[], None] = lambda: None) -> int:
    """Run the command line and return its exit status. No exception leaves it.

    Args:
        arguments: The words of the command line.
        begin: Called where every exception is answered, those of signals that it lets in as well.
    """
    if sys.stderr is None:  # closed: there is nobody to tell
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - open until the end
    if sys.stdout is None:
        complain("standard output is closed")
        return 1
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a character says so
            stream.reconfigure(errors="backslashreplace")
    try:
        begin()
        status = recap.main(list(arguments), prog_name="recap", standalone_mode=False)
        sys.stdout.flush()
        end_at_once()
    except BaseException as err:  # noqa: BLE001 - the process edge: every error becomes one line
        end_at_once()
        failure = failure_of(err)
        if failure.message:
            if "--debug" in arguments or os.environ.get("RECAP_DEBUG") == "1":
                traceback.print_exc()
            complain(failure.message)
        if failure.status == PIPE_CLOSED:  # keep the interpreter's last flush quiet as well
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failure.status
    return status if isinstance(status, int) else 0
