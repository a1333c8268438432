"""Files that appear together: what is left at each step, and what settling makes of it."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.cmv.making import making, settle
from recap.errors import InputError, UsageError
from recap.store import BranchRow, Store
from recap.store.unfinished import Unfinished
from tests.cmv.test_branch import SESSION

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cmv.worlds import World


def note(folder: Path, *names: str, **more: bool) -> Unfinished:
    targets = tuple(str(folder / name) for name in names)
    return Unfinished(id="0123456789abcdef", folder=str(folder), targets=targets, **more)  # type: ignore[arg-type]


def left(folder: Path, written: Unfinished) -> list[Path]:
    """Write the files of a note under the names they have until they are published."""
    made = [folder / f".recap-{written.id}-{at}" for at in range(len(written.targets))]
    for at, path in enumerate(made):
        path.write_bytes(b"file %d" % at)
    return made


def names_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@given(
    is_ready=st.booleans(), replaces=st.booleans(), written=st.integers(0, 3),
    published=st.integers(0, 3), cleaned=st.integers(0, 3),
)  # fmt: skip
def test_wherever_a_process_ended_all_files_are_there_or_none(
    tmp_path_factory: pytest.TempPathFactory, is_ready: bool, replaces: bool, written: int,
    published: int, cleaned: int,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("making")
    files = folder / "files"
    files.mkdir()
    with Store.open(folder / "store") as store:
        begun = store.history.begin(note(files, "main", "side/a", "side/b", replaces=replaces))
        made = left(files, begun)
        if is_ready:  # then all were written: some have their names, and of these some lost the old
            store.history.commit(begun)
            order = [1, 2, 0][:published]
            for at in order:
                target = files / begun.targets[at]
                target.parent.mkdir(exist_ok=True)
                target.hardlink_to(made[at])
            for at in order[:cleaned] if published == 3 else ():
                made[at].unlink()
        else:
            for path in made[written:]:
                path.unlink()
        (settled,) = settle(store)
        assert (settled.path, settled.outcome) == (
            files / "main", "completed" if is_ready else "undone",
        )  # fmt: skip
        assert names_in(files) == ({"main", "side/a", "side/b"} if is_ready else set())
        assert settle(store) == []
        assert store.verify() == ()
    if is_ready:
        assert (files / "side/b").read_bytes() == b"file 2"


def test_what_another_file_has_the_name_of_is_undone_with_its_record(
    world: World, tmp_path: Path
) -> None:
    row = world.snap(world.session(SESSION), "one")
    begun = world.store.history.begin(note(tmp_path, "main", "beside"))
    left(tmp_path, begun)
    world.store.history.commit(begun, BranchRow(id="b", snapshot=row.id, session="s"))
    (tmp_path / "main").write_text("of another")
    (settled,) = settle(world.store)
    assert settled.outcome == "undone"
    assert (tmp_path / "main").read_text() == "of another"
    assert not (tmp_path / "beside").exists()
    assert not list(tmp_path.glob(".recap-*"))
    assert world.store.history.branches() == []


def test_a_file_whose_folder_is_gone_is_forgotten(world: World, tmp_path: Path) -> None:
    begun = world.store.history.begin(note(tmp_path / "gone", "main"))
    assert [each.outcome for each in settle(world.store)] == ["undone"]
    world.store.history.commit(begun)
    assert len(settle(world.store)) == 1
    assert not (tmp_path / "gone").exists()


def test_what_another_process_is_making_is_left_alone(world: World, tmp_path: Path) -> None:
    is_written, is_asked = threading.Event(), threading.Event()

    def make() -> None:
        with making(world.store, [tmp_path / "main"]) as files:
            files.write(0, [b"whole"])
            is_written.set()
            is_asked.wait()
            files.commit()

    other = threading.Thread(target=make)
    other.start()
    try:
        assert is_written.wait()
        assert settle(world.store) == []
        assert world.store.verify() == ()
    finally:
        is_asked.set()
        other.join()
    assert (tmp_path / "main").read_bytes() == b"whole"
    assert world.store.history.unfinished() == []


def make(
    world: World, targets: list[Path], snapshot: str, before_commit: Callable[[], object] = list
) -> None:
    """Make files that are a branch of a snapshot."""
    with making(world.store, targets) as files:
        for at in range(len(targets)):
            files.write(at, [b"x"])
        before_commit()
        files.commit(BranchRow(id="b", snapshot=snapshot, session="s"))


def test_an_error_on_the_way_takes_all_files_away(world: World, tmp_path: Path) -> None:
    row = world.snap(world.session(SESSION), "one")
    targets = [tmp_path / "main", tmp_path / "side" / "a"]
    with pytest.raises(ZeroDivisionError):
        make(world, targets, row.id, lambda: 1 // 0)
    assert not list(tmp_path.glob(".recap-*"))
    with pytest.raises(UsageError, match="is there already"):  # when the other file has its name
        make(world, targets, row.id, lambda: targets[0].write_text("of another"))
    assert targets[0].read_text() == "of another"
    assert not targets[1].exists()
    assert not list(tmp_path.glob(".recap-*"))
    assert world.store.history.branches() == world.store.history.unfinished() == []


def test_a_branch_of_no_snapshot_is_not_recorded_and_leaves_no_file(
    world: World, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no snapshot"):
        make(world, [tmp_path / "main"], "nobody")
    assert not [each for each in tmp_path.iterdir() if each.name not in ("home", "store")]


def test_a_file_system_without_links_gives_names_all_the_same(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    with making(world.store, [tmp_path / "main", tmp_path / "side/a"]) as files:
        for at in range(2):
            files.write(at, [b"%d" % at])
        files.commit()
    assert (tmp_path / "main").read_bytes() == b"0"
    assert (tmp_path / "side/a").read_bytes() == b"1"
    assert not list(tmp_path.glob(".recap-*"))


def test_a_folder_that_refuses_files_is_one_line(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        make(world, [tmp_path / "file" / "main"], "one")


def test_a_damaged_note_is_a_fault_and_no_file_is_touched(world: World, tmp_path: Path) -> None:
    from recap.errors import StoreError
    from tests.store.factories import execute

    begun = world.store.history.begin(note(tmp_path, "main"))
    left(tmp_path, begun)
    execute(world.store, "UPDATE unfinished SET targets = ?", '["/etc/hostname"]')
    with pytest.raises(StoreError, match="recap verify --repair"):
        settle(world.store)
    assert {fault.code for fault in world.store.verify()} == {"row"}
    assert len(list(tmp_path.glob(".recap-*"))) == 1


@pytest.mark.parametrize("changes", [{"id": ""}, {"targets": ()}, {"folder": "x" * 5000}])
def test_a_note_that_cannot_be_stored_is_refused(
    world: World, tmp_path: Path, changes: dict[str, object]
) -> None:
    from dataclasses import replace

    with pytest.raises(UsageError):
        world.store.history.begin(replace(note(tmp_path, "main"), **changes))  # type: ignore[arg-type]
