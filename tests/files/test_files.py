"""What is opened as a file and what is refused, without waiting."""

from __future__ import annotations

import gc
import os
import socket
import threading
from pathlib import Path

import pytest

from recap.errors import InputError, shown, shown_path
from recap.files import read_file


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"data")
    assert read_file(tmp_path / "file") == b"data"


def test_a_pipe_without_a_writer_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe that nobody writes to; name a file, or give -"):
        read_file(tmp_path / "pipe")


@pytest.mark.parametrize("data", [b"", b"data" * 100_000])
def test_a_pipe_is_read_when_somebody_writes_to_it(
    tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recap.files.WRITER_WAIT_S", 100)  # however late the thread begins
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    assert read_file(pipe) == data
    writer.join()


def test_a_writer_may_be_slower_than_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recap.files.WRITER_WAIT_S", 0.01)
    reader, writer = os.pipe()
    late = threading.Timer(0.2, lambda: (os.write(writer, b"late"), os.close(writer)))
    late.start()
    assert read_file(Path(f"/dev/fd/{reader}")) == b"late"
    os.close(reader)
    late.join()


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/full"])
def test_a_device_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is a device; name a file, or give - for"):
        read_file(Path(name))


def test_a_folder_a_socket_and_nothing_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is a folder, not a file"):
        read_file(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")  # the whole path may be too long for an address
        with pytest.raises(InputError, match="No such device"):
            read_file(tmp_path / "socket")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("missing", "nul\0", "loop", "n" * 5000):
        with pytest.raises(InputError) as caught:
            read_file(tmp_path / name)
        assert len(str(caught.value)) < 300


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    gc.collect()  # what other tests left open is closed now or not at all
    before = sum(1 for _ in Path("/dev/fd").iterdir())
    for name in (tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError):
            read_file(name)
    assert sum(1 for _ in Path("/dev/fd").iterdir()) == before


def test_what_an_error_repeats_is_short() -> None:
    assert shown("short") == "'short'"
    for value in ("x" * 10**6, [1] * 1000, 10**5000, -(10**5000), b"\0" * 1000):
        assert len(shown(value)) <= 60
    assert shown_path("a/b") == "a/b"
    assert shown_path("/home/" + "d/" * 500 + "name.jsonl").endswith("/name.jsonl")
    assert len(shown_path("d/" * 500)) == 200
