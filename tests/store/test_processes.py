"""Several processes, and processes that end at any instant: no save is lost, none is torn."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recap.store import Store
from recap.store.repair import repair
from recap.store.verify import verify
from tests.store.factories import TENANT, key, row
from tests.store.writers import graph_of

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
WRITERS = 8


def start(what: str, folder: Path, *arguments: int) -> subprocess.Popen[str]:
    """Start a program of ``writers``."""
    words = [sys.executable, "-m", "tests.store.writers", what, str(folder)]
    return subprocess.Popen(
        [*words, *map(str, arguments)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def killed(program: subprocess.Popen[str], draw: random.Random, events: int) -> list[list[str]]:
    """Kill a program at a random instant after some of its events; return what it had said."""
    assert program.stdout is not None
    said = [program.stdout.readline() for _ in range(draw.randint(1, events))]
    time.sleep(draw.uniform(0, 0.006))
    program.send_signal(signal.SIGKILL)
    said += program.stdout.readlines()
    program.wait()
    program.stdout.close()
    assert program.returncode == -signal.SIGKILL
    return [line.split() for line in said]


@pytest.mark.slow
def test_eight_processes_that_save_the_same_sessions_lose_no_update(tmp_path: Path) -> None:
    times, sessions = 24, 3
    programs = [start("increment", tmp_path / "s", times, sessions) for _ in range(WRITERS)]
    for program in programs:
        said, _ = program.communicate()
        assert said == f"done {times}\n"
    with Store.open(tmp_path / "s") as store:
        counts = [store.load_session(TENANT, key(number)) for number in range(sessions)]
        assert [int(s.graph) for s in counts if s] == [WRITERS * times // sessions] * sessions
        assert [s.rev for s in counts if s] == [WRITERS * times // sessions] * sessions
        assert store.verify() == ()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_kill_at_any_instant_loses_nothing_saved(
    tmp_path: Path, pytestconfig: pytest.Config, record_property: pytest.RecordProperty
) -> None:
    """The same store is killed again and again, until so many kills hit inside a transaction.

    A transaction is open from SQLite's own trace of BEGIN until the save has returned. How often a kill hits
    depends on how busy the computer is, so one that missed is checked but not counted.
    """
    kills, draw, inside = pytestconfig.getoption("--kills"), random.Random(4), 0
    saved, taken = dict.fromkeys(range(5), 0), set()
    for tried in count(1):
        said = killed(start("save_forever", tmp_path / "s"), draw, events=12)
        inside += said[-1] == ["begin"]
        for event, *words in said:
            if event == "saved":
                saved[int(words[0])] = int(words[1])
            if event == "taken":
                taken.add(words[0])
        assert verify(tmp_path / "s") == ()
        with Store.open(tmp_path / "s") as store:
            for number, rev in saved.items():
                found = store.load_session(TENANT, key(number)) or row(number, graph=b"")
                assert found.rev - rev in (0, 1)  # the save that was cut may have been committed
                assert found.graph == (graph_of(number, found.rev) if found.rev else b"")
                assert store.load_index(TENANT, key(number)) == (found.graph or None)
                saved[number] = found.rev
            assert taken <= {s.id for s in store.history.snapshots()}
        if inside == kills:
            break
        assert tried < 10 * kills, f"only {inside} of {tried} kills hit a transaction"
    record_property("kills inside a transaction", f"{inside} of {tried}")


@pytest.mark.slow
def test_a_kill_while_a_store_is_made_leaves_one_that_opens(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    draw = random.Random(5)
    for kill in range(max(4, pytestconfig.getoption("--kills") // 4)):
        folder = tmp_path / str(kill)
        said = killed(start("open_forever", folder), draw, events=4)
        with Store.open(folder / said[-1][1]) as store:
            assert store.save_session(row()).rev == 1
            assert store.verify() == ()
        left = {path.name for path in (folder / said[-1][1]).iterdir()}
        assert left <= {"recap.db", "secret", "lock", "backups"}


@pytest.mark.slow
def test_a_kill_while_a_store_is_repaired_leaves_the_old_or_the_new(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    draw = random.Random(6)
    for kill in range(max(4, pytestconfig.getoption("--kills") // 4)):
        folder = tmp_path / str(kill)
        killed(start("repair_forever", folder), draw, events=5)
        repair(folder)
        assert verify(folder) == ()
        with Store.open(folder):
            assert not (folder / "repairing").exists()


def in_child(work: Callable[[], object]) -> None:
    """Run some work in a forked process and demand that it ends well."""
    child = os.fork()
    if not child:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0


FORKS = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@FORKS
def test_a_forked_process_uses_connections_of_its_own(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store:
        saved = store.save_session(row())

        def work() -> None:
            assert store.load_session(TENANT, key(1)) == saved
            store.save_session(saved)
            store.close()

        in_child(work)
        again = store.load_session(TENANT, key(1))
        assert again is not None
        assert again.rev == 2
        assert store.save_session(again).rev == 3
        assert store.verify() == ()


@FORKS
def test_a_process_may_fork_while_its_threads_are_in_the_store(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s") as store, ThreadPoolExecutor(3) as threads:
        is_over = threading.Event()

        def busy(number: int) -> int:
            saved = row(number)
            while not is_over.is_set():
                saved = store.save_session(saved, durable=False)
                assert store.load_session(TENANT, key(number)) == saved
            return saved.rev

        revs = [threads.submit(busy, number) for number in range(3)]
        try:
            for number in range(10, 20):
                in_child(lambda n=number: store.save_session(row(n)))  # type: ignore[misc]
        finally:
            is_over.set()
        assert all(rev.result() for rev in revs)
        assert len(store.sessions(TENANT)) == 13
        assert store.verify() == ()
