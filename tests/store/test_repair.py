"""Damage is reported, and repaired as far as hashes prove; the damaged bytes are never lost."""

from __future__ import annotations

import dataclasses
import random
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recap.errors import StoreError
from recap.store import SessionRow, Store
from recap.store.migrations import MIGRATIONS
from recap.store.repair import Repair, repair
from recap.store.verify import verify
from tests.store.factories import OTHER, TENANT, chosen, execute, fill, key, row
from tests.store.test_migrations import NEXT, run

if TYPE_CHECKING:
    from pathlib import Path

PAGE = 4096


class Held(NamedTuple):
    """All that a store gives out."""

    sessions: dict[bytes, SessionRow]
    selections: dict[bytes, bytes]
    indexes: dict[bytes, bytes]
    snapshots: dict[str, bytes]
    branches: set[str]


def held(store: Store) -> Held:
    ids = [session.id for session in store.sessions(TENANT)]
    sessions = {id: store.load_session(TENANT, id) for id in ids}
    indexes = {id: store.load_index(TENANT, id) for id in ids}
    return Held(
        {id: session for id, session in sessions.items() if session},
        {id + s.turn_key: s.kept for id in ids for s in store.selections(TENANT, id)},
        {id: index for id, index in indexes.items() if index},
        {s.id: b"".join(store.history.read(s)) for s in store.history.snapshots()},
        {branch.id for branch in store.history.branches()},
    )


def is_part_of(some: Held, whole: Held) -> bool:
    """Return True when every row stands unchanged among the others."""
    return all(
        a.items() <= b.items() if isinstance(a, dict) else a <= b
        for a, b in zip(some, whole, strict=True)
    )


def tells_all(done: Repair, left: Held, whole: Held) -> bool:
    """Return True when a repair tells of each table that lost rows, by number or as not known."""
    return all(
        len(some) == len(all_of_it) or name in {*done.lost, *done.unknown}
        for name, some, all_of_it in zip(Held._fields, left, whole, strict=True)
    )


class Image:
    """The files of a filled store, and what it holds."""

    def __init__(self, database: bytes, secret: bytes, whole: Held) -> None:
        self.database = database
        self.secret = secret
        self.whole = whole


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    folder = tmp_path_factory.mktemp("image")
    with Store.open(folder) as store:
        fill(store)
        whole = held(store)
    files = [(folder / name).read_bytes() for name in ("recap.db", "secret")]
    return Image(*files, whole)


def laid_out(folder: Path, database: bytes, secret: bytes) -> Path:
    folder.mkdir(mode=0o700)
    for name, data in (("recap.db", database), ("secret", secret)):
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    return folder


def repaired(folder: Path, damaged: bytes) -> tuple[Repair, Held]:
    """Repair a store and check what holds for every repair."""
    assert verify(folder)
    done = repair(folder)
    assert done.copy is not None
    assert (done.copy / "recap.db").read_bytes() == damaged
    assert verify(folder) == ()
    assert repair(folder).copy is None
    assert {path.name.partition("-")[0] for path in folder.iterdir()} <= {
        "recap.db", "secret", "lock", "damaged", "backups"
    }  # fmt: skip
    with Store.open(folder) as store:
        store.save_session(row(1000))
        store.delete_session(TENANT, key(1000))
        return done, held(store)


def refused(folder: Path, damaged: bytes) -> None:
    with pytest.raises(StoreError, match="recap verify --repair"):
        Store.open(folder)
    assert (folder / "recap.db").read_bytes() == damaged


def test_a_whole_store_has_no_fault_and_needs_no_repair(tmp_path: Path, image: Image) -> None:
    folder = laid_out(tmp_path / "s", image.database, image.secret)
    assert verify(folder) == ()
    assert repair(folder) == Repair(None, {}, {}, {}, (), False)
    assert (folder / "recap.db").read_bytes() == image.database


