"""The frame: help, unknown words, errors in one line, exit status, pipes and interrupts."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from importlib import import_module
from typing import TYPE_CHECKING

import click
import pytest

from recap import __version__
from recap.cli import COMMANDS
from recap.cli.command import Command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

SESSION_COMMANDS = ("compact", "explain", "inspect", "graph", "check")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_lists_every_command(cli: Cli, arguments: tuple[str, ...]) -> None:
    result = cli(*arguments)
    assert result.status == 0
    assert all(name in result.out and text[:30] in result.out for name, text in COMMANDS.items())


def test_version_is_the_package_version(cli: Cli) -> None:
    assert cli("--version").out == f"recap {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(cli: Cli, name: str) -> None:
    command = import_module(f"recap.cli.{name}").command
    assert isinstance(command, Command)
    result = cli(name, "--help")
    assert result.status == 0
    assert command.help
    assert "Example:" in result.out
    assert all(line in result.out for line in command.example.split("\n"))
    assert command.example.startswith(f"recap {name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(cli: Cli, name: str) -> None:
    command = import_module(f"recap.cli.{name}").command
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    assert all(option.help for option in options)


def test_help_loads_neither_numpy_nor_rich_nor_a_reader(cli: Cli) -> None:
    code = (
        "import sys\nfrom recap.cli import run\nrun(['--help'])\n"
        "sys.exit(sum(m in sys.modules for m in ('numpy', 'rich', 'msgspec', 'recap.session')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0


def test_a_mistyped_command_is_answered_with_the_nearest(cli: Cli) -> None:
    result = cli("compcat")
    assert result.status == 2
    assert result.err == "recap: no command 'compcat'; did you mean 'compact'? Try `recap --help`\n"


def test_an_unknown_option_is_wrong_use(cli: Cli) -> None:
    result = cli("compact", "--frobnicate", "x")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("recap: No such option '--frobnicate'")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("name", ["compact", "explain", "inspect", "observe", "check"])
def test_a_session_has_to_be_named(cli: Cli, name: str) -> None:
    result = cli(name)
    assert result.status == 2
    assert "--latest" in result.err


@pytest.mark.parametrize("name", SESSION_COMMANDS)
def test_a_session_and_latest_are_one_too_many(cli: Cli, demo: Path, name: str) -> None:
    assert cli(name, str(demo), "--latest").status == 2


@pytest.mark.parametrize("name", SESSION_COMMANDS)
@pytest.mark.parametrize("kind", ["missing", "folder", "binary", "text"])
def test_what_is_no_session_is_one_line_on_standard_error(
    cli: Cli, tmp_path: Path, name: str, kind: str
) -> None:
    path = tmp_path / "input"
    if kind == "folder":
        path.mkdir()
    elif kind == "binary":
        path.write_bytes(bytes(range(256)) * 8)
    elif kind == "text":
        path.write_text("no session at all\n")
    result = cli(name, str(path))
    assert result.status == 1
    shown = result.err
    assert shown.strip()
    assert "Traceback" not in result.err + result.out
    if name != "check":
        assert result.err.startswith("recap: ")
        assert result.err.count("\n") == 1
        assert "input" in result.err
        assert result.out == ""


@pytest.mark.parametrize("name", ["compact", "explain"])
def test_an_empty_session_cannot_be_compacted(cli: Cli, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.jsonl").touch()
    result = cli(name, "empty.jsonl")
    assert (result.status, result.out) == (1, "")
    assert "no message was read" in result.err


def test_a_session_read_as_the_wrong_format_is_not_lost_in_silence(cli: Cli, demo: Path) -> None:
    result = cli("compact", str(demo), "--format", "codex", "--request", "go on")
    assert (result.status, result.out) == (1, "")
    assert "--format" in result.err


@pytest.mark.parametrize("name", ["inspect", "graph", "check"])
def test_an_empty_session_can_be_looked_at(cli: Cli, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty.jsonl").touch()
    result = cli(name, "empty.jsonl")
    assert (result.status, result.err) == (0, "")
    assert result.out.strip()


def test_an_unknown_format_names_the_known_ones(cli: Cli, demo: Path) -> None:
    result = cli("inspect", str(demo), "--format", "morse")
    assert result.status == 2
    assert "claude-code" in result.err


def test_debug_adds_the_trace(cli: Cli) -> None:
    quiet, loud = cli("inspect", "gone.jsonl"), cli("inspect", "gone.jsonl", "--debug")
    assert "Traceback" not in quiet.err
    assert "Traceback" in loud.err
    assert loud.err.endswith(quiet.err)


def test_debug_can_come_from_the_environment(cli: Cli) -> None:
    assert "Traceback" in cli("inspect", "gone.jsonl", RECAP_DEBUG="1").err


def test_hostile_file_names_do_not_reach_the_terminal(cli: Cli) -> None:
    result = cli("inspect", "evil\x1b[2J\nname")
    assert "\x1b" not in result.err
    assert result.err.count("\n") == 1


def test_a_reader_that_stops_early_ends_it_quietly(cli: Cli, demo: Path) -> None:
    process = cli.process("compact", str(demo), "--retention", "1")
    assert process.stdout
    assert process.stderr
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.stdin
    process.stdin.close()


def test_a_full_disk_is_one_line(cli: Cli, demo: Path) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device, not a path of ours
        process = cli.process("inspect", str(demo), stdout=full)
        _, err = process.communicate()
    assert process.returncode == 1
    assert err == b"recap: no space left on the device; nothing was changed\n"


def unread(pipe: int) -> int:
    """Return the number of bytes that a pipe holds."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_an_interrupt_is_one_line_and_130(cli: Cli) -> None:
    process = cli.process("inspect", "-")
    assert process.stdin
    os.write(process.stdin.fileno(), b"[")
    while unread(process.stdin.fileno()):  # what has read that waits for more
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err.decode().splitlines()[-1] == "recap: interrupted"
    assert b"Traceback" not in err
