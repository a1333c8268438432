"""Exceptions become one line and an exit status."""

from __future__ import annotations

import errno
import signal

import click
import pytest

from recap.cli.failures import Stopped, failure_of
from recap.errors import InputError, InvalidContextError, RecapError, SettingsError, UsageError


@pytest.mark.parametrize("kind", [RecapError, InputError, InvalidContextError])
def test_what_recap_raises_on_purpose_is_a_failure(kind: type[RecapError]) -> None:
    assert failure_of(kind("it is so")) == ("it is so", 1)


@pytest.mark.parametrize("kind", [UsageError, SettingsError])
def test_what_the_caller_asked_wrongly_is_wrong_use(kind: type[UsageError]) -> None:
    assert failure_of(kind("not so")) == ("not so", 2)


def test_an_exit_is_no_message() -> None:
    assert failure_of(click.exceptions.Exit(1)) == ("", 1)


def test_a_closed_pipe_is_no_message() -> None:
    assert failure_of(BrokenPipeError()) == ("", 141)


@pytest.mark.parametrize("err", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_is_130(err: BaseException) -> None:
    assert failure_of(err).status == 130


def test_a_signal_is_the_status_a_shell_gives_it() -> None:
    assert failure_of(Stopped(signal.SIGINT)) == ("interrupted", 130)
    assert failure_of(Stopped(signal.SIGTERM)).status == 143


@pytest.mark.parametrize("quote", ["'{}'", "({})", "{}"])
def test_a_huge_value_that_click_repeats_is_cut(quote: str) -> None:
    message, status = failure_of(click.UsageError(f"Got {quote.format('x' * 5000)}; try again"))
    assert len(message) < 200
    assert message.endswith("try again")
    assert status == 2


def test_a_folder_that_is_gone_is_named_as_such() -> None:
    gone = FileNotFoundError(errno.ENOENT, "No such file or directory")
    assert failure_of(gone) == ("the current folder is gone; change to another one", 1)


def test_a_file_that_may_not_be_read_is_named() -> None:
    message, status = failure_of(PermissionError(errno.EACCES, "Permission denied", "a.jsonl"))
    assert (message, status) == ("cannot use a.jsonl: Permission denied", 1)


def test_a_full_disk_says_that_nothing_changed() -> None:
    message, _ = failure_of(OSError(errno.ENOSPC, "No space left on device", "out.json"))
    assert message == "no space left on the device for out.json; nothing was changed"


def test_running_out_of_memory_says_what_to_try() -> None:
    assert failure_of(MemoryError()).status == 1


def test_any_other_error_asks_for_a_report() -> None:
    message, status = failure_of(ZeroDivisionError("by zero"))
    assert status == 1
    assert "ZeroDivisionError" in message
    assert "--debug" in message
