"""Snapshots: bytes come back as they were, shared where they are the same, proved by hashes."""

from __future__ import annotations

import dataclasses
import hashlib
import random
import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recap.errors import StoreError, UsageError
from recap.store import BranchRow, Chain, History, SideFile, SnapshotRow, Store, cutting, objects
from recap.store import snapshots as snapshot_rows
from tests.store.factories import execute, rows_in, snapshot, transcript

IN_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def history(store: Store) -> History:
    return store.history


CHUNKS = st.lists(
    st.binary(max_size=50) | st.sampled_from([b"\n", b"x" * 3000, b"y\n" * 900]), max_size=30
)


@given(CHUNKS, st.randoms(use_true_random=False))
def test_pieces_depend_on_the_bytes_and_not_on_the_chunks(
    chunks: list[bytes], draw: random.Random
) -> None:
    data = b"".join(chunks)
    bounds = sorted(draw.randrange(len(data) + 1) for _ in range(5))
    others = [data[a:b] for a, b in zip([0, *bounds], [*bounds, None], strict=True)]
    pieces = list(cutting.cut([data]))
    assert b"".join(pieces) == data
    assert list(cutting.cut(chunks)) == list(cutting.cut(others)) == pieces


def test_a_long_line_is_cut_alike_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "LONGEST", 20_000)
    monkeypatch.setattr(cutting, "MOST", 30_000)
    data = b"a\n" + b"x" * 90_000 + b"\nb\n" + b"z" * 50_000
    pieces = list(cutting.cut([data]))
    assert list(cutting.cut(data[i : i + 7] for i in range(0, len(data), 7))) == pieces
    assert max(map(len, pieces)) <= 50_000
    assert b"".join(pieces) == data


def test_pieces_are_of_a_bounded_size_and_end_at_line_ends() -> None:
    pieces = list(cutting.cut(transcript(2000)))
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert all(len(piece) >= cutting.LEAST for piece in pieces[:-1])
    assert all(len(piece) <= cutting.MOST + 4000 for piece in pieces)
    assert len(pieces) > 10


@IN_STORE
@given(CHUNKS)
def test_bytes_come_back_as_they_were(history: History, chunks: list[bytes]) -> None:
    data = b"".join(chunks)
    chain = history.put_chain(iter(chunks))
    assert history.read_chain(chain.root) == data
    assert chain == (chain.root, hashlib.sha256(data).digest(), len(data), data.count(b"\n"))
    assert history.put_chain(data) == chain


def test_a_grown_transcript_stores_only_what_is_new(store: Store) -> None:
    lines = transcript(2000)
    first = store.history.put_chain(lines)
    before = rows_in(store, "objects")
    grown = store.history.put_chain(lines + transcript(10, seed=2))
    assert before > 10
    assert rows_in(store, "objects") - before <= 2
    assert rows_in(store, "links") - before <= 2
    assert store.history.read_chain(first.root) == b"".join(lines)
    assert store.history.read_chain(grown.root).startswith(b"".join(lines))


def test_forked_transcripts_share_what_is_before_and_after_the_change(store: Store) -> None:
    lines = transcript(2000)
    store.history.put_chain(lines)
    before = rows_in(store, "objects")
    changed = [*lines[:1000], b"another line\n", *lines[1001:]]
    chain = store.history.put_chain(changed)
    assert rows_in(store, "objects") - before <= 2
    assert store.history.read_chain(chain.root) == b"".join(changed)


