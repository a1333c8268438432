"""Several processes, and processes that end at any instant."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recap.cmv.snapshot import Labels, look, take
from recap.store import Store
from recap.store.repair import repair
from recap.store.verify import verify
from tests.cmv.worlds import World, dumped, tool_steps

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
LINE = json.dumps({"type": "mode", "mode": "x" * 300, "sessionId": "s"}).encode() + b"\n"


def start(what: str, home: Path, store: Path, session: Path, word: str) -> subprocess.Popen[str]:
    """Start a program of ``versioners``."""
    words = [sys.executable, "-m", "tests.cmv.versioners", what, home, store, session, word]
    return subprocess.Popen([*map(str, words)], cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_c20_eight_snapshots_at_once_are_all_kept(
    tmp_path: Path, case: Callable[[str], dict[str, Any]]
) -> None:
    found = case("c20")
    expect = found["expect"]
    programs = []
    for at in range(8):
        session = tmp_path / f"{at}.jsonl"
        session.write_bytes(found["data"].replace(b"0000-40", b"%04d-40" % at))
        programs.append(start("snapshot", tmp_path, tmp_path / "store", session, f"s{at}"))
    said = [program.communicate()[0] for program in programs]
    assert sum(words.startswith("taken ") for words in said) == expect["reported_success"]
    with Store.open(tmp_path / "store") as store:
        rows = store.history.snapshots()
        assert sorted(row.name for row in rows) == [f"s{at}" for at in range(8)]
        assert store.verify() == ()


def test_c21_a_damaged_store_is_reported_repaired_and_never_written_over(
    tmp_path: Path, case: Callable[[str], dict[str, Any]]
) -> None:
    found = case("c21")
    folder = tmp_path / "store"
    for cut in (5, 4096):
        session = tmp_path / "s.jsonl"
        session.write_bytes(found["data"])
        with Store.open(folder) as store:
            for name in ("keep1", "keep2"):
                if name not in [row.name for row in store.history.snapshots()]:
                    take(store, look(session), Labels(name=name))
        database = folder / "recap.db"
        damaged = database.read_bytes()[:-cut]
        database.write_bytes(damaged)
        if verify(folder):
            done = repair(folder)
            assert done.copy is not None
            assert any(each.read_bytes() == damaged for each in done.copy.iterdir())
        with Store.open(folder) as store:
            take(store, look(session), Labels(name=f"new{cut}"))
            names = {row.name for row in store.history.snapshots()}
            assert {"keep1", "keep2", f"new{cut}"} <= names
            rows = store.history.snapshots()
            assert all(b"".join(store.history.read(row)) == found["data"] for row in rows)
            assert store.verify() == ()


def test_c17_of_a_session_that_is_written_to_no_line_is_lost_or_torn(world: World) -> None:
    path = world.session(dumped(tool_steps(["x"])))
    is_over = threading.Event()

    def write() -> None:
        with path.open("ab", buffering=0) as stream:
            while not is_over.is_set():
                half = random.randrange(1, len(LINE) - 1)
                stream.write(LINE[:half])
                time.sleep(0.0005)
                stream.write(LINE[half:])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        rows = [world.snap(path, f"s{at}") for at in range(10)]
    finally:
        is_over.set()
        writer.join()
    whole = path.read_bytes()
    for row in rows:
        data = world.bytes_of(row)
        assert whole.startswith(data)
        assert data.endswith(b"\n")
        assert world.branch(row).path.read_bytes().count(b"\n") == data.count(b"\n")
    assert rows[-1].size > rows[0].size
