"""Rolling copies: one a day, the last two kept, never of a damaged store, never over a file."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from recap.errors import StoreError
from recap.store import Store
from recap.store.files import locked
from recap.store.repair import repair
from recap.store.verify import verify
from tests.store.factories import TENANT, execute_in, fill, key, row

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400.0


def copies(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("backups/*.db"))


def save_at(folder: Path, now: float) -> None:
    with Store.open(folder, clock=lambda: now) as store:
        store.save_session(store.load_session(TENANT, key(1)) or row())


def test_a_copy_is_made_a_day_and_two_are_kept(tmp_path: Path) -> None:
    for now in (0.0, 1.0, 2.0, 1 + DAY, 2 + DAY, 5 + 2 * DAY, 6 + 2 * DAY):
        save_at(tmp_path, now)
    assert copies(tmp_path) == ["19700102T000001Z.db", "19700103T000005Z.db"]


def test_an_empty_store_is_not_copied(tmp_path: Path) -> None:
    for now in (0.0, DAY):
        Store.open(tmp_path, clock=lambda now=now: now).close()  # type: ignore[misc]
    assert copies(tmp_path) == []


def test_a_copy_is_a_store(store: Store, tmp_path: Path) -> None:
    fill(store)
    store.backup(tmp_path / "copy.db")
    expected = store.sessions(TENANT), store.history.snapshots()
    (tmp_path / "other").mkdir()
    shutil.copy(tmp_path / "copy.db", tmp_path / "other" / "recap.db")
    shutil.copy(store.folder / "secret", tmp_path / "other" / "secret")
    with Store.open(tmp_path / "other") as other:
        assert (other.sessions(TENANT), other.history.snapshots()) == expected
        assert other.save_session(row(99)).rev == 1
        assert [f for f in other.verify() if f.code != "permissions"] == []


def test_a_copy_never_replaces_a_file(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("mine")
    with pytest.raises(StoreError, match="exists; name a new file"):
        store.backup(tmp_path / "copy.db")
    with pytest.raises(StoreError, match="cannot write the backup"):
        store.backup(tmp_path / "nowhere" / "copy.db")
    assert {path.name for path in tmp_path.iterdir()} == {"store", "copy.db"}
    assert (tmp_path / "copy.db").read_text() == "mine"


def test_a_damaged_store_is_not_copied_over_good_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recap.store.opening.CHECKED_BYTES", 0)  # as if the store were large
    with Store.open(tmp_path, clock=lambda: 0.0) as store:
        fill(store)
    save_at(tmp_path, 1)
    path = tmp_path / "recap.db"
    whole = path.read_bytes()
    path.write_bytes(whole[:-9000] + b"\xff" * 9000)
    before = copies(tmp_path)
    with pytest.raises(StoreError, match=r"damaged.*recap verify --repair"):
        save_at(tmp_path, 2 + DAY)
    assert copies(tmp_path) == before
    assert not list(tmp_path.glob("backups/*.new-*"))


def test_a_copy_that_cannot_be_made_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    save_at(tmp_path, 0)
    (tmp_path / "backups").write_text("in the way")
    save_at(tmp_path, 1)
    assert "no backup of the store was made" in caplog.text


def test_processes_that_open_at_once_make_one_copy(tmp_path: Path) -> None:
    save_at(tmp_path, 0)
    (tmp_path / "backups").mkdir()
    with locked(tmp_path / "backups" / "lock", is_exclusive=True):
        save_at(tmp_path, 1)
    assert copies(tmp_path) == []
    save_at(tmp_path, 2)
    assert len(copies(tmp_path)) == 1


def test_a_copy_that_a_killed_process_left_unfinished_goes_with_the_next_one(
    tmp_path: Path,
) -> None:
    save_at(tmp_path, 0)
    save_at(tmp_path, 1)
    left = tmp_path / "backups" / "19700101T000001Z.db.new-0123456789abcdef"
    left.write_bytes(b"half a copy")
    save_at(tmp_path, 2 + DAY)
    assert not left.exists()
    assert len(copies(tmp_path)) == 2


def filled_with_copy(folder: Path) -> Path:
    """Return the one backup of a store that holds something."""
    with Store.open(folder, clock=lambda: 0.0) as store:
        fill(store)
    with Store.open(folder, clock=lambda: 1.0):
        pass
    (copy,) = folder.glob("backups/*.db")
    return copy


def damage(copy: Path, how: str) -> None:
    data = copy.read_bytes()
    if how == "cut":
        copy.write_bytes(data[:-5000])
    elif how == "noise":
        copy.write_bytes(b"\xa7" * len(data))
    elif how == "empty":
        copy.write_bytes(b"")
    elif how == "scribbled":
        copy.write_bytes(data[:4096] + bytes(3 * 4096) + data[4 * 4096 :])
    else:  # a single row, which no page tells
        execute_in(copy, "UPDATE sessions SET label = 'x' WHERE rowid = 3")


@pytest.mark.parametrize("how", ["cut", "noise", "empty", "scribbled", "row"])
def test_a_damaged_copy_is_found_and_moved_away(tmp_path: Path, how: str) -> None:
    """Nobody would have known before the day it is needed."""
    folder = tmp_path / "store"
    copy = filled_with_copy(folder)
    assert verify(folder) == ()
    damage(copy, how)
    damaged = copy.read_bytes()
    (fault,) = verify(folder)
    assert fault.code == "backup"
    assert str(copy) in fault.detail
    assert "recap verify --repair" in fault.advice
    before = (folder / "recap.db").read_bytes()
    done = repair(folder)
    assert (done.kept, done.lost, done.unknown, done.backups) == ({}, {}, (), 1)
    assert done.copy is not None
    assert (done.copy / copy.name).read_bytes() == damaged
    assert verify(folder) == ()
    assert repair(folder).copy is None
    assert (folder / "recap.db").read_bytes() == before
    save_at(folder, 2.0)
    assert len(copies(folder)) == 1


@pytest.mark.parametrize("how", ["cut", "noise", "empty", "scribbled", "row"])
def test_a_damaged_copy_stops_no_repair(tmp_path: Path, how: str) -> None:
    """It gives what it still proves, and the older one the rest."""
    folder = tmp_path / "store"
    copy = filled_with_copy(folder)
    shutil.copy(copy, copy.with_name("19600101T000000Z.db"))
    damage(copy, how)
    (folder / "recap.db").unlink()
    done = repair(folder)
    assert done.backups == 1
    assert done.restored["sessions"] == 12
    assert done.restored["snapshots"] == 3
    assert verify(folder) == ()
    assert len(copies(folder)) == 1


def test_what_is_no_file_is_no_copy(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    copy = filled_with_copy(folder)
    copy.with_name("29990101T000000Z.db").mkdir(mode=0o700)
    copy.with_name("29990102T000000Z.db").symlink_to("/dev/zero")
    assert verify(folder) == ()
    (folder / "recap.db").unlink()
    assert repair(folder).restored["sessions"] == 12


def test_a_copy_of_an_older_release_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    copy = filled_with_copy(folder)
    execute_in(copy, "DROP TABLE unfinished")
    execute_in(copy, "DELETE FROM migrations WHERE number > 1")
    assert verify(folder) == ()
