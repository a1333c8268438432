"""``recap explain``: the decision log of a selection, block by block."""

from __future__ import annotations

from fractions import Fraction
from time import localtime, strftime
from typing import TYPE_CHECKING

import click

from recap.cli.blocks import ID_LENGTH, KIND_WORDS, block_preview, why
from recap.cli.command import Command
from recap.cli.compact import headline, report_json, unseen_lines
from recap.cli.options import Session, Wanted, json_option, selection_options, session_options
from recap.cli.output import (
    Column,
    Line,
    Row,
    Table,
    number,
    percent,
    preview,
    say,
    say_json,
    score,
    turn_name,
)
from recap.transcript.model import HUMAN_AUTHORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.select.selection import Decision
    from recap.session import Compaction
    from recap.session.undo import Served
    from recap.transcript.model import Json, Transcript

SCHEMA = "recap.explain/1"
SELECTIONS_SCHEMA = "recap.selections/1"
REF_LENGTH = 12
REQUEST_PREVIEW = 60
COLUMNS = (
    Column("#", "right"),
    Column("id"),
    Column("turn", "right"),
    Column("kind"),
    Column("chars", "right"),
    Column(""),
    Column("why"),
    Column("u", "right", is_optional=True),
    Column("r", "right", is_optional=True),
    Column("score", "right", is_optional=True),
    Column("begins with", is_flexible=True),
)


@click.command(
    "explain",
    cls=Command,
    example="recap explain --latest --request 'add a retry to the upload'",
)
@session_options()
@selection_options
@click.option("--selections", is_flag=True, help="List what earlier turns were given.")
@json_option
def command(session: Session, wanted: Wanted, selections: bool, as_json: bool) -> None:
    """Show every block of a session: kept or dropped for the request, why, and what it costs.

    The columns u, r and score are the parts of the decision: importance from the context graph,
    relevance to the request, and what the policy's ranking made of both. A narrow terminal goes
    without; --json has them all.
    """
    transcript = session.read()
    if selections:
        _show_selections(transcript, wanted, session.name, as_json)
        return
    compaction, seconds = wanted.compact(transcript, label=session.name)
    decisions = compaction.selection.decisions()
    if as_json:
        say_json(SCHEMA, explain_json(compaction, decisions, seconds))
        return
    say(
        Line(headline(compaction.report, seconds), "strong"),
        f"session  {session.name}",
        f"request  {wanted.asked}",
        *unseen_lines(compaction.known),
        "",
        decision_table(compaction, decisions),
        "",
        "--pin ID keeps a block.",
    )


def _show_selections(transcript: Transcript, wanted: Wanted, name: str, as_json: bool) -> None:
    """Print what earlier turns of the session were given."""
    with wanted.state.session(transcript, name, wanted.settings, keep=False) as past:
        served = past.selections(transcript)
    if as_json:
        rows = [served_json(each) for each in served]
        say_json(SELECTIONS_SCHEMA, {"selections": rows})
    elif not served:
        say("no selection of this session is kept; `recap compact SESSION` makes and keeps one")
    else:
        say(
            f"session  {name}",
            "",
            _selection_table(transcript, served),
            "",
            "compact or explain with --selection REF shows one again.",
        )


def served_json(served: Served) -> dict[str, Json]:
    """Return a kept selection as the object that ``--json`` prints; its keys are stable."""
    return {
        "ref": served.ref,
        "created": served.created,
        "message": served.message,
        "policy": served.kept.policy,
        "retention": served.kept.retention,
        "blocks": served.kept.blocks,
        "kept": len(served.kept.ids),
    }


def _selection_table(transcript: Transcript, served: Sequence[Served]) -> Table:
    """Return one row per kept selection, newest first."""
    return Table(
        (
            Column("ref"),
            Column("made"),
            Column("policy"),
            Column("retention", "right"),
            Column("kept", "right"),
            Column("of", "right"),
            Column("request", is_flexible=True),
        ),
        tuple(
            Row(
                (
                    each.ref[:REF_LENGTH],
                    strftime("%Y-%m-%d %H:%M", localtime(each.created)),
                    each.kept.policy,
                    percent(float(Fraction(each.kept.retention))),
                    number(len(each.kept.ids)),
                    number(each.kept.blocks),
                    _request_of(transcript, each),
                )
            )
            for each in served
        ),
    )


def _request_of(transcript: Transcript, served: Served) -> str:
    """Return the beginning of the request a selection was made for."""
    if served.message is None:
        return "given apart, or taken back"
    parts = transcript.messages[served.message].parts
    words = [part.text() for part in parts if part.author in HUMAN_AUTHORS]
    return preview(" ".join(words), REQUEST_PREVIEW)


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
        "report": report_json(compaction, seconds, len(compaction.to_json())),
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
