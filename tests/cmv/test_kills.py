"""Writers killed at any instant: what they left is whole, and settled by the next command.

``--kills N`` kills each writer N times inside: when it had begun and did not say that it ended. The instants
are drawn over the time that the writer takes; how many miss it depends on how busy the computer is, so a kill
that missed is checked but not counted.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recap.cmv.making import settle
from recap.cmv.names import find_snapshot
from recap.cmv.removing import delete
from recap.cmv.snapshot import Labels, look, take
from recap.store import Store
from recap.store.verify import verify
from tests.cmv.raw_session import texts
from tests.cmv.worlds import World, dumped, tool_steps

if TYPE_CHECKING:
    from collections.abc import Iterator


ROOT = Path(__file__).resolve().parents[2]
BESIDE = 3
DATA = dumped(tool_steps([f"output {at} " * 300 for at in range(120)]))


class Writers:
    """A process that does what it is told in a child, and a way to kill the child."""

    def __init__(self, home: Path, store: Path, session: Path) -> None:
        words = [sys.executable, "-m", "tests.cmv.versioners", "serve", home, store, session, "-"]
        self._process = subprocess.Popen(
            [*map(str, words)], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def run(self, what: str, name: str, kill_after: float | None = None) -> tuple[float, bool]:
        """Do something; return how long it took, and whether it came to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what} {name}\n")
        self._process.stdin.flush()
        begin, child = self._process.stdout.readline().split()
        assert begin == "begin"
        start = time.perf_counter()
        if kill_after is not None:
            _kill(int(child), kill_after)
        said = self._process.stdout.readline().strip()
        seconds = time.perf_counter() - start
        if said == "end":
            assert self._process.stdout.readline() == "gone\n"
        return seconds, said == "end"

    def close(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


def _kill(process: int, after: float) -> None:
    """Kill a process after a time; one that ended meanwhile, or another of its number, is left."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(process)
        try:
            time.sleep(after)
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with a session and files beside it."""
    path = World(tmp_path, None).session(DATA, id="0a0a0a0a-0000-4000-8000-000000000000")  # type: ignore[arg-type]
    folder = path.with_suffix("") / "tool-results"
    folder.mkdir(parents=True)
    for at in range(BESIDE):
        (folder / f"{at}.txt").write_bytes(DATA[: 1000 * at + 1])
    return tmp_path


@pytest.fixture
def session(home: Path) -> Path:
    return next(home.rglob("0a0a0a0a*.jsonl"))


@pytest.fixture
def writers(home: Path, session: Path) -> Iterator[Writers]:
    served = Writers(home, home / "store", session)
    yield served
    served.close()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("what", ["snapshot", "branch", "restore", "delete", "gc"])
def test_a_writer_killed_at_any_instant_leaves_all_or_nothing(
    what: str, home: Path, session: Path, writers: Writers, pytestconfig: pytest.Config,
    record_property: pytest.RecordProperty,
) -> None:  # fmt: skip
    kills, draw = pytestconfig.getoption("--kills"), random.Random(what)
    with Store.open(home / "store") as store:
        take(store, look(session), Labels(name="first"))
    names = (_prepared(what, home, session, at) for at in count())
    # A few to their end: how long does it take?
    shortest = min(writers.run(what, next(names))[0] for _ in range(5))
    inside = completed = 0
    for tried in count(1):
        name = next(names)
        _, is_ended = writers.run(what, name, draw.uniform(0, 0.9 * shortest))
        inside += not is_ended
        completed += _check(what, name, home, session)
        if inside == kills:
            break
        assert tried < 10 * kills, f"only {inside} of {tried} kills hit the writer"
    record_property("killed inside the writer", f"{what}: {inside} of {tried}")
    record_property("left done or completed", f"{what}: {completed} of {tried}")


def _prepared(what: str, home: Path, session: Path, at: int) -> str:
    """Make what is to be written to, and return its name."""
    if what in ("branch", "restore"):
        return "first"
    name = f"s{at}"
    if what != "snapshot":
        own = os.urandom(20_000).hex().encode()  # bytes that no other has, for gc to take
        session.write_bytes(DATA + b'{"type":"mode","mode":"%s"}\n' % own)
        with Store.open(home / "store") as store:
            row = take(store, look(session), Labels(name=name))
            if what == "gc":
                delete(store.history, row)
                return "first"
    return name


def _check(what: str, name: str, home: Path, session: Path) -> bool:
    """Demand that all is as before, or done; return True for done."""
    folder = home / "store"
    assert {fault.code for fault in verify(folder)} <= {"unfinished"}
    with Store.open(folder) as store:
        settled = settle(store)
        assert store.verify() == ()
        rows = {row.name: row for row in store.history.snapshots()}
        assert b"".join(store.history.read(find_snapshot(store.history, "first"))) == DATA
        if what == "snapshot" and name in rows:
            assert b"".join(store.history.read(rows[name])) == DATA
        made = {row.session: row for row in store.history.branches()}
        for row in made.values():
            delete(store.history, row)
    assert not list(home.rglob(".recap-*"))
    if what == "branch":
        _check_branches(session, {id: row.sha256 for id, row in made.items()})
    if what == "restore":
        _check_restored(home / "restored")
    is_there = name in rows
    return {"snapshot": is_there, "delete": not is_there}.get(
        what, any(each.outcome == "completed" for each in settled)
    )


def _check_branches(session: Path, made: dict[str, bytes]) -> None:
    """Demand a record for each file and a file for each record, whole, with all files beside it."""
    files = {path.stem: path for path in session.parent.glob("*.jsonl") if path != session}
    assert set(files) == set(made)
    for id, path in files.items():
        data = path.read_bytes()
        assert hashlib.sha256(data).digest() == made[id]
        assert texts(data, "user") == [*texts(DATA, "user"), "go on"]
        assert len(list(path.with_suffix("").rglob("*.txt"))) == BESIDE
    folders = {path.name for path in session.parent.iterdir() if path.is_dir()}
    assert folders == {*files, session.stem}
    for path in files.values():  # the next one is judged alone
        path.unlink()
        shutil.rmtree(path.with_suffix(""))


def _check_restored(folder: Path) -> None:
    for path in folder.glob("*.jsonl"):
        assert path.read_bytes() == DATA
        assert len(list(path.with_suffix("").rglob("*.txt"))) == BESIDE
    assert {path.stem for path in folder.glob("*")} == {
        path.stem for path in folder.glob("*.jsonl")
    }
