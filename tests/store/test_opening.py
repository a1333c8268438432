"""Opening: private files whatever the umask, and no file that is not ours is used or overwritten."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from recap.errors import StoreError
from recap.store import Store
from recap.store.files import store_folder
from recap.store.repair import repair
from recap.store.verify import verify
from tests.store.factories import TENANT, fill, key, row

ROOT = Path(__file__).resolve().parents[2]


def modes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder.parent)): stat.S_IMODE(path.lstat().st_mode)
        for path in (folder, *folder.rglob("*"))
    }


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_files_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    if umask == 0o777 and os.geteuid():
        pytest.skip("nobody but root can work with this umask")
    before = os.umask(umask)
    try:
        with Store.open(tmp_path / "s") as store:
            fill(store, sessions=2)
            store.backup(store.folder / "copy.db")
            while_open = modes(store.folder)
        with Store.open(tmp_path / "s"):
            after = modes(tmp_path / "s")
        (tmp_path / "s" / "recap.db").write_bytes(b"damage")
        repair(tmp_path / "s")
    finally:
        os.umask(before)
    repaired = modes(tmp_path / "s")
    assert {"s/recap.db", "s/recap.db-wal", "s/recap.db-shm", "s/secret"} <= while_open.keys()
    assert any(name.startswith("s/backups/2") for name in after)
    assert any(name.startswith("s/damaged-") for name in repaired)
    for seen in (while_open, after, repaired):
        for name, mode in seen.items():
            assert mode == (0o700 if (tmp_path / name).is_dir() else 0o600), name


def test_the_folder_comes_from_the_argument_then_recap_home_then_the_user(tmp_path: Path) -> None:
    environ = {"RECAP_HOME": str(tmp_path)}
    assert store_folder(Path("x"), environ) == Path("x")
    assert store_folder(None, environ) == tmp_path
    assert store_folder(None, {"RECAP_HOME": "~/x"}) == Path.home() / "x"
    assert store_folder(None, {}).name == "recap"


def test_recap_home_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECAP_HOME", str(tmp_path / "home"))
    with Store.open() as store:
        assert store.folder == tmp_path / "home"
        assert verify() == ()


def test_a_folder_that_others_can_read_is_taken_only_if_empty(tmp_path: Path) -> None:
    for name in ("empty", "used"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o755)
    (tmp_path / "used" / "letter.txt").write_text("hello")
    Store.open(tmp_path / "empty").close()
    assert stat.S_IMODE((tmp_path / "empty").stat().st_mode) == 0o700
    with pytest.raises(StoreError, match="holds other files and others can read it"):
        Store.open(tmp_path / "used")
    assert stat.S_IMODE((tmp_path / "used").stat().st_mode) == 0o755


def test_permissions_that_were_widened_are_taken_back(store: Store) -> None:
    store.close()
    (store.folder / "recap.db").chmod(0o644)
    (store.folder / "secret").chmod(0o666)
    with Store.open(store.folder) as again:
        assert {0o700, 0o600} == set(modes(again.folder).values())


def test_keys_stay_the_same_and_differ_between_stores(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a") as store, Store.open(tmp_path / "b") as other:
        made = store.key("client", b"agent")
        assert len(made) == 16
        assert made == store.key(b"client", "agent") != other.key("client", "agent")
        assert made != store.key("clien", "tagent") != store.key("client", "agent", "")
        assert store.key("\udcff") != store.key("")
    with Store.open(tmp_path / "a") as store:
        assert store.key("client", "agent") == made


def test_a_missing_secret_is_an_error_and_not_a_new_one(store: Store) -> None:
    store.close()
    (store.folder / "secret").unlink()
    with pytest.raises(StoreError, match="the secret of the store is missing"):
        Store.open(store.folder)
    assert not (store.folder / "secret").exists()


@pytest.mark.parametrize("secret", [b"", b"x" * 31, b"x" * 33])
def test_a_damaged_secret_is_an_error(store: Store, secret: bytes) -> None:
    store.close()
    (store.folder / "secret").write_bytes(secret)
    with pytest.raises(StoreError, match="bytes instead of 32"):
        Store.open(store.folder)
    assert (store.folder / "secret").read_bytes() == secret


def test_the_secret_of_another_store_is_an_error(store: Store) -> None:
    store.close()
    (store.folder / "secret").write_bytes(b"x" * 32)
    with pytest.raises(StoreError, match="secret of another store"):
        Store.open(store.folder)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE letters (text)")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.write_bytes(b""), "is empty.*recap verify --repair"),
        (lambda path: path.write_bytes(b"hello"), "damaged.*recap verify --repair"),
        (lambda path: path.write_bytes(os.urandom(9000)), "damaged.*recap verify --repair"),
        (foreign_database, "another program.*recap verify --repair"),
        (lambda path: path.mkdir(), "is no regular file"),
        (lambda path: path.symlink_to("elsewhere"), "is no regular file"),
        (lambda path: os.mkfifo(path), "is no regular file"),
    ],
)
@pytest.mark.parametrize("has_secret", [True, False])
def test_what_is_no_store_is_refused_and_not_touched(
    tmp_path: Path, make: object, words: str, has_secret: bool
) -> None:
    if has_secret:
        (tmp_path / "secret").write_bytes(b"x" * 32)
    path = tmp_path / "recap.db"
    make(path)  # type: ignore[operator]
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=words) as caught:
        Store.open(tmp_path)
    assert "\n" not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert (tmp_path / "secret").exists() is has_secret


@pytest.mark.parametrize("name", ["secret", "lock"])
def test_a_link_in_place_of_a_file_is_refused(store: Store, tmp_path: Path, name: str) -> None:
    store.close()
    (store.folder / name).rename(tmp_path / name)
    (store.folder / name).symlink_to(tmp_path / name)
    with pytest.raises(StoreError, match="is no regular file"):
        Store.open(store.folder)


def test_a_store_may_lie_behind_a_link_to_its_folder(store: Store, tmp_path: Path) -> None:
    store.close()
    (tmp_path / "link").symlink_to(store.folder)
    with Store.open(tmp_path / "link") as again:
        assert again.verify() == ()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "s"):
        with pytest.raises(StoreError, match=r"cannot use .*as store"):
            Store.open(folder)


@pytest.mark.parametrize("remains", ["backups/20260101T000000Z.db", "damaged-x/y", "recap.db-wal"])
def test_a_database_that_is_gone_is_not_taken_as_a_new_store(store: Store, remains: str) -> None:
    store.close()
    (store.folder / "recap.db").unlink()
    (store.folder / remains).parent.mkdir(exist_ok=True)
    (store.folder / remains).write_bytes(b"")
    with pytest.raises(StoreError, match="is gone but copies of it are there"):
        Store.open(store.folder)


READ_ONLY = """
import os, sys
from pathlib import Path
from recap.errors import StoreError
from recap.store import Store
os.setuid(65534)  # root may write anywhere
try:
    Store.open(Path(sys.argv[1]))
