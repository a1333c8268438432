"""A graph that a model makes: brought up to date turn by turn, by anyone, never while a request waits."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import Settings
from recap.errors import RecapError
from recap.graph.codec import decode
from recap.graph.state import ContextGraph
from recap.session import Session
from recap.store import Store
from tests.session.measuring import Drawn, Measured
from tests.testing import conversation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recap.session.observing import Progress

SETTINGS = Settings(retention="0.3", observer="proxy")
TURNS = 8
MESSAGES = conversation(TURNS)
STARTS = [at for at, m in enumerate(MESSAGES) if isinstance(m["content"], str) and at % 8 == 0]


def opened(store: Any = None, observer: Drawn | None = None, **changes: Any) -> Session:
    settings = SETTINGS.replace(**changes)
    return Session("s", store=store, settings=settings, observer=observer or Drawn())


def whole() -> ContextGraph:
    """Return the settled graph of one run over the whole."""
    return opened().observe(MESSAGES).settled


class Stop(Exception):  # noqa: N818
    """Ends the work, as an interrupt does."""


def stopping_after(turns: int) -> Any:
    def told(progress: Progress) -> None:
        if progress.done >= turns:
            raise Stop

    return told


@given(cuts=st.lists(st.integers(1, len(MESSAGES)), max_size=6), stops=st.lists(st.integers(1, 3)))
def test_any_split_of_turns_and_processes_makes_one_graph(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], stops: list[int]
) -> None:
    with Store.open(tmp_path_factory.mktemp("s")) as store:
        for end in sorted(cuts):
            opened(store).observe(MESSAGES[:end])
        for stop in stops:
            with suppress(Stop):
                opened(store).observe(MESSAGES, progress=stopping_after(stop))
        known = opened(store).observe(MESSAGES)
        again = opened(store).known(MESSAGES)
    assert known.settled == whole() == again.settled
    assert known.graph == opened().observe(MESSAGES).graph


def test_the_graph_goes_on_from_the_turn_where_it_ended() -> None:
    observer = Drawn()
    session = opened(observer=observer)
    session.observe(MESSAGES[: STARTS[3] + 1], open_turn=False)
    assert observer.turns == [0, 1, 2]
    session.observe(MESSAGES, open_turn=False)
    assert observer.turns == [*range(TURNS - 1)]
    session.observe(MESSAGES, open_turn=False)
    assert observer.turns == [*range(TURNS - 1)]


def test_the_open_turn_is_measured_for_the_caller_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        known = session.observe(MESSAGES)
        assert (known.graph.turns, known.settled.turns) == (TURNS, TURNS - 1)
        assert session.row is not None
        assert decode(session.row.graph) == known.settled


def test_a_turn_is_kept_before_the_next_one_begins(tmp_path: Path) -> None:
    with opened(tmp_path) as session, pytest.raises(Stop):
        session.observe(MESSAGES, progress=stopping_after(3))
    observer = Drawn()
    with opened(tmp_path, observer) as session:
        assert session.known(MESSAGES).settled.turns == 3
        session.observe(MESSAGES, open_turn=False)
    assert observer.turns == [3, 4, 5, 6]


def test_nothing_is_kept_of_a_look(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.observe(MESSAGES, keep=False)
    with opened(tmp_path) as session:
        assert session.known(MESSAGES).graph == ContextGraph.empty("proxy")


def test_a_request_runs_no_model_and_says_how_far_the_graph_reaches(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.observe(MESSAGES[: STARTS[3] + 1], open_turn=False)
    observer = Drawn()
    with opened(tmp_path, observer) as session:
        done = session.compact(MESSAGES, "now the tests")
    assert observer.turns == []
    assert done.graph.turns == 3
    assert done.report.notes["turns-not-observed"] == TURNS - 3
    seen = {d.id for d in done.selection.decisions() if d.importance}
    assert seen <= set(done.graph.ids)
    assert seen


def test_a_graph_up_to_date_is_told_as_such() -> None:
    session = opened()
    session.observe(MESSAGES)
    assert "turns-not-observed" not in session.compact(MESSAGES).report.notes


def test_a_session_that_works_on_sees_what_another_process_measured(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        session = opened(store)
        assert session.compact(MESSAGES).graph.turns == 0
        opened(store).observe(MESSAGES)
        done = session.compact(MESSAGES)
    assert done.graph == whole()


def test_a_graph_that_lags_is_no_reason_to_read_identifiers_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        with opened(tmp_path) as session:
            session.compact(MESSAGES[:-8], "next")
    read: list[object] = []
    from recap.blocks import table as tables

    original = tables.part_terms
    monkeypatch.setattr(tables, "part_terms", lambda part: read.append(part) or original(part))
    with opened(tmp_path) as session:
        done = session.compact(MESSAGES, "next")
    new = [block for block in done.table.blocks if block.refs[0].message >= len(MESSAGES) - 8]
    assert 0 < len(read) <= sum(len(block.refs) for block in new)


def test_graphs_of_two_observers_are_apart(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        opened(store).observe(MESSAGES)
        reuse = Session("s", store=store, settings=Settings(retention="0.3"))
        done = reuse.compact(MESSAGES)
        assert done.graph.observer == "reuse"
        assert "turns-not-observed" not in done.report.notes
        assert opened(store).known(MESSAGES).settled == whole()
        rows = store.sessions(store.key("tenant", ""))
    assert sorted(row.observer for row in rows) == ["proxy", "reuse"]


@pytest.mark.parametrize(
    "change",
    [
        {"smoothing": 0.9}, {"rows": 32}, {"rows_per_block": 4}, {"layers": 4}, {"edge_layer": 2},
        {"clip_quantile": 0.99}, {"drop_first": 0}, {"replay_tokens": 2048},
    ],
    ids=str,
)  # fmt: skip
def test_other_coefficients_make_the_graph_anew(tmp_path: Path, change: dict[str, Any]) -> None:
    with opened(tmp_path) as session:
        session.observe(MESSAGES)
    observer = Drawn()
    with opened(tmp_path, observer, **change) as session:
        assert session.known(MESSAGES).settled.turns == 0
        with pytest.raises(Stop):
            session.observe(MESSAGES, progress=stopping_after(2))
    with opened(tmp_path, observer, **change) as session:
        assert session.known(MESSAGES).settled.turns == 2, "it replaces the other one at once"


def test_another_model_makes_the_graph_anew(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.observe(MESSAGES)
    with opened(tmp_path, Drawn("another")) as session:
        done = session.compact(MESSAGES)
        assert done.report.notes["turns-not-observed"] == TURNS - 1
    with opened(tmp_path) as session:
        assert session.known(MESSAGES).settled == whole(), "a request removes nothing"


def test_what_shapes_no_observation_leaves_the_graph(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.observe(MESSAGES)
    with opened(tmp_path, retention="0.1", policy="paper") as session:
        assert session.known(MESSAGES).settled == whole()


def test_dropped_turns_count_and_are_told() -> None:
    reasons = []
    known = opened().observe(MESSAGES, progress=lambda p: reasons.append(p.reason))
    dropped = sum(1 for reason in reasons if reason)
    assert dropped
    assert known.graph.turns == TURNS
    assert known.notes["turn-dropped: does not fit"] == dropped


def test_a_turn_is_measured_as_it_was_served(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        for start in STARTS[:4]:
            opened(store).compact(MESSAGES[: start + 1], is_cold=True)
        kept = opened(store).selections(MESSAGES[: STARTS[3] + 1])
        observer = Drawn()
        opened(store, observer).observe(MESSAGES, open_turn=False)
    given = {each.message: each.kept for each in kept}
    assert [None if ids is None else set(ids) for ids in observer.served] == [
        set(given[start].ids) if start in given and not given[start].is_whole else None
        for start in STARTS[:-1]
    ]
    assert any(ids is not None for ids in observer.served)


def test_a_rewound_session_is_measured_anew(tmp_path: Path) -> None:
    other = [*MESSAGES[: STARTS[4]], *conversation(12)[-16:]]
    with Store.open(tmp_path) as store:
        opened(store).observe(MESSAGES)
        known = opened(store).observe(other)
        assert known.settled == opened().observe(other).settled
        assert opened(store).known(other).settled == known.settled


def test_a_request_asked_anew_leaves_the_graph_of_the_turns_before(tmp_path: Path) -> None:
    other = [*MESSAGES[: STARTS[-1]], {"role": "user", "content": "no, first the tests"}]
    observer = Drawn()
    with Store.open(tmp_path) as store:
        opened(store).observe(MESSAGES)
        known = opened(store, observer).observe(other, open_turn=False)
    assert observer.turns == []
    assert known.settled == whole()


def test_another_observer_of_the_session_is_no_native_compaction(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        Session("s", store=store, settings=Settings(retention="0.3")).compact(MESSAGES)
        session = opened(store)
        done = session.compact(MESSAGES)
        assert session.row is not None
        assert session.row.parent is None
    assert done.report.reason != "new_epoch"


def test_an_older_view_takes_nothing_from_the_newer(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        opened(store).observe(MESSAGES)
        opened(store).observe(MESSAGES[: STARTS[3]])
        assert opened(store).known(MESSAGES).settled == whole()


@pytest.mark.parametrize("key", ["x", "\ud800", "0" * 64, "", "a" * 10_000])
@pytest.mark.parametrize("graph", [b"", b"RCPG", None])
def test_a_hostile_row_proves_nothing(tmp_path: Path, key: str, graph: bytes | None) -> None:
    with Store.open(tmp_path) as store:
        session = opened(store)
        session.observe(MESSAGES[: STARTS[3]])
        row = session.row
        assert row is not None
        data = row.graph if graph is None else graph
        store.save_session(replace(row, observed_key=key[:900], graph=data, turns=10**9))
        done = opened(store).compact(MESSAGES, "next")
        assert done.graph.turns == 0
        assert opened(store).observe(MESSAGES).settled == whole()


def test_a_graph_of_another_observer_in_the_row_is_not_used(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        session = opened(store)
        session.observe(MESSAGES)
        reuse = Session("s", store=store, settings=Settings())
        reuse.observe(MESSAGES)
        assert session.row is not None
        assert reuse.row is not None
        store.save_session(replace(session.row, graph=reuse.row.graph))
        assert opened(store).known(MESSAGES).graph == ContextGraph.empty("proxy")


def test_turns_out_of_order_are_refused() -> None:
    class Skipping(Drawn):
        def observe(self, table: Any, turns: range, seeds: Sequence[int], served: Any) -> Any:
            yield Measured(turns[1], None, "first")

    with pytest.raises(ValueError, match="turn 1 was measured where 0 is next"):
        opened(observer=Skipping()).observe(MESSAGES)


def test_without_a_model_a_request_goes_on_and_observing_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECAP_HOME", str(tmp_path / "home"))
    session = Session("s", settings=SETTINGS)
    done = session.compact(MESSAGES, "next")
    assert done.report.notes["turns-not-observed"] == TURNS
    with pytest.raises(RecapError, match=r"recap proxy install|pip install"):
        session.observe(MESSAGES)
