"""Several trims at one instant: each keeps its snapshot, under a name that nobody else takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from recap.cmv.branch import Wish
from recap.cmv.fork import fork
from recap.cmv.names import new_id
from recap.cmv.options import TrimOptions
from recap.cmv.snapshot import Labels, look, take
from recap.errors import UsageError
from recap.store import History, Store
from tests.cmv.worlds import dumped, tool_steps

if TYPE_CHECKING:
    from pathlib import Path

    from recap.cmv.live import Window
    from recap.store import SnapshotRow
    from tests.cmv.worlds import World

DATA = dumped(tool_steps(["a" * 2000]))


class Racing:
    """A session's bytes; while they are read another process takes a snapshot under the same name."""

    def __init__(self, world: World, source: Window, name: str) -> None:
        self.world = world
        self.source = source
        self.wanted = name
        self.name, self.size = source.name, source.size

    def read(self, start: int, end: int) -> bytes:
        if self.wanted:
            name, self.wanted = self.wanted, ""
            self.world.snap(self.world.session(DATA), name)
        return self.source.read(start, end)


def test_a_name_that_is_taken_meanwhile_gets_a_number(world: World) -> None:
    """Of eight trims in one second four were refused."""
    wish = Wish(trim=TrimOptions(keep_last=0, yes=True))
    for others in range(1, 4):
        seen = look(world.session(DATA))
        racing = Racing(world, seen.live.source, "now" if others == 1 else f"now_{2 * others - 1}")
        seen = replace(seen, live=replace(seen.live, source=racing))  # type: ignore[arg-type]
        row, made = fork(world.store, seen, Labels(name="now", is_numbered=True), wish, world.homes)
        assert row.name == f"now_{2 * others}"
        assert made.row.snapshot == row.id
    assert len(world.store.history.snapshots()) == 6


def test_a_name_that_was_asked_for_is_refused_when_it_is_taken_meanwhile(world: World) -> None:
    seen = look(world.session(DATA))
    racing = Racing(world, seen.live.source, "one")
    seen = replace(seen, live=replace(seen.live, source=racing))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'one' is taken"):
        fork(world.store, seen, Labels(name="one"), Wish(), world.homes)


class Raced(History):
    """A history in which others take the first names that are found free, before they are used."""

    rivals = 3

    def add_snapshot(self, row: SnapshotRow, **given: Any) -> SnapshotRow:
        if Raced.rivals:
            Raced.rivals -= 1
            super().add_snapshot(replace(row, id=new_id()))
        return super().add_snapshot(row, **given)


class RacedStore(Store):
    @property
    def history(self) -> History:
        return Raced(self._database, self._clock)


def test_a_name_that_is_taken_at_the_last_moment_gets_the_next_number(
    world: World, tmp_path: Path
) -> None:
    seen = look(world.session(DATA))
    with RacedStore.open(tmp_path / "raced") as store:
        row = take(store, seen, Labels(name="now", is_numbered=True))
        assert row.name == "now_4"
        assert len(store.history.snapshots()) == 4
        with pytest.raises(UsageError, match="'now' is taken"):
            take(store, seen, Labels(name="now"))


def test_there_are_names_for_more_than_a_thousand(world: World) -> None:
    path = world.session(DATA)
    row = world.snap(path, "now")
    history = world.store.history
    for number in range(2, 1003):
        history.add_snapshot(replace(row, id=f"{number:032x}", name=f"now_{number}"))
    seen = look(path)
    taken = fork(world.store, seen, Labels(name="now", is_numbered=True), Wish(), world.homes)[0]
    assert taken.name == "now_1003"
