"""What real clients sent, taken through sessions in order: served lists are valid and only grow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import recap
from recap.config import Settings
from recap.recognise import Recognised, recognise
from recap.session import Compaction, Session
from recap.session.pipeline import SIZE_CODES
from recap.store import Store
from recap.transcript.lists import read_messages

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus

SETTINGS = Settings(retention="0.1")
USAGE = {"input_tokens": 10, "cache_read_input_tokens": 9000, "output_tokens": 5}


class Client:
    """Takes a client's requests through sessions, one for each id and agent, over one store."""

    def __init__(self, store: Store, settings: Settings, *, is_new_process: bool) -> None:
        self.store = store
        self.settings = settings
        self.is_new_process = is_new_process
        self.now = 1_000_000.0
        self.open: dict[tuple[str, str], Session] = {}

    def session(self, key: tuple[str, str]) -> Session:
        if self.is_new_process or key not in self.open:
            self.open[key] = Session(
                key[0], agent=key[1], store=self.store, settings=self.settings,
                clock=lambda: self.now,
            )  # fmt: skip
        return self.open[key]

    def take(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[Recognised, Compaction]:
        """Serve a request; what passes through is looked at and leaves no trace."""
        request = recognise(body, headers)
        session = self.session((request.session.id, request.session.agent))
        transcript = read_messages(body)
        done = session.compact(transcript, keep=not request.passes)
        assert session.failure is None
        self.now += 1
        if not request.passes:
            session.responded(USAGE)
        return request, done


def runs(corpus: Path) -> dict[str, list[dict[str, Any]]]:
    folder = corpus.parent / "cases" / "gateway" / "captures"
    if not folder.is_dir():
        pytest.skip(f"captured requests not found at {folder}")
    expected = json.loads((folder / "expected.json").read_bytes())
    return {
        run: [json.loads((folder / run / each["file"]).read_bytes()) for each in rows["requests"]]
        for run, rows in expected.items()
    }


@pytest.mark.parametrize("is_new_process", [False, True])
@pytest.mark.parametrize("mode", ["turn", "epoch"])
def test_what_clients_get_is_valid_and_only_grows(
    corpus: Path, tmp_path: Path, mode: str, is_new_process: bool
) -> None:
    settings = SETTINGS.replace(mode=mode, epoch_start_tokens=1000, epoch_step_tokens=1000)
    with Store.open(tmp_path) as store:
        for requests in runs(corpus).values():
            client = Client(store, settings, is_new_process=is_new_process)
            before: dict[Any, tuple[list[Any], list[Any]]] = {}
            for each in requests:
                request, done = client.take(each["body"], each["headers"])
                findings = recap.check(done.messages, done.report.dialect)
                errors = {found.code for found in findings if found.severity == "error"}
                assert errors <= SIZE_CODES
                sent = list(recap.compact(each["body"], retention=1).messages)
                if request.passes:
                    continue
                grown = before.get(request.session)
                if grown is not None and done.report.action in ("extend", "reuse"):
                    sent_before, served_before = grown
                    if sent[: len(sent_before)] == sent_before:
                        assert done.messages[: len(served_before)] == served_before
                before[request.session] = (sent, done.messages)
        assert store.verify() == ()


def test_side_calls_change_nothing_of_a_session(corpus: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "all") as whole, Store.open(tmp_path / "turns") as turns:
        for requests in runs(corpus).values():
            both = [Client(store, SETTINGS, is_new_process=False) for store in (whole, turns)]
            for each in requests:
                request, done = both[0].take(each["body"], each["headers"])
                if request.passes:
                    both[1].now += 1
                else:
                    _, other = both[1].take(each["body"], each["headers"])
                    assert done.messages == other.messages
                    assert done.graph == other.graph
