"""A background worker: bounded, cancellable, killed at any instant without harm, silent to requests."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recap.config import Settings
from recap.session import Session
from recap.session.worker import Job, Worker
from recap.store import Store
from recap.turns import SessionKey
from tests.session.measuring import GATE, Drawn
from tests.testing import conversation

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = Settings(retention="0.3", observer="proxy")
TURNS = 12
MESSAGES = conversation(TURNS, steps=2)
DRAWN, SLOW, HELD, DEADLY = (
    f"tests.session.measuring:{name}" for name in ("drawn", "slow", "held", "deadly")
)


def until(claim: Callable[[], Any]) -> Any:
    while not (found := claim()):
        time.sleep(0.005)
    return found


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a worker with the observer HELD waits for after one turn of a session."""
    path = tmp_path / "gate"
    monkeypatch.setenv(GATE, str(path))
    return path


def job(folder: Path, id: str = "s") -> Job:
    return Job(folder, SessionKey("", id, "", ""), id, SETTINGS)


def known(store: Store, id: str = "s") -> Any:
    return Session(id, store=store, settings=SETTINGS, observer=Drawn()).known(MESSAGES)


def whole() -> Any:
    return Session("s", settings=SETTINGS, observer=Drawn()).observe(MESSAGES).settled


def test_a_request_hands_its_session_over_and_the_next_one_sees_the_graph(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store, Worker(observer=DRAWN) as worker:
        session = Session("s", store=store, settings=SETTINGS, observer=Drawn(), worker=worker)
        first = session.compact(MESSAGES)
        assert first.report.notes["turns-not-observed"] == TURNS - 1
        until(lambda: worker.progress().done)
        done = session.compact(MESSAGES)
        assert "turns-not-observed" not in done.report.notes
        assert done.graph == whole()
        assert worker.progress().queued == 0, "a session that is up to date is not handed over"
        assert worker.progress().failures == 0


def test_a_log_is_measured_as_its_messages_are(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(json.dumps(MESSAGES), encoding="utf-8")
    with Store.open(tmp_path / "store") as store, Worker(observer=DRAWN) as worker:
        assert worker.submit(job(store.folder), log)
        worker.close(wait=True)
        assert worker.progress().done == 1
        assert known(store).settled == whole()


def test_the_process_is_of_low_priority_and_ends_with_the_worker(
    tmp_path: Path, gate: Path
) -> None:
    with Store.open(tmp_path) as store:
        worker = Worker(observer=HELD)
        worker.submit(job(store.folder), MESSAGES)
        pid = until(lambda: worker.progress().turns_done and worker.progress().pid)
        assert os.getpriority(os.PRIO_PROCESS, pid) >= 10
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert b"OMP_NUM_THREADS=1" in environment
        worker.close()
        assert not Path(f"/proc/{pid}").exists()
        assert not worker.submit(job(store.folder), MESSAGES)


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_instants_the_graph_is_that_of_the_first_turns(
    tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    graphs = Session("s", settings=SETTINGS, observer=Drawn())
    prefixes = [graphs.known(MESSAGES).settled]
    steps = [at for at, m in enumerate(MESSAGES) if isinstance(m["content"], str)]
    steps = [at for at in steps if MESSAGES[at]["role"] == "user"][1:]
    prefixes += [graphs.observe(MESSAGES[: at + 1], open_turn=False).settled for at in steps]
    with Store.open(tmp_path) as store, Worker(observer=SLOW, attempts=100) as worker:
        for _ in range(6):
            worker.submit(job(store.folder), MESSAGES)
            pid = until(lambda: worker.progress().pid or worker.progress().done)
            time.sleep(draw.uniform(0, 0.6))
            with suppress(ProcessLookupError):
                if worker.progress().pid == pid:
                    os.kill(pid, signal.SIGKILL)
            assert known(store).settled in prefixes
        worker.submit(job(store.folder), MESSAGES)
        worker.close(wait=True)
        assert known(store).settled == prefixes[-1] == whole()
        assert store.verify() == ()


def test_a_session_that_always_ends_the_process_is_given_up(tmp_path: Path) -> None:
    with Worker(observer=DEADLY, attempts=2) as worker:
        worker.submit(job(tmp_path), MESSAGES)
        until(lambda: worker.progress().restarts == 1)
        assert worker.progress().queued == 1, "it waits for the next one to be submitted"
        worker.submit(job(tmp_path), MESSAGES)
        until(lambda: worker.progress().failures == 1)
        assert not worker.submit(job(tmp_path), MESSAGES)
        assert worker.progress().restarts == 2


def test_a_session_submitted_before_the_end_is_noticed_does_not_wait(
    tmp_path: Path, gate: Path
) -> None:
    with Store.open(tmp_path) as store, Worker(observer=HELD) as worker:
        worker.submit(job(store.folder), MESSAGES)
        pid = until(lambda: worker.progress().turns_done and worker.progress().pid)
        worker.submit(job(store.folder, "other"), MESSAGES)
        os.kill(pid, signal.SIGKILL)
        gate.touch()
        until(lambda: worker.progress().done == 2)
        assert worker.progress().restarts == 1
        assert known(store).settled == whole()


def test_the_queue_is_bounded_and_holds_the_newest_state_of_each(
    tmp_path: Path, gate: Path
) -> None:
    with Store.open(tmp_path) as store, Worker(observer=HELD, queue=3) as worker:
        worker.submit(job(store.folder, "first"), MESSAGES)
        until(lambda: worker.progress().session is not None)
        for _ in range(3):
            worker.submit(job(store.folder, "same"), MESSAGES)
        assert worker.progress().queued == 1
        for name in ("a", "b", "c"):
            worker.submit(job(store.folder, name), MESSAGES)
        assert (worker.progress().queued, worker.progress().dropped) == (3, 1)
        gate.touch()
        worker.close(wait=True)
        assert worker.progress().done == 4
        assert known(store, "same").settled.turns == 0, "the oldest one went"
        assert known(store, "c").settled.turns == known(store, "first").settled.turns == TURNS - 1


def test_a_cancelled_session_keeps_what_was_measured(tmp_path: Path, gate: Path) -> None:
    with Store.open(tmp_path) as store, Worker(observer=HELD) as worker:
        worker.submit(job(store.folder), MESSAGES)
        worker.submit(job(store.folder, "waits"), MESSAGES)
        assert worker.cancel(SessionKey("", "waits", "", ""))
        until(lambda: worker.progress().turns_done)
        assert worker.cancel(SessionKey("", "s", "", ""))
        gate.touch()
        until(lambda: worker.progress().cancelled == 2)
        assert not worker.cancel(SessionKey("", "nobody", "", ""))
        worker.close(wait=True)
        assert 0 < known(store).settled.turns <= TURNS - 1
        assert known(store, "waits").settled.turns == 0


def test_what_cannot_be_handed_over_is_counted_and_raises_nothing(tmp_path: Path) -> None:
    with Worker(observer=DRAWN) as worker:
        assert not worker.submit(job(tmp_path), [{"role": "user", "content": object()}])
        assert worker.submit(job(tmp_path / "new"), [{"role": "user", "content": "\ud800"}])
        worker.close(wait=True)
        assert (worker.progress().dropped, worker.progress().done) == (1, 1)


def test_an_error_of_a_session_is_told_without_its_words(tmp_path: Path) -> None:
    with Worker(observer="tests.session.measuring:nothing") as worker:
        worker.submit(job(tmp_path), [{"role": "user", "content": "secret words"}] * 3)
        worker.close(wait=True)
        assert worker.progress().failures == 1
        assert worker.progress().error == "AttributeError"


@pytest.mark.slow
def test_the_model_of_the_settings_is_run(tmp_path: Path) -> None:
    from tests.capture.tiny_models import make_model

    folder = str(make_model(tmp_path / "model", "llama"))
    settings = SETTINGS.replace(proxy_model=folder)
    with Store.open(tmp_path / "store") as store, Worker() as worker:
        session = Session("s", store=store, settings=settings, worker=worker)
        session.compact(MESSAGES)
        worker.close(wait=True)
        assert (worker.progress().done, worker.progress().error) == (1, "")
        done = session.compact(MESSAGES)
    assert done.graph.turns == TURNS - 1
    assert done.graph.is_observed.any()
    assert "turns-not-observed" not in done.report.notes


def test_a_worker_without_a_store_is_refused() -> None:
    from recap.errors import UsageError

    with Worker() as worker, pytest.raises(UsageError, match="store"):
        Session("s", settings=SETTINGS, worker=worker)


def test_nothing_is_started_where_no_model_is_needed(tmp_path: Path) -> None:
    with Worker(observer=DRAWN) as worker, Session("s", store=tmp_path, worker=worker) as session:
        session.compact(MESSAGES)
        assert worker.progress().pid is None
        assert worker.progress().dropped == 0


PARENT = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.session.test_worker import HELD, MESSAGES, job
from recap.session.worker import Worker
worker = Worker(observer=HELD)
worker.submit(job(Path(sys.argv[1])), MESSAGES)
while not worker.progress().turns_done:
    time.sleep(0.005)
print(worker.progress().pid, flush=True)
time.sleep(100)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_process_ends_with_the_one_that_started_it(
    tmp_path: Path, gate: Path, number: int
) -> None:
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), root], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(number)
        parent.wait()

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    until(is_gone)
    with Store.open(tmp_path) as store:
        assert store.verify() == ()
