"""Files are written whole or not at all, for the owner alone, never over the source."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from recap.cli.writing import refuse_source, write_whole
from recap.errors import UsageError


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
    reader.join(10)
    assert read == [b"data"]
    assert pipe.is_fifo()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder"):
        write_whole(tmp_path, b"data")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone"):
        write_whole(tmp_path / "gone" / "out", b"data")


def test_the_source_is_refused_and_another_file_is_not(tmp_path: Path) -> None:
    source = tmp_path / "session.jsonl"
    source.touch()
    refuse_source(tmp_path / "other", source)
    refuse_source(source, None)
    with pytest.raises(UsageError, match="never changes"):
        refuse_source(Path(os.path.relpath(source)), source)