@pytest.mark.slow
def test_a_database_cut_at_any_page_is_refused_and_repaired(
    tmp_path: Path, image: Image, pytestconfig: pytest.Config
) -> None:
    """Every page boundary with --kills 200 or more, else about twenty of them."""
    database, secret, whole = image.database, image.secret, image.whole
    pages = len(database) // PAGE
    step = 1 if pytestconfig.getoption("--kills") >= 200 else max(1, pages // 20)
    kept = []
    for page in range(0, pages, step):
        damaged = database[: page * PAGE]
        folder = laid_out(tmp_path / str(page), damaged, secret)
        refused(folder, damaged)
        done, left = repaired(folder, damaged)
        assert is_part_of(left, whole)
        assert tells_all(done, left, whole)
        kept.append(sum(done.kept.values()))
    assert kept[0] == 0
    assert kept[-1] > 0.8 * sum(map(len, whole))
    assert all(later >= earlier - 3 for earlier, later in pairwise(kept))


def test_a_cut_inside_a_page_is_repaired_too(tmp_path: Path, image: Image) -> None:
    database, secret, whole = image.database, image.secret, image.whole
    for size in (1, 99, 100, PAGE - 1, len(database) - 1, len(database) - PAGE // 2):
        folder = laid_out(tmp_path / str(size), database[:size], secret)
        refused(folder, database[:size])
        done, left = repaired(folder, database[:size])
        assert is_part_of(left, whole)
        assert tells_all(done, left, whole)


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 6), is_zero=st.booleans())
@example(seed=271, count=3, is_zero=False)  # the definition of a table: "key" becomes "ke"
def test_scribbles_are_reported_and_what_is_proved_is_kept(
    tmp_path_factory: pytest.TempPathFactory,
    image: Image,
    seed: int,
    count: int,
    is_zero: bool,
) -> None:
    database, secret, whole = image.database, image.secret, image.whole
    draw, damaged = random.Random(seed), bytearray(database)
    for _ in range(count):
        start, size = draw.randrange(len(database)), draw.choice([1, 50, PAGE, 3 * PAGE])
        size = min(size, len(database) - start)
        damaged[start : start + size] = bytes(size) if is_zero else draw.randbytes(size)
    folder = laid_out(tmp_path_factory.mktemp("scribbled") / "s", bytes(damaged), secret)
    if not verify(folder):  # it hit unused bytes, or wrote what was there
        with Store.open(folder) as store:
            assert held(store) == whole
        return
    done, left = repaired(folder, bytes(damaged))
    assert is_part_of(left, whole)
    assert tells_all(done, left, whole)


def test_a_broken_first_page_costs_no_row(tmp_path: Path, image: Image) -> None:
    database, secret, whole = image.database, image.secret, image.whole
    for damaged in (bytes(PAGE) + database[PAGE:], b"\xff" * 100 + database[100:]):
        folder = laid_out(tmp_path / str(damaged[0]), damaged, secret)
        refused(folder, damaged)
        done, left = repaired(folder, damaged)
        assert left == whole
        assert not done.lost


@pytest.mark.parametrize(
    "written",
    [b"CREATE TABLE sessions", b"turn_key ", b"graph BLOB NOT NULL", b"CREATE TABLE objects"],
)
def test_a_damaged_definition_of_a_table_costs_no_row(
    tmp_path: Path, image: Image, written: bytes
) -> None:
    database, secret, whole = image.database, image.secret, image.whole
    for at in range(len(written)):
        damaged = bytearray(database)
        damaged[database[:PAGE].index(written) + at] ^= 1
        folder = laid_out(tmp_path / str(at), bytes(damaged), secret)
        if verify(folder):
            done, left = repaired(folder, bytes(damaged))
            assert (left, done.lost) == (whole, {})
        else:  # a space is another, a letter of a type is not looked at
            with Store.open(folder) as store:
                assert held(store) == whole


