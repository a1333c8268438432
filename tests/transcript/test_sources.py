from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from recap.errors import InputError
from recap.transcript.sources import HELD_BYTES, ByteSource, FileSource, open_source


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(bytes(range(256)) * 10)
    return path


def test_a_small_file_is_held_in_memory(file):
    source = open_source(file)
    assert isinstance(source, ByteSource)
    file.write_bytes(b"")
    assert source.read(256, 259) == b"\0\1\2"


def test_a_large_file_is_read_by_offset(file):
    source = open_source(file, held_bytes=100)
    assert isinstance(source, FileSource)
    assert source.size == 2560
    assert source.read(255, 258) == b"\xff\0\1"
    assert source.read(10, 10) == b""


def test_the_limit_for_holding_a_file_is_stated():
    assert HELD_BYTES == 16 * 1024 * 1024


def test_a_file_that_lost_bytes_gives_a_clear_error(file):
    source = open_source(file, held_bytes=0)
    os.truncate(file, 300)
    assert source.read(0, 300) == file.read_bytes()
    with pytest.raises(InputError, match=r"log\.jsonl: lost bytes while it was read"):
        source.read(200, 400)


def test_a_deleted_file_stays_readable(file):
    source = open_source(file, held_bytes=0)
    file.unlink()
    assert source.read(0, 2) == b"\0\1"


def test_bytes_appended_later_are_not_seen(file):
    source = open_source(file, held_bytes=0)
    with file.open("ab") as grown:
        grown.write(b"more")
    assert source.size == 2560


def test_the_descriptor_is_closed_with_the_source(file):
    source = open_source(file, held_bytes=0)
    os.pread(descriptor := source._descriptor, 1, 0)
    del source
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.pread(descriptor, 1, 0)


def test_a_pipe_is_read_to_its_end():
    reader, writer = os.pipe()
    os.write(writer, b"{}\n")
    os.close(writer)
    source = open_source(Path(f"/dev/fd/{reader}"))
    os.close(reader)
    assert source.read(0, source.size) == b"{}\n"


@pytest.mark.parametrize("name", ["missing.jsonl", "nul\0.jsonl"])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(InputError, match="no such file"):
        open_source(tmp_path / name)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match="is a folder, not a file"):
        open_source(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_says_why(file):
    file.chmod(0)
    with pytest.raises(InputError, match="Permission denied"):
        open_source(file)