except StoreError as err:
    print(err)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a folder of another user")
def test_a_folder_that_cannot_be_written_is_one_line(store: Store, tmp_path: Path) -> None:
    store.close()
    store.folder.chmod(0o500)
    tmp_path.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(store.folder)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.count("\n") == 1
    assert "cannot" in done.stdout


def test_a_damaged_page_of_a_small_store_is_found_when_it_is_opened(store: Store) -> None:
    """All but bytes of a graph or an object: those are found when they are read."""
    fill(store)
    store.close()
    path = store.folder / "recap.db"
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096, 9):
        damaged = whole[: page * 4096] + b"\xff" * 4096 + whole[(page + 1) * 4096 :]
        path.write_bytes(damaged)
        codes = {fault.code for fault in verify(store.folder)}
        assert codes
        if "pages" in codes:
            with pytest.raises(StoreError, match="recap verify --repair"):
                Store.open(store.folder)
            assert path.read_bytes() == damaged


def test_a_damaged_row_is_an_error_when_it_is_read(store: Store) -> None:
    store.save_session(row(graph=b"graph"))
    store._database.write(lambda c: c.execute("UPDATE sessions SET graph = 'other'"))
    with pytest.raises(StoreError, match="damaged; run: recap verify --repair"):
        store.load_session(TENANT, key(1))


def test_opening_loads_nothing_heavy() -> None:
    code = (
        "import sys, recap.store; print(sorted(set(sys.modules) & "
        "{'numpy', 'msgspec', 'click', 'rich', 'platformdirs', 'asyncio'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