def test_a_scribble_over_one_graph_costs_that_session_alone_and_is_counted(store: Store) -> None:
    fill(store)
    whole = held(store)
    store.close()
    path = store.folder / "recap.db"
    graph = whole.sessions[key(1)].graph
    at = path.read_bytes().index(graph[-100:])
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes(100))
    done, left = repaired(store.folder, path.read_bytes())
    assert whole.sessions.keys() - left.sessions.keys() == {key(1)}
    assert done.lost == {"sessions": 1, "selections": 1, "indexes": 1}
    assert done.unknown == ()
    assert left.snapshots == whole.snapshots


def test_a_backup_gives_back_what_was_lost_and_nothing_that_was_deleted(tmp_path: Path) -> None:
    with Store.open(tmp_path, clock=lambda: 0.0) as store:
        for number in (1, 2, 3):
            store.save_session(
                row(number, graph=b"%d" % number * 2000), selection=chosen(1, number)
            )
    with Store.open(tmp_path) as store:
        whole = held(store)
        store.delete_session(TENANT, key(1))
        store.save_session(dataclasses.replace(whole.sessions[key(2)], graph=b"new" * 999))
    path = tmp_path / "recap.db"
    data = path.read_bytes()
    path.write_bytes(data.replace(b"3" * 1000, b"4" * 1000, 1))
    done, left = repaired(tmp_path, path.read_bytes())
    assert done.restored == {"sessions": 1}
    assert done.lost == {}
    assert left.sessions.keys() == {key(2), key(3)}
    assert left.sessions[key(3)] == whole.sessions[key(3)]
    assert left.sessions[key(2)].rev == 2


def test_a_database_that_is_gone_comes_back_from_its_backup(tmp_path: Path) -> None:
    with Store.open(tmp_path, clock=lambda: 0.0) as store:
        fill(store)
    with Store.open(tmp_path) as store:
        whole = held(store)
    (tmp_path / "recap.db").unlink()
    assert [fault.code for fault in verify(tmp_path)] == ["missing"]
    done = repair(tmp_path)
    assert verify(tmp_path) == ()
    assert done.restored["sessions"] == len(whole.sessions)
    with Store.open(tmp_path) as store:
        assert held(store) == whole


@pytest.mark.parametrize("what", ["missing", "damaged", "foreign"])
def test_without_its_secret_a_store_keeps_its_snapshots_alone(store: Store, what: str) -> None:
    fill(store)
    store.save_session(row(tenant=OTHER))
    whole = held(store)
    store.close()
    (store.folder / "secret").unlink()
    if what != "missing":
        (store.folder / "secret").write_bytes(b"x" * (32 if what == "foreign" else 5))
    assert "secret" in {fault.code for fault in verify(store.folder)}
    done = repair(store.folder)
    assert done.is_new_secret
    assert done.lost["sessions"] >= 2
    assert "sessions" not in {**done.kept, **done.restored}
    assert done.lost["sessions"] == len(whole.sessions) + 1
    assert verify(store.folder) == ()
    with Store.open(store.folder) as again:
        assert held(again) == Held({}, {}, {}, whole.snapshots, whole.branches)


def test_a_snapshot_that_lost_a_piece_goes_and_the_others_stay(store: Store) -> None:
    fill(store)
    whole = held(store)
    needed = "SELECT object FROM links WHERE hash = (SELECT root FROM snapshots WHERE id = 's2')"
    execute(store, f"UPDATE objects SET bytes = zeroblob(9) WHERE hash = ({needed})")
    assert {fault.code for fault in store.verify()} == {"row", "snapshot"}
    store.close()
    done, left = repaired(store.folder, (store.folder / "recap.db").read_bytes())
    assert left.snapshots == {id: whole.snapshots[id] for id in ("s0", "s1")}
    assert left.branches == whole.branches
    assert done.lost == {"objects": 1, "links": 1, "snapshots": 1}


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DELETE FROM sessions WHERE rowid = 2", "dangling"),
        ("DELETE FROM links WHERE rowid = 1", "dangling"),
        ("UPDATE links SET parent = zeroblob(32) WHERE rowid = 3", "row"),
        ("UPDATE objects SET size = size + 1 WHERE rowid = 2", "row"),
        ("UPDATE sessions SET label = 'x' WHERE rowid = 3", "row"),
        ("UPDATE sessions SET graph = 7 WHERE rowid = 3", "row"),
        ("UPDATE sessions SET label = CAST(x'ff' AS TEXT) WHERE rowid = 3", "row"),
        ("UPDATE branches SET session = 'x'", "row"),
        ("UPDATE snapshots SET root = zeroblob(32)", "row"),
        ("UPDATE meta SET value = 'x'", "secret"),
        ("DELETE FROM meta", "secret"),
        ("PRAGMA application_id = 7", "foreign"),
        ("DROP TABLE migrations", "pages"),
        ("UPDATE migrations SET checksum = 1", "pages"),
    ],
)
def test_each_kind_of_fault_is_found(store: Store, statement: str, code: str) -> None:
    fill(store)
    execute(store, statement)
    faults = store.verify()
    assert code in {fault.code for fault in faults}
    assert all(fault.detail and fault.advice and "\n" not in fault.detail for fault in faults)


