"""A full disk is told as what it is: no damage, nothing to repair, and nothing is left behind."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from recap.store import Store
from recap.store.failures import is_passing, translated
from recap.store.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

NO_SPACE = "no space left for the store"


def test_a_full_disk_is_no_damage(tmp_path: Path) -> None:
    """SQLite says "disk I/O error" where it cannot make its file of shared memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = f"mount -t tmpfs -o size=1m tmpfs {disk} && exec"
    shell = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    try:
        subprocess.run([*shell, f"{mounted} true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not mount a file system of its own")
    program = f"{mounted} {sys.executable} -m tests.store.full_disk {disk}"
    done = subprocess.run([*shell, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = dict(map(json.loads, done.stdout.splitlines()))
    for step in ("use", "verify", "repair"):
        assert NO_SPACE in said[step], said
    assert "No space left on device" in said["repair damaged"]
    assert said["kept"] == "True"
    assert said["left"] == "[]"
    assert said["whole"] == "()"
    assert said["used"] == "None"


def test_an_error_of_a_disk_that_has_room_is_no_lack_of_it(tmp_path: Path) -> None:
    """A broken disk says the same as a full one; only the room tells them apart."""
    broken = sqlite3.OperationalError("disk I/O error")
    broken.sqlite_errorcode = sqlite3.SQLITE_IOERR
    for path in (tmp_path / "recap.db", tmp_path / "gone" / "recap.db"):
        assert not is_passing(broken, path)
        assert "failed (disk I/O error)" in str(translated(broken, path))
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert is_passing(full, tmp_path / "recap.db")
    assert NO_SPACE in str(translated(full, tmp_path / "recap.db"))


def test_a_file_that_its_owner_cannot_read_is_told_as_that(tmp_path: Path) -> None:
    Store.open(tmp_path / "s").close()
    (tmp_path / "s" / "secret").chmod(0)
    faults = verify(tmp_path / "s")
    assert faults[0].code == "permissions"
    assert "its owner cannot read it" in faults[0].detail
    assert f"chmod 600 {tmp_path / 's' / 'secret'}" in faults[0].advice
