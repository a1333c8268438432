"""Files are written whole or not at all, for the owner alone, never over the source."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recap.cli.writing import refuse_inputs, write_whole
from recap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Cli


def test_a_file_is_written_for_the_owner_alone(tmp_path: Path) -> None:
    write_whole(tmp_path / "out", b"data")
    assert (tmp_path / "out").read_bytes() == b"data"
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_an_existing_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"something longer")
    with (tmp_path / "out").open("rb") as before:
        write_whole(tmp_path / "out", b"new")
        assert before.read() == b"something longer"
    assert (tmp_path / "out").read_bytes() == b"new"


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", b"data")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"data"


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    with pytest.raises(TypeError):
        write_whole(tmp_path / "out", "text")  # type: ignore[arg-type]
    assert (tmp_path / "out").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"data")
    reader.join()
    assert read == [b"data"]
    assert pipe.is_fifo()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder"):
        write_whole(tmp_path, b"data")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone"):
        write_whole(tmp_path / "gone" / "out", b"data")


def test_an_input_is_refused_and_another_file_is_not(tmp_path: Path) -> None:
    source = tmp_path / "session.jsonl"
    source.touch()
    refuse_inputs(tmp_path / "other", {"the session": source})
    refuse_inputs(source, {"the session": None})
    with pytest.raises(UsageError, match=r"is the session itself, and Recap never changes"):
        refuse_inputs(Path(os.path.relpath(source)), {"the session": source})


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_another_name_of_an_input_is_the_input(
    tmp_path: Path, make: Callable[[Path, Path], None]
) -> None:
    source, other = tmp_path / "session.jsonl", tmp_path / "other"
    source.touch()
    make(source, other)
    with pytest.raises(UsageError, match="is the session itself"):
        refuse_inputs(other, {"the session": source})


def test_a_long_name_is_written(tmp_path: Path) -> None:
    out = tmp_path / ("n" * 255)
    write_whole(out, b"data")
    assert out.read_bytes() == b"data"


@pytest.mark.parametrize("inputs", [("--request-file", "rq"), ("--graph", "g")])
def test_no_command_overwrites_what_it_reads(
    cli: Cli, demo: Path, tmp_path: Path, inputs: tuple[str, str]
) -> None:
    option, name = inputs
    assert cli("observe", str(demo), "-o", "g").status == 0
    (tmp_path / "rq").write_text("go on")
    before = (tmp_path / name).read_bytes()
    result = cli("compact", str(demo), option, name, "-o", name)
    assert result.status == 2
    assert "never changes a file it reads" in result.err
    assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("command", ["compact", "observe"])
def test_the_settings_in_use_are_not_overwritten(
    cli: Cli, demo: Path, tmp_path: Path, command: str
) -> None:
    for name, env in (("recap.toml", {}), ("mine.toml", {"RECAP_CONFIG": "mine.toml"})):
        (tmp_path / name).write_text("rows = 8\n")
        result = cli(command, str(demo), "-o", name, **env)
        assert result.status == 2
        assert "is the settings file itself" in result.err
    copy = cli("check", str(demo), "--repair", "recap.toml")
    assert copy.status == 2
