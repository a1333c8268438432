"""Context graphs that travel with snapshots into branches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from recap.cmv.branch import Wish, branch
from recap.cmv.graphs import graphs_in
from recap.cmv.homes import Homes
from recap.cmv.options import TrimOptions
from recap.cmv.snapshot import Labels, look, take
from recap.config import Settings
from recap.graph.codec import decode
from recap.session import Session
from recap.session.inherit import inherit
from recap.store import Store
from recap.transcript.formats import open_log
from tests.cmv.worlds import PROJECT, dumped, line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.graph.state import ContextGraph
    from recap.store import SnapshotRow

FILES = [f"def handle_{name}(request): return {name}_table" for name in ("alpha", "beta", "gamma")]


def turns() -> bytes:
    """Return a session in which later turns use what earlier ones read."""
    lines = []
    for at, (name, words) in enumerate(
        zip(("alpha", "beta", "alpha", "gamma"), (*FILES, FILES[0]), strict=True)
    ):
        call = {
            "type": "tool_use",
            "id": f"t{at}",
            "name": "Read",
            "input": {"file_path": f"/{name}.py"},
        }
        result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": (words + "\n") * 40}
        lines.append(line("user", len(lines), f"look at handle_{name} and {name}_table"))
        said = {"type": "text", "text": f"handle_{name} returns {name}_table of handle_alpha"}
        lines.append(line("assistant", len(lines), [said, call]))
        lines.append(line("user", len(lines), [result]))
        lines.append(
            line("assistant", len(lines), [{"type": "text", "text": f"{name}_table is it"}])
        )
    return dumped(lines)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def observed(store: Store, path: Path) -> ContextGraph:
    """Build and keep the graph of a session as the commands do."""
    transcript = open_log(path)
    with Session(transcript.session_id, store=store, label=str(path)) as session:
        session.observe(transcript)
        assert session.row is not None
        return decode(session.row.graph)


def session_of(tmp_path: Path) -> Path:
    path = tmp_path / "0a0a0a0a-0000-4000-8000-000000000000.jsonl"
    path.write_bytes(turns())
    return path


def rows_of(store: Store, path: Path) -> list[ContextGraph]:
    tenant = store.key("tenant", "")
    rows = [row for row in store.sessions(tenant) if row.label == str(path)]
    loaded = [store.load_session(tenant, row.id) for row in rows]
    return [decode(row.graph) for row in loaded if row is not None]


def branched(store: Store, row: SnapshotRow, tmp_path: Path, wish: Wish) -> Path:
    made = branch(store, row, wish, Homes(tmp_path / "home", {}))
    before, after = open_log(tmp_path / f"{row.session}.jsonl"), open_log(made.path)
    assert inherit(store, row, before, after, Settings(), label=str(made.path)) == 1
    return made.path


@pytest.mark.parametrize(
    "wish",
    [
        Wish(),
        Wish(trim=TrimOptions(keep_last=0, yes=True)),
        Wish(trim=TrimOptions(keep_last=0, yes=True), orientation="only alpha"),
    ],
)
def test_a_branch_inherits_what_mattered(store: Store, tmp_path: Path, wish: Wish) -> None:
    path = session_of(tmp_path)
    graph = observed(store, path)
    assert graph.importance.any()
    row = take(store, look(path), Labels(name="one"))
    assert row.graph_rev == 1
    assert [decode(kept.graph) for kept in graphs_in(store.history, row)] == [graph]
    made = branched(store, row, tmp_path, wish)
    assert rows_of(store, made) == [graph]
    again = observed(store, made)
    assert again.ids[: len(graph.ids)] == graph.ids
    assert again.turns >= graph.turns


def test_a_graph_that_the_messages_do_not_prove_is_left_out(store: Store, tmp_path: Path) -> None:
    path = session_of(tmp_path)
    observed(store, path)
    row = take(store, look(path), Labels(name="one"))
    made = branch(store, row, Wish(), Homes(tmp_path / "home", {}))
    before, after = open_log(path), open_log(made.path)
    other = Settings(smoothing=0.7)
    assert inherit(store, row, before, after, other, label="x") == 0
    short = replace(before, messages=before.messages[:3])
    assert inherit(store, row, short, after, Settings(), label="x") == 0
    assert inherit(store, row, before, replace(after, messages=()), Settings(), label="x") == 0


def test_a_snapshot_of_a_session_nobody_observed_keeps_no_graph(
    store: Store, tmp_path: Path
) -> None:
    row = take(store, look(session_of(tmp_path)), Labels(name="one"))
    assert row.graph_rev == 0
    assert graphs_in(store.history, row) == []
    assert row.project == PROJECT
