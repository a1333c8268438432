"""``recap graph``: importance, stale marks and support edges of a session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import localtime, strftime
from typing import TYPE_CHECKING

import click

from recap.cli.blocks import ID_LENGTH, block_preview
from recap.cli.command import Command
from recap.cli.compact import unseen_lines
from recap.cli.options import (
    Session,
    json_option,
    read_graph,
    session_options,
    settings_in_force,
    settings_options,
)
from recap.cli.output import (
    Column,
    Element,
    Line,
    Row,
    Table,
    byte_size,
    counted,
    say,
    say_json,
    say_source,
    score,
    working,
)
from recap.cli.state import State, state_options
from recap.errors import StoreError, UsageError, shown_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.blocks.table import BlockTable
    from recap.config import Settings
    from recap.graph.state import ContextGraph
    from recap.session.known import Known
    from recap.store import SessionRow
    from recap.transcript.model import Json

SCHEMA = "recap.graph/1"
STORED_SCHEMA = "recap.graphs/1"
SHOWN = 12
DOT_PREVIEW = 40


@click.command("graph", cls=Command, example="recap graph --latest --dot | dot -Tsvg > graph.svg")
@session_options(is_needed=False)
@settings_options
@state_options
@click.option("--graph", "graph_file", metavar="FILE", help="Graph written by observe.")
@click.option("--dot", "as_dot", is_flag=True, help="Print Graphviz source.")
@json_option
def command(
    session: Session | None,
    overrides: Mapping[str, object],
    state: State,
    graph_file: str | None,
    as_dot: bool,
    as_json: bool,
) -> None:
    """Show the context graph: which blocks later turns used, and which block supports which.

    Without SESSION: list the graphs in the store, with the turns that a later message of the person
    has closed; what follows is worked out anew each time.
    """
    if as_dot and as_json:
        raise UsageError("give one of --json and --dot")
    settings, _ = settings_in_force(overrides)
    if session is None:
        if as_dot or graph_file:
            raise UsageError("give the SESSION the graph is of")
        _show_stored(state, as_json)
        return
    known = graph_of(session, settings, state, Path(graph_file) if graph_file else None)
    graph, previews = known.graph, previews_of(known.table, known.graph)
    if as_json:
        unseen = {"turns_not_observed": known.turns_not_observed}
        say_json(SCHEMA, graph_json(graph, previews) | unseen)
    elif as_dot:
        say_source(dot(graph, previews))
    else:
        say(*_summary(known), "", _most_used(graph, previews), "", _strongest(graph, previews))


def graph_of(
    session: Session, settings: Settings, state: State, graph_file: Path | None = None
) -> Known:
    """Return what is known of a session, with the graph given or its own."""
    transcript = session.read()
    with (
        working("building the graph"),
        state.session(transcript, session.name, settings, keep=False) as past,
    ):
        known = past.known(transcript)
    return replace(known, graph=read_graph(graph_file)) if graph_file else known


def _show_stored(state: State, as_json: bool) -> None:
    """List the sessions in the store, newest first."""
    if not state.is_kept:
        raise UsageError("--no-store uses nothing kept: give a SESSION")
    rows: list[SessionRow] = []
    if state.folder is not None and not state.is_made:
        raise StoreError(f"there is no store in {shown_path(state.folder)}")
    if state.is_made:
        with state.opened() as store:
            rows = store.sessions(store.key("tenant", ""))
    if as_json:
        say_json(STORED_SCHEMA, {"graphs": [stored_json(row) for row in rows]})
    elif not rows:
        say("the store holds no graph; `recap observe SESSION` makes and keeps one")
    else:
        say(_stored_table(rows))


def stored_json(row: SessionRow) -> dict[str, Json]:
    """Return a session of the store as the object that ``--json`` prints; its keys are stable."""
    return {
        "id": row.id.hex(),
        "session": row.label,
        "format": row.format,
        "observer": row.observer,
        "turns": row.turns,
        "blocks": row.blocks,
        "created": row.created,
        "updated": row.updated,
        "parent": row.parent.hex() if row.parent else None,
    }


def _stored_table(rows: Sequence[SessionRow]) -> Table:
    return Table(
        (
            Column("id"),
            Column("updated"),
            Column("turns", "right"),
            Column("blocks", "right"),
            Column("observer", is_optional=True),
            Column("format", is_optional=True),
            Column("session", is_flexible=True, is_path=True),
        ),
        tuple(
            Row(
                (
                    row.id.hex()[:ID_LENGTH],
                    strftime("%Y-%m-%d %H:%M", localtime(row.updated)),
                    str(row.turns),
                    str(row.blocks),
                    row.observer,
                    row.format,
                    row.label,
                )
            )
            for row in rows
        ),
    )


def previews_of(table: BlockTable, graph: ContextGraph) -> list[str]:
    """Return the preview of each node; empty for blocks the session does not hold."""
    blocks = dict(zip(table.ids, table.blocks, strict=True))
    return [
        block_preview(table.messages, blocks[node]) if node in blocks else "" for node in graph.ids
    ]


def graph_json(graph: ContextGraph, previews: list[str]) -> dict[str, Json]:
    """Return the graph as the object that ``--json`` prints; its keys are stable."""
    nodes = zip(graph.ids, graph.importance, graph.is_observed, graph.superseded_by, strict=True)
    edges = zip(graph.source, graph.target, graph.mass, strict=True)
    return {
        "observer": graph.observer,
        "turns": graph.turns,
        "nodes": [
            {
                "index": index,
                "id": node,
                "importance": round(float(importance), 6),
                "observed": bool(observed),
                "superseded_by": int(later) if later >= 0 else None,
                "preview": previews[index],
            }
            for index, (node, importance, observed, later) in enumerate(nodes)
        ],
        "edges": [
            {"source": int(a), "target": int(b), "mass": round(float(mass), 6)}
            for a, b, mass in edges
        ],
    }


def dot(graph: ContextGraph, previews: list[str]) -> str:
    """Return the graph in Graphviz source: an arrow leads from a block to the one it supports."""
    lines = ["digraph recap {", "  rankdir=LR;", "  node [shape=box, fontsize=10];"]
    for index, preview in enumerate(previews):
        label = f"#{index} {preview[:DOT_PREVIEW]}".replace("\\", "\\\\").replace('"', '\\"')
        style = ", style=dashed" if graph.superseded_by[index] >= 0 else ""
        width = 1 + 3 * float(graph.importance[index])
        lines.append(f'  b{index} [label="{label}", penwidth={width:.2f}{style}];')
    for a, b, mass in zip(graph.source, graph.target, graph.mass, strict=True):
        lines.append(f"  b{a} -> b{b} [penwidth={0.5 + 3 * float(mass):.2f}];")
    return "\n".join([*lines, "}"])


def _summary(known: Known) -> list[Element]:
    from recap.graph.codec import encode

    graph = known.graph
    stale = int((graph.superseded_by >= 0).sum())
    return [
        Line(
            f"{counted(len(graph.ids), 'block')}, {counted(len(graph.source), 'support edge')}, "
            f"{counted(graph.turns, 'turn')} observed by {graph.observer}",
            "strong",
        ),
        f"  observed    {int(graph.is_observed.sum())}, {stale} superseded by a later block",
        f"  stored      {byte_size(len(encode(graph)))}",
        *unseen_lines(known),
    ]


def _most_used(graph: ContextGraph, previews: list[str]) -> Table:
    order = (-graph.importance).argsort(kind="stable")[:SHOWN]
    return Table(
        (
            Column("#", "right"),
            Column("id"),
            Column("importance", "right"),
            Column("most used", is_flexible=True),
        ),
        tuple(
            Row(
                (
                    str(index),
                    graph.ids[index][:ID_LENGTH],
                    score(float(graph.importance[index])),
                    previews[index],
                )
            )
            for index in order
        ),
    )


def _strongest(graph: ContextGraph, previews: list[str]) -> Table:
    order = (-graph.mass).argsort(kind="stable")[:SHOWN]
    return Table(
        (
            Column("mass", "right"),
            Column("#", "right"),
            Column("supports"),
            Column("strongest edges: the supporting block", is_flexible=True),
        ),
        tuple(
            Row(
                (
                    score(float(graph.mass[edge])),
                    str(graph.source[edge]),
                    f"#{graph.target[edge]}",
                    previews[graph.source[edge]],
                )
            )
            for edge in order
        ),
    )
