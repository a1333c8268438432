"""Standard streams that are closed, pipes and devices as files, and signals: never a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Cli  # noqa: TC001 - pytest asks for the type

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = [sys.executable, "-m", "recap"]


def shell(cli: Cli, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of a shell in which ``$recap`` is the program."""
    return subprocess.run(
        ["bash", "-c", command], cwd=cli.folder, env=cli.environment(recap=" ".join(PROGRAM)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def python(cli: Cli, code: str) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cli.folder, env=cli.environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    ["inspect - <&-", "check $S >&-", "check - <&- >&-", "config >&-", "compact $S --request-file - <&-"],
)  # fmt: skip
def test_a_closed_stream_is_one_line(cli: Cli, demo: Path, command: str) -> None:
    done = shell(cli, f"S={demo}; $recap {command}")
    assert done.returncode == 1
    assert "is closed" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_closed_standard_error_is_no_fault(cli: Cli, demo: Path) -> None:
    assert shell(cli, f"$recap check {demo} 2>&-").stdout.startswith("valid")
    assert shell(cli, "$recap check nothing 2>&-").returncode == 1


@pytest.mark.parametrize(
    "command", ["inspect $S", "explain $S", "compact $S --request go", "config"]
)
def test_a_reader_that_leaves_is_no_fault(cli: Cli, demo: Path, command: str) -> None:
    done = shell(cli, f"S={demo}; $recap {command} | true; exit ${{PIPESTATUS[0]}}")
    assert done.returncode in (0, 141)
    assert done.stderr == ""


def test_a_session_comes_through_process_substitution(cli: Cli, demo: Path) -> None:
    for command in ("inspect", "check", "check --dialect claude-code", "compact --request go"):
        plain = shell(cli, f"$recap {command} {demo}")
        through = shell(cli, f"$recap {command} <(sleep 0.1; cat {demo})")
        assert plain.returncode == through.returncode == 0
        assert through.stdout.split("\n")[1:] == plain.stdout.split("\n")[1:]


def test_a_pipe_that_nobody_writes_to_ends_no_command_in_waiting(cli: Cli, demo: Path) -> None:
    os.mkfifo(cli.folder / "pipe")
    commands: Sequence[Sequence[str]] = (
        ("inspect", "pipe"),
        ("check", "pipe"),
        ("check", "pipe", "--repair", "out"),
        ("compact", "pipe"),
        ("compact", str(demo), "--graph", "pipe"),
        ("compact", str(demo), "--request-file", "pipe"),
    )
    for arguments in commands:
        result = cli(*arguments)
        assert result.status == 1
        assert "pipe that nobody writes to" in result.err
    assert "nobody writes" in cli("config", RECAP_CONFIG="pipe").err


def test_devices_are_refused_as_files(cli: Cli, demo: Path) -> None:
    for arguments in (
        ("inspect", "/dev/zero"),
        ("compact", str(demo), "--graph", "/dev/zero"),
        ("compact", str(demo), "--request-file", "/dev/zero"),
    ):
        result = cli(*arguments)
        assert result.status == 1
        assert "is a device" in result.err
    assert "is a device" in cli("config", RECAP_CONFIG="/dev/zero").err
    assert cli("config", RECAP_CONFIG="/dev/null").status == 0


def test_a_missing_graph_or_request_gets_no_hint_about_sessions(cli: Cli, demo: Path) -> None:
    for option in ("--graph", "--request-file"):
        result = cli("compact", str(demo), option, "gone")
        assert result.err == "recap: gone: no such file\n"
    assert "--latest" in cli("inspect", "gone").err


def test_an_interrupt_leaves_no_trace_at_any_time(cli: Cli, demo: Path) -> None:
    """Before the interpreter has read its own modules the trace is Python's: that is left out."""
    for wait in (0.04, 0.06, 0.08, 0.1, 0.13, 0.17, 0.22, 0.3):
        program = subprocess.Popen(
            [*PROGRAM, "compact", str(demo), "--request", "go"], cwd=cli.folder,
            env=cli.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        time.sleep(wait)
        program.send_signal(signal.SIGINT)
        _, err = program.communicate()
        if b"Traceback" in err:
            assert b"recap/cli" not in err
        else:
            assert program.returncode in (0, 130, -signal.SIGINT)
            assert err in (b"", b"recap: interrupted\n")


def test_a_signal_within_a_callback_of_the_interpreter_is_not_lost(cli: Cli) -> None:
    """Python prints and drops what a weak reference's callback raises: the import system has some."""
    code = (
        "import os, signal, time, weakref\nfrom recap import cli\n"
        "class Held: pass\n"
        "def stopped(arguments=None):\n"
        "    held = Held()\n"
        "    watch = weakref.ref(held, lambda _: os.kill(os.getpid(), signal.SIGINT))\n"
        "    del held\n"
        "    time.sleep(60)\n"
        "cli.recap.main = lambda *_, **__: stopped()\n"
        "cli.main([])\n"
    )
    done = python(cli, code)
    assert done.returncode == 130
    assert done.stderr == "recap: interrupted\n"


def test_a_signal_is_answered_as_soon_as_it_is_let_in(cli: Cli) -> None:
    code = (
        "import os, signal\nfrom recap import cli\n"
        "answer = cli.answer_signals\n"
        "cli.answer_signals = lambda: (answer(), os.kill(os.getpid(), signal.SIGINT))\n"
        "cli.main(['config'])\n"
    )
    done = python(cli, code)
    assert (done.returncode, done.stderr) == (130, "recap: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_a_file_is_written_leaves_nothing(cli: Cli, number: signal.Signals) -> None:
    code = (
        "import time\nfrom pathlib import Path\nfrom recap import cli\n"
        "from recap.cli.writing import write_whole\n"
        "def slow():\n    yield b'begun'\n    print('begun', flush=True)\n    time.sleep(60)\n"
        "cli.recap.main = lambda *_, **__: write_whole(Path('out'), slow())\n"
        "cli.main([])\n"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code], cwd=cli.folder, env=cli.environment(), stdout=subprocess.PIPE
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"begun\n"
    program.send_signal(number)
    program.communicate()
    assert program.returncode == 128 + number
    assert list(Path(cli.folder).iterdir()) == []


def test_an_ignored_interrupt_stays_ignored(cli: Cli) -> None:
    done = shell(
        cli,
        "trap '' INT; $recap --version & P=$!; kill -INT $P; wait $P",
    )
    assert done.returncode == 0