def test_a_faults_detail_holds_no_text_of_a_conversation(store: Store) -> None:
    fill(store)
    execute(store, "UPDATE objects SET bytes = CAST('canary' AS BLOB)")
    execute(store, "UPDATE snapshots SET description = 'canary'")
    assert store.verify()
    assert "canary" not in repr(store.verify())


def test_permissions_are_reported_and_set_right(store: Store) -> None:
    (store.folder / "recap.db").chmod(0o640)
    (store.folder / "secret").chmod(0o604)
    assert [fault.code for fault in store.verify()] == ["permissions"] * 2
    store.close()
    assert repair(store.folder).copy is None
    assert verify(store.folder) == ()


def test_files_of_others_in_the_folder_are_left_alone(store: Store) -> None:
    (store.folder / "mine.sh").write_text("echo")
    (store.folder / "mine.sh").chmod(0o755)
    (store.folder / "secret").chmod(0o644)
    assert [fault.code for fault in store.verify()] == ["permissions"]
    store.close()
    repair(store.folder)
    assert (store.folder / "mine.sh").stat().st_mode & 0o777 == 0o755


def test_a_store_in_use_is_not_repaired(store: Store) -> None:
    (store.folder / "secret").unlink()
    with pytest.raises(StoreError, match="in use by another process"):
        repair(store.folder)


def test_a_newer_store_is_not_repaired(store: Store) -> None:
    store.close()
    path = store.folder / "recap.db"
    run(path, NEXT)
    before = path.read_bytes()
    assert [fault.code for fault in verify(store.folder)] == ["schema"]
    with pytest.raises(StoreError, match="newer release"):
        repair(store.folder)
    assert path.read_bytes() == before
    assert len(NEXT) > len(MIGRATIONS)


def test_repairing_twice_keeps_both_copies(store: Store) -> None:
    store.close()
    copies = []
    for damage in (b"first", b"second"):
        (store.folder / "recap.db").write_bytes(damage)
        done = repair(store.folder, clock=lambda: 0.0)
        assert done.copy is not None
        copies.append(done.copy)
    assert [(copy / "recap.db").read_bytes() for copy in copies] == [b"first", b"second"]


def test_what_stands_in_the_log_alone_is_kept(tmp_path: Path) -> None:
    """A process that ended without closing leaves its last saves in the write-ahead log."""
    with Store.open(tmp_path / "s") as store:
        fill(store)
        whole = held(store)
        names = ("recap.db", "recap.db-wal", "secret")
        files = {name: (store.folder / name).read_bytes() for name in names}
    assert len(files["recap.db-wal"]) > 100_000
    folder = laid_out(tmp_path / "t", files["recap.db"], b"")
    for name, data in files.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    (folder / "secret").unlink()
    done = repair(folder)
    assert done.copy is not None
    assert (done.copy / "recap.db-wal").read_bytes() == files["recap.db-wal"]
    with Store.open(folder) as store:
        assert held(store).snapshots == whole.snapshots