def test_a_chain_of_several_batches_is_one_chain(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = transcript(500)
    whole = history.put_chain(lines)
    monkeypatch.setattr("recap.store.history._BATCH", 1)
    assert history.put_chain(lines) == whole


def test_text_is_stored_compressed_and_noise_plain(store: Store) -> None:
    noise = random.Random(1).randbytes(20_000).replace(b"\n", b"")
    store.history.put_chain(noise)
    store.history.put_chain(b"word " * 4000)
    with closing(sqlite3.connect(store.folder / "recap.db")) as connection:
        rows = connection.execute("SELECT codec, length(bytes) FROM objects ORDER BY rowid")
        (plain, packed) = rows.fetchall()
    assert plain == (0, len(noise))
    assert packed[0] == 1
    assert packed[1] < 1000


def test_a_packed_piece_is_never_inflated_beyond_its_size(history: History) -> None:
    bomb = objects.pack(objects.name_of(bytes(10_000_000)), bytes(10_000_000))
    with pytest.raises(StoreError, match="damaged"):
        objects.unpack(bomb._replace(size=10))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE objects SET bytes = zeroblob(length(bytes)) WHERE rowid = 2",
        "UPDATE objects SET codec = 0 WHERE rowid = 2",
        "UPDATE objects SET bytes = 'text' WHERE rowid = 2",
        "UPDATE objects SET size = 'text' WHERE rowid = 2",
        "UPDATE objects SET size = -1 WHERE rowid = 2",
        "UPDATE objects SET size = 1 << 40 WHERE rowid = 2",
        "DELETE FROM objects WHERE rowid = 2",
        "DELETE FROM links WHERE rowid = 2",
        "UPDATE links SET object = zeroblob(32) WHERE rowid = 2",
        "UPDATE links SET parent = (SELECT hash FROM links WHERE rowid = 5) WHERE rowid = 1",
        "UPDATE links SET parent = hash WHERE rowid = 3",
        "UPDATE links SET object = 'text' WHERE rowid = 3",
    ],
)
def test_a_damaged_chain_is_an_error_and_never_other_bytes(store: Store, damage: str) -> None:
    chain = store.history.put_chain(transcript(1000))
    execute(store, damage)
    with pytest.raises(StoreError, match="recap verify --repair"):
        store.history.read_chain(chain.root)


def test_an_unknown_root_is_an_error(history: History) -> None:
    with pytest.raises(StoreError, match="missing"):
        history.read_chain(bytes(32))
    with pytest.raises(UsageError, match="root must be"):
        history.read_chain(b"short")


def full_snapshot(history: History) -> SnapshotRow:
    side = history.put_chain(b"side")
    return snapshot(
        history.put_chain(b"text\n"), name="before", description="d\0\n\udcff", tags=("auto", "ü"),
        agent="claude-code", session="s", project="/p/\udcff", versions=("1", "2"), lines=1,
        messages=(("user", 1), ("assistant", 2)), parent="gone", is_active=True, graph_rev=3,
        sides=(SideFile(name="tool/\udcff.txt", root=side.root, sha256=side.sha256, size=4),),
    )  # fmt: skip


def test_a_snapshot_comes_back_as_it_was_added(history: History) -> None:
    added = history.add_snapshot(full_snapshot(history))
    assert added == dataclasses.replace(full_snapshot(history), created=added.created)
    assert history.snapshot(added.id) == added
    assert history.snapshots() == history.snapshots(session="s") == [added]
    assert history.snapshots(session="other") == []
    assert b"".join(history.read(added)) == b"text\n"
    assert b"".join(history.read(added.sides[0])) == b"side"


def test_a_snapshot_whose_proof_fails_is_an_error_at_its_end(history: History) -> None:
    chain = history.put_chain(b"text")
    added = history.add_snapshot(snapshot(chain, sha256=bytes(32)))
    with pytest.raises(StoreError, match="not what was stored"):
        list(history.read(added))


def test_a_snapshot_and_its_branch_are_added_together_or_not_at_all(history: History) -> None:
    first, second = (snapshot(history.put_chain(b"text"), id) for id in ("one", "two"))
    branch = BranchRow(
        id="b", snapshot="one", session="s", name="n", options="{}", sha256=bytes(32)
    )
    history.add_snapshot(first, branch=branch)
    with pytest.raises(UsageError, match="'b' is taken"):
        history.add_snapshot(second, branch=dataclasses.replace(branch, snapshot="two"))
    with pytest.raises(UsageError, match="no snapshot 'three'"):
        history.add_snapshot(second, branch=dataclasses.replace(branch, id="c", snapshot="three"))
    assert [row.id for row in history.snapshots()] == ["one"]
    assert history.branches() == [
        dataclasses.replace(branch, created=history.branches()[0].created)
    ]


