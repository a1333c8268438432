"""``recap explain``: the decision log of a selection, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from recap.cli.blocks import ID_LENGTH, KIND_WORDS, block_preview, why
from recap.cli.command import Command
from recap.cli.compact import headline, report_json
from recap.cli.options import Session, Wanted, json_option, selection_options, session_options
from recap.cli.output import Column, Line, Row, Table, number, say, say_json, score, turn_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.select.selection import Decision
    from recap.session import Compaction
    from recap.transcript.model import Json

SCHEMA = "recap.explain/1"
COLUMNS = (
    Column("#", "right"),
    Column("id"),
    Column("turn", "right"),
    Column("kind"),
    Column("chars", "right"),
    Column(""),
    Column("why"),
    Column("u", "right"),
    Column("r", "right"),
    Column("score", "right"),
    Column("begins with", is_flexible=True),
)


@click.command(
    "explain",
    cls=Command,
    example="recap explain --latest --request 'add a retry to the upload'",
)
@session_options
@selection_options
@json_option
def command(session: Session, wanted: Wanted, as_json: bool) -> None:
    """Show every block of a session: kept or dropped for the request, why, and what it costs.

    The columns u, r and score are the parts of the decision: importance from the context graph,
    relevance to the request, and what the policy's ranking made of both.
    """
    compaction, seconds = wanted.compact(session.read())
    decisions = compaction.selection.decisions()
    if as_json:
        say_json(SCHEMA, explain_json(compaction, decisions, seconds))
        return
    say(
        Line(headline(compaction.report, seconds), "strong"),
        f"session  {session.name}",
        f"request  {wanted.asked}",
        "",
        decision_table(compaction, decisions),
        "",
        "--pin ID keeps a block.",
    )


def decision_table(compaction: Compaction, decisions: Sequence[Decision]) -> Table:
    """Return one row per decision."""
    table = compaction.table
    return Table(
        COLUMNS,
        tuple(
            Row(
                (
                    str(decision.index),
                    decision.id[:ID_LENGTH],
                    turn_name(decision.turn),
                    KIND_WORDS.get(decision.kind, decision.kind),
                    number(decision.cost_chars),
                    "kept" if decision.is_kept else "-",
                    why(decision),
                    score(decision.importance),
                    score(decision.relevance),
                    score(decision.score),
                    block_preview(table.messages, table.blocks[decision.index]),
                ),
                "" if decision.is_kept else "faint",
            )
            for decision in decisions
        ),
    )


def explain_json(
    compaction: Compaction, decisions: Sequence[Decision], seconds: float
) -> dict[str, Json]:
    """Return the decision log as the object that ``--json`` prints; its keys are stable."""
    table = compaction.table
    return {
        "report": report_json(compaction.report, seconds, len(compaction.to_json())),
        "blocks": [
            {
                "index": decision.index,
                "id": decision.id,
                "turn": decision.turn,
                "kind": decision.kind,
                "cost_chars": decision.cost_chars,
                "kept": decision.is_kept,
                "rule": decision.rule,
                "why": why(decision),
                "importance": decision.importance,
                "relevance": decision.relevance,
                "score": decision.score,
                "stale": decision.is_stale,
                "pulled_by": decision.pulled_by,
                "edge_mass": decision.edge_mass,
                "preview": block_preview(table.messages, table.blocks[decision.index]),
            }
            for decision in decisions
        ],
    }
