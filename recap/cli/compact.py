"""``recap compact``: a short, valid message list for a request."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.options import (
    STDIN,
    Session,
    Wanted,
    json_option,
    selection_options,
    session_options,
)
from recap.cli.output import (
    Element,
    Line,
    byte_size,
    complain,
    counted,
    is_terminal,
    milliseconds,
    note,
    number,
    percent,
    remark,
    say,
    say_bytes,
    say_json,
)
from recap.cli.writing import refuse_inputs, write_whole
from recap.economics import describe
from recap.errors import InputError
from recap.transcript.dialects import DIALECT_NAMES, DIALECTS

if TYPE_CHECKING:
    from recap.session import Compaction, Report
    from recap.session.known import Known
    from recap.transcript.model import Json

SCHEMA = "recap.compact/1"


@click.command(
    "compact",
    cls=Command,
    example="recap compact session.jsonl --request 'add a retry' -o context.json",
)
@session_options()
@selection_options
@click.option("--to", type=click.Choice(DIALECTS), help="Another dialect for the result.")
@click.option("--alternate", is_flag=True, help="Join adjacent messages of one role.")
@click.option("-o", "--out", metavar="FILE", help="Write the messages to FILE, mode 0600.")
@click.option("--dry-run", is_flag=True, help="Write nothing, show the report.")
@json_option
def command(
    session: Session,
    wanted: Wanted,
    to: str | None,
    alternate: bool,
    out: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write a short, valid message list that holds what the request needs.

    SESSION is a log or message list (- for standard input). Without --request its last real user
    message is the request. On a terminal the report is shown; into a pipe or to -o goes the list
    itself, its kept parts byte for byte.
    """
    target = Path(out) if out and out != STDIN else None
    if target is not None:
        refuse_inputs(target, {"the session": session.path, **wanted.inputs})
    transcript = session.read()
    compaction, seconds = wanted.compact(
        transcript, label=session.name, to=to, alternate=alternate, keep=not dry_run
    )
    if not compaction.messages:
        raise InputError("nothing of the session can be sent; `recap check` says what is wrong")
    data = compaction.to_json()
    if target is not None and not dry_run:
        write_whole(target, data)
    if as_json:
        say_json(SCHEMA, report_json(compaction, seconds, len(data)))
    elif dry_run or target is not None or (out is None and is_terminal()):
        say(
            Line(headline(compaction.report, seconds), "strong"),
            f"  session     {session.name}",
            f"  request     {wanted.asked}",
            *report_lines(compaction, len(data)),
            written(target, dry_run),
        )
    else:
        say_bytes(data)
        note(headline(compaction.report, seconds))
        if step := _step_to_observe(compaction.known):
            unseen = counted(compaction.known.turns_not_observed, "turn")
            remark(f"the graph has not seen {unseen} of the history; {step}")
    if compaction.report.over_limit:
        complain(
            f"the result is {standing(compaction.report)}: what exceeds the limits is protected or "
            "belongs to the current turn; `recap explain` shows it"
        )
        raise click.exceptions.Exit(1)


def headline(report: Report, seconds: float) -> str:
    """Return the one line that says what was done."""
    kept, live = number(report.kept_chars), number(report.history_chars)
    what = f"{kept} of {counted(report.history_chars, 'character')} kept"
    if report.kept_chars > report.history_chars:  # what a client had compacted away is back
        what = f"{counted(report.kept_chars, 'character')} kept, the live history has {live},"
    return f"{what} in {milliseconds(seconds)}, no model call, {standing(report)}"


def standing(report: Report) -> str:
    """Return whether the provider would take the result."""
    if report.over_limit:
        return f"too large for {DIALECT_NAMES[report.dialect]} ({', '.join(report.over_limit)})"
    return f"valid for {DIALECT_NAMES[report.dialect]}"


def report_lines(compaction: Compaction, size: int) -> list[Element]:
    """Return the report in lines."""
    from recap.session.report import NOT_OBSERVED

    report, known = compaction.report, compaction.known
    lines: list[Element] = [
        f"  blocks      {report.kept_blocks} of {report.blocks} kept, "
        f"{report.expanded_blocks} of them pulled in by a support edge, "
        f"{report.revived_blocks} from before a native compaction",
        f"  budget      {counted(report.budget_chars, 'character')}, policy {report.policy}, "
        f"retention {percent(float(compaction.selection.retention))}",
        f"  protected   {counted(report.protected_chars, 'character')}"
        + (f", {percent(report.protected_share)} of the budget" if report.budget_chars else ""),
        f"  besides     {counted(report.current_chars, 'character')} of the current turn, "
        f"{number(report.fixed_chars)} of fixed text, "
        f"{counted(report.markers, 'marker')} of {number(report.marker_chars)}",
        f"  output      {counted(len(compaction.messages), 'message')}, {byte_size(size)}",
    ]
    if compaction.verdict is not None:
        lines.append(f"  cost        {describe(compaction.verdict)}")
    if report.over_budget:
        lines.append(
            Line(
                "  over budget: your words and the latest edits alone exceed it; they are all kept "
                "(settings edit_cap and paste_limit bound them)",
                "bad",
            )
        )
    if not report.blocks:
        lines.append(
            Line(
                "  no history: all of it is the current turn, which stays as it is; give the next "
                "request with --request, or compact within the turn with --set mode=epoch",
                "bad",
            )
        )
    elif not report.is_effective:
        lines.append(Line("  no gain: nothing of the live history was left out", "bad"))
    lines += [
        f"  left out    {counted(times, 'part')}: {reason}"
        for reason, times in report.excluded.items()
    ]
    lines += [
        f"  changed     {what}: {times}"
        for what, times in report.notes.items()
        if what != NOT_OBSERVED
    ]
    lines += unseen_lines(known)
    lines += [f"  input       {what}: {times}" for what, times in report.findings.items()]
    return lines


def unseen_lines(known: Known) -> list[Element]:
    """Return the next step where the graph has not seen all turns of the history."""
    unseen = known.turns_not_observed
    if not unseen:
        return []
    text = f"  not seen    {counted(unseen, 'turn')} of the history by the graph"
    if step := _step_to_observe(known):
        return [Line(f"{text}; {step}", "bad")]
    return [f"{text}; it is observed once a later message of yours has closed it"]


def _step_to_observe(known: Known) -> str:
    """Return the next step where the graph lags behind the turns that are closed, else ""."""
    if not known.turns_not_observed or known.graph.turns >= known.closed_turns:
        return ""
    return f"`recap observe SESSION --observer {known.graph.observer}` brings it up to date"


def written(target: Path | None, dry_run: bool) -> str:
    """Return what became of the messages."""
    if dry_run:
        return f"  dry run     nothing written{'' if target is None else f' to {target}'}"
    if target is None:
        return "  next        -o FILE writes the messages"
    return f"  written     {target}"


def report_json(compaction: Compaction, seconds: float, size: int) -> dict[str, Json]:
    """Return the report as the object that ``--json`` prints; its keys are stable."""
    verdict = None if compaction.verdict is None else asdict(compaction.verdict)
    values = {**asdict(compaction.report), "verdict": verdict}
    return {**values, "elapsed_ms": round(1000 * seconds, 3), "output_bytes": size}