def test_branches_are_found_by_snapshot_and_by_session(history: History) -> None:
    history.add_snapshot(snapshot(history.put_chain(b"text"), "one"))
    made = [
        history.add_branch(BranchRow(id=id, snapshot="one", session=session))
        for id, session in (("b", "s"), ("c", "t"))
    ]
    assert history.branches(snapshot="one") == made[::-1]
    assert history.branches(session="s") == made[:1]
    assert history.branches(snapshot="two") == []
    assert history.delete_branch("b")
    assert not history.delete_branch("b")
    assert history.branches() == made[1:]


def test_a_name_belongs_to_one_snapshot_and_no_name_to_any(history: History) -> None:
    chain = history.put_chain(b"text")
    history.add_snapshot(snapshot(chain, "one", name="n"))
    history.add_snapshot(snapshot(chain, "two"))
    history.add_snapshot(snapshot(chain, "three"))
    with pytest.raises(UsageError, match="the name 'n' is taken"):
        history.add_snapshot(snapshot(chain, "four", name="n"))
    with pytest.raises(UsageError, match="the id 'one' is taken"):
        history.add_snapshot(snapshot(chain, "one"))


def test_other_labels_change_nothing_else(history: History) -> None:
    first = history.add_snapshot(snapshot(history.put_chain(b"text"), "one", name="n"))
    history.add_snapshot(snapshot(history.put_chain(b"text"), "two", name="m"))
    changed = history.relabel("one", name="k", tags=("t",))
    assert changed == dataclasses.replace(first, name="k", tags=("t",))
    assert history.snapshot("one") == changed
    assert history.relabel("one", name="k") == dataclasses.replace(first, name="k")
    assert history.relabel("none") is None
    with pytest.raises(UsageError, match="'m' is taken"):
        history.relabel("one", name="m")


def test_lineage_ends_at_a_deleted_ancestor(history: History) -> None:
    chain = history.put_chain(b"text")
    for id, parent in (("one", None), ("two", "one"), ("three", "two")):
        history.add_snapshot(snapshot(chain, id, parent=parent))
    assert [row.id for row in history.lineage("three")] == ["three", "two", "one"]
    assert history.delete_snapshot("one")
    assert not history.delete_snapshot("one")
    assert [row.id for row in history.lineage("three")] == ["three", "two"]
    assert history.lineage("one") == []


def test_a_snapshot_that_would_be_its_own_ancestor_is_refused(history: History) -> None:
    chain = history.put_chain(b"text")
    history.add_snapshot(snapshot(chain, "two", parent="one"))
    with pytest.raises(UsageError, match="ancestor"):
        history.add_snapshot(snapshot(chain, "one", parent="two"))
    with pytest.raises(UsageError, match="ancestor"):
        history.add_snapshot(snapshot(chain, "three", parent="three"))


def test_lineage_survives_a_circle_that_damage_made(store: Store) -> None:
    chain = store.history.put_chain(b"text")
    two = store.history.add_snapshot(snapshot(chain, "two", parent="one"))
    one = dataclasses.replace(two, id="one", parent="two")
    names = snapshot_rows._SNAPSHOT
    store._database.write(
        lambda c: snapshot_rows._write(c, "snapshots", names, snapshot_rows._snapshot_values(one))
    )
    assert [row.id for row in store.history.lineage("two")] == ["two", "one"]


