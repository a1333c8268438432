"""``--observer proxy``: what observe, graph, compact and explain say of a graph that may lag behind."""

from __future__ import annotations

import json
import re
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from recap.config import Settings
from recap.session import Session
from recap.store import Store
from tests.session.measuring import Drawn
from tests.testing import conversation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

TURNS = 6
PROXY = ("--observer", "proxy")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.capture.tiny_models import make_model

    return str(make_model(tmp_path_factory.mktemp("model"), "llama"))


def session(path: Path, turns: int = TURNS) -> str:
    path.write_text(json.dumps(conversation(turns)), encoding="utf-8")
    return str(path)


def kept(cli: Cli, *arguments: str) -> Any:
    return cli(*arguments, RECAP_HOME=str(cli.folder / "kept"))


def test_a_missing_model_is_one_line_with_the_command_that_mends_it(
    cli: Cli, tmp_path: Path
) -> None:
    result = kept(cli, "observe", session(tmp_path / "s.json"), *PROXY)
    assert result.status == 1
    assert result.err.count("\n") == 1
    assert "recap proxy install" in result.err or "pip install" in result.err
    assert not (tmp_path / "kept").exists()


def test_a_model_for_an_observer_without_one_is_wrong_use(cli: Cli, tmp_path: Path) -> None:
    result = kept(cli, "observe", session(tmp_path / "s.json"), "--model", "m")
    assert result.status == 2
    assert "--observer proxy" in result.err


def test_a_model_given_twice_is_wrong_use(cli: Cli, tmp_path: Path) -> None:
    path = session(tmp_path / "s.json")
    twice = ("--model", "m", "--set", "proxy_model=n")
    assert kept(cli, "observe", path, *PROXY, *twice).status == 2


def test_a_dry_run_counts_the_turns_and_needs_no_model(cli: Cli, tmp_path: Path) -> None:
    path = session(tmp_path / "s.json")
    result = kept(cli, "observe", path, *PROXY, "--dry-run")
    assert result.status == 0
    assert f"{TURNS - 1} turns would be replayed" in result.out
    (row,) = kept(cli, "observe", path, *PROXY, "--dry-run", "--json").json()["sessions"]
    assert (row["observer"], row["to_observe"], row["open_turns"]) == ("proxy", TURNS - 1, 1)
    assert not (tmp_path / "kept").exists()


def test_compact_and_explain_name_the_next_step(cli: Cli, tmp_path: Path) -> None:
    path = session(tmp_path / "s.json")
    step = "`recap observe SESSION --observer proxy` brings it up to date"
    for command in (("compact", "--dry-run"), ("explain",)):
        result = kept(cli, command[0], path, *PROXY, "--request", "next", *command[1:])
        assert result.status == 0
        assert f"{TURNS} turns of the history by the graph; {step}" in result.out
    piped = kept(cli, "compact", path, *PROXY, "--request", "next")
    assert piped.status == 0
    assert piped.err == f"recap: the graph has not seen {TURNS} turns of the history; {step}\n"
    assert kept(cli, "compact", path, "--request", "next").err == ""
    report = kept(cli, "compact", path, *PROXY, "--request", "next", "--json").json()
    assert report["notes"]["turns-not-observed"] == TURNS
    assert "not seen" not in kept(cli, "compact", path, "--request", "next", "--dry-run").out


def test_an_open_turn_is_no_reason_to_observe_again(cli: Cli, tmp_path: Path) -> None:
    path = session(tmp_path / "s.json")
    settings = Settings(observer="proxy", proxy_model=str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    from recap.session.model import fingerprint_of

    drawn = Drawn(fingerprint_of(str(tmp_path), {}))
    with Store.open(tmp_path / "kept") as store:
        one = Session(store=store, settings=settings, observer=drawn, label=path)
        one.observe(conversation(TURNS), open_turn=False)
    asked = (path, *PROXY, "--set", f"proxy_model={tmp_path}")
    out = kept(cli, "compact", *asked, "--request", "next", "--dry-run").out
    assert "1 turn of the history by the graph; it is observed once a later message" in out
    assert "not seen" not in kept(cli, "compact", *asked, "--dry-run").out
    shown = kept(cli, "graph", *asked)
    assert f"{TURNS - 1} turns observed by proxy" in shown.out
    assert kept(cli, "graph", *asked, "--json").json()["turns_not_observed"] == 1


@pytest.mark.slow
def test_observe_goes_on_from_what_is_kept(cli: Cli, tmp_path: Path, model: str) -> None:
    asked = (session(tmp_path / "s.json"), *PROXY, "--model", model)
    first = kept(cli, "observe", *asked, "--json")
    assert first.status == 0, first.err
    (row,) = first.json()["sessions"]
    assert (row["turns"], row["to_observe"], row["dropped"]) == (TURNS - 1, 0, {})
    assert row["blocks"] > 0
    assert "0 failed" in kept(cli, "observe", *asked).out
    assert kept(cli, "observe", *asked, "-o", "g").status == 0
    shown = kept(cli, "graph", asked[0], "--graph", "g", "--json").json()
    assert (shown["observer"], shown["turns"]) == ("proxy", TURNS)
    kept(cli, "observe", asked[0])
    stored = {each["observer"] for each in kept(cli, "graph", "--json").json()["graphs"]}
    assert stored == {"proxy", "reuse"}


@pytest.mark.slow
def test_an_interrupt_keeps_the_turns_that_were_measured(
    cli: Cli, tmp_path: Path, model: str
) -> None:
    path, home = session(tmp_path / "s.json", 120), str(tmp_path / "kept")
    asked = ("observe", path, *PROXY, "--model", model, "--store", home)
    with cli.process(*asked) as running, Store.open(tmp_path / "kept") as store:
        tenant = store.key("tenant", "")
        while not any(row.turns > 2 for row in store.sessions(tenant)):
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
        (row,) = store.sessions(tenant)
    assert running.returncode == 130
    assert 2 < row.turns < 119
    told = re.match(r"recap: (\d+) turns kept; the same command goes on", err.decode())
    assert told, err
    assert row.turns - int(told[1]) in (0, 1), "the last one may be kept and not counted"
