"""Context graphs that snapshots keep, of both observers, and what a branch inherits of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.cmv.graphs import graphs_in
from recap.config import Settings
from recap.graph.codec import decode
from recap.session import Session
from recap.session.inherit import inherit
from recap.session.model import fingerprint_of
from recap.store.rows import SessionRow
from recap.transcript.formats import open_log
from tests.cmv.test_branch import ALL
from tests.session.measuring import Drawn
from tests.session.test_inherit import turns

if TYPE_CHECKING:
    from pathlib import Path

    from recap.graph.state import ContextGraph
    from tests.cmv.worlds import World


def observed(world: World, path: Path, settings: Settings) -> ContextGraph:
    """Build and keep the graph of a session, as its observer measures it."""
    transcript = open_log(path)
    is_proxy = settings.observer == "proxy"
    observer = Drawn(fingerprint_of(settings.proxy_model, {})) if is_proxy else None
    with Session(
        transcript.session_id, store=world.store, label=str(path), settings=settings,
        observer=observer,
    ) as session:  # fmt: skip
        session.observe(transcript)
        assert session.row is not None
        return decode(session.row.graph)


def test_a_branch_inherits_the_graphs_of_both_observers(world: World, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    path = world.session(turns())
    proxy = Settings(observer="proxy", proxy_model=str(tmp_path / "model"))
    graphs = {each.observer: observed(world, path, each) for each in (Settings(), proxy)}
    assert graphs["proxy"] != graphs["reuse"]
    row = world.snap(path, "one")
    assert {each.observer: decode(each.graph) for each in graphs_in(world.store.history, row)} == (
        graphs
    )
    for wish in ({}, {"trim": ALL}):
        made = world.branch(row, **wish)
        before, after = open_log(path), open_log(made.path)
        assert (
            inherit(world.store, row, before, after, proxy, label=str(made.path), environ={}) == 2
        )
        tenant = world.store.key("tenant", "")
        rows = [each for each in world.store.sessions(tenant) if each.label == str(made.path)]
        loaded = [world.store.load_session(tenant, each.id) for each in rows]
        assert {each.observer: decode(each.graph) for each in loaded if each} == graphs


def test_a_graph_of_another_model_is_not_inherited(world: World, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(f'{{"model": "{name}"}}')
    one, other = (
        Settings(observer="proxy", proxy_model=str(tmp_path / name)) for name in ("one", "other")
    )
    path = world.session(turns())
    observed(world, path, one)
    row = world.snap(path, "one")
    made = world.branch(row)
    before, after = open_log(path), open_log(made.path)
    assert inherit(world.store, row, before, after, other, label="x", environ={}) == 0
    assert inherit(world.store, row, before, after, one, label="x", environ={}) == 1


def test_a_snapshot_keeps_the_newest_graph_of_each_observer_and_no_empty_one(world: World) -> None:
    path = world.session(turns())
    session = world.snap(path, "before").session
    graph = observed(world, path, Settings())
    tenant = world.store.key("tenant", "")
    (kept,) = world.store.sessions(tenant)
    whole = world.store.load_session(tenant, kept.id)
    assert whole is not None
    for number, (label, observer, data) in enumerate((
        (session, "reuse", whole.graph),  # by the client's id; newer than that of the path
        (session, "proxy", b""),
        (session, "", whole.graph),
        ("of-another", "proxy", whole.graph),
    )):  # fmt: skip
        world.store.save_session(
            SessionRow(
                tenant=tenant, id=bytes([number]) * 16, label=label, observer=observer, graph=data,
                turns=number, blocks=len(graph.ids),
            )
        )  # fmt: skip
    row = world.snap(path, "one")
    (found,) = graphs_in(world.store.history, row)
    assert (found.observer, found.turns, decode(found.graph)) == ("reuse", 0, graph)
    assert row.graph_rev == 1