def test_lineage_is_bounded(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = history.put_chain(b"text")
    for number in range(5):
        history.add_snapshot(snapshot(chain, f"s{number}", parent=f"s{number - 1}"))
    monkeypatch.setattr(snapshot_rows, "LINEAGE_LIMIT", 3)
    assert [row.id for row in history.lineage("s4")] == ["s4", "s3", "s2"]


@pytest.mark.parametrize("table", ["snapshots", "branches"])
def test_a_damaged_row_is_an_error(store: Store, table: str) -> None:
    row = snapshot(store.history.put_chain(b"text"), "one", session="s")
    store.history.add_snapshot(row, branch=BranchRow(id="b", snapshot="one", session="s"))
    execute(store, f"UPDATE {table} SET session = 'other'")
    with pytest.raises(StoreError, match="recap verify --repair"):
        getattr(store.history, table)()


@pytest.mark.parametrize(
    "changes",
    [
        {"id": ""}, {"root": b"x"}, {"sha256": b""}, {"name": "x" * 5000}, {"tags": ("x" * 5000,)},
        {"tags": ("x",) * 100_001}, {"size": -1},
        {"sides": (SideFile(name="s", root=b"", sha256=bytes(32), size=0),)},
        {"sides": (SideFile(name="s" * 5000, root=bytes(32), sha256=bytes(32), size=0),)},
    ],
)  # fmt: skip
def test_a_snapshot_that_cannot_be_stored_is_refused(
    history: History, changes: dict[str, object]
) -> None:
    row = dataclasses.replace(snapshot(history.put_chain(b"text")), **changes)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        history.add_snapshot(row)


@pytest.mark.parametrize("changes", [{"id": ""}, {"snapshot": ""}, {"sha256": b"x"}])
def test_a_branch_that_cannot_be_stored_is_refused(
    history: History, changes: dict[str, object]
) -> None:
    row = BranchRow(id="b", snapshot="one", session="s")
    with pytest.raises(UsageError):
        history.add_branch(dataclasses.replace(row, **changes))  # type: ignore[arg-type]


def test_a_snapshot_without_its_bytes_is_refused(history: History) -> None:
    with pytest.raises(StoreError, match="missing"):
        history.add_snapshot(snapshot(Chain(bytes(32), bytes(32), 0, 0)))


def test_collecting_removes_what_no_snapshot_needs(store: Store) -> None:
    lines = transcript(1000)
    kept = store.history.put_chain(lines)
    side = store.history.put_chain(b"side")
    sides = (SideFile(name="s", root=side.root, sha256=side.sha256, size=4),)
    row = store.history.add_snapshot(snapshot(kept, sides=sides))
    needed = rows_in(store, "objects")
    store.history.put_chain(lines + transcript(500, seed=3))
    more = rows_in(store, "objects") - needed
    assert store.history.collect(grace_seconds=-1e6, dry_run=True).objects == more > 2
    assert store.history.collect(grace_seconds=-1e6).objects == more
    assert store.history.collect(grace_seconds=-1e6) == (0, 0)
    assert rows_in(store, "objects") == rows_in(store, "links") == needed
    assert b"".join(store.history.read(row)) == b"".join(lines)
    assert b"".join(store.history.read(row.sides[0])) == b"side"


def test_collecting_spares_what_was_stored_lately(history: History) -> None:
    chain = history.put_chain(b"text")
    assert history.collect(grace_seconds=100) == (0, 0)
    history.add_snapshot(snapshot(chain))
    assert history.read_chain(chain.root) == b"text"


def test_storing_again_counts_as_lately(history: History) -> None:
    history.put_chain(b"text")
    for _ in range(20):
        history.collect()
    chain = history.put_chain(b"text")
    assert history.collect(grace_seconds=5) == (0, 0)
    assert history.read_chain(chain.root) == b"text"


def test_deleted_text_is_gone_from_the_files(store: Store) -> None:
    secret = b"canary " + random.Random(5).randbytes(30_000)
    history = store.history
    history.add_snapshot(snapshot(history.put_chain(secret), "one", description="hidden words"))
    history.delete_snapshot("one")
    history.collect(grace_seconds=-1e6)
    left = b"".join(path.read_bytes() for path in store.folder.iterdir())
    assert secret[1000:1100] not in left
    assert secret[:100] not in left
