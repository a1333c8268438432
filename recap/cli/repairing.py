"""``recap check --repair``: a repaired copy of a session, and what was taken out of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from recap.cli.inspect import SHOWN_FINDINGS, finding_lines
from recap.cli.options import source_of
from recap.cli.output import Element, Line, byte_size, counted, say, say_json, working
from recap.cli.writing import refuse_inputs, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recap.transcript.model import Finding
    from recap.transcript.repair import Repair, Repaired

SCHEMA = "recap.repair/1"
QUARANTINE = ".quarantine"


def repair_file(
    path: Path | None, out: Path, format: str | None, *, dry_run: bool, as_json: bool
) -> None:
    """Write the repaired copy of a file (None: standard input), and say what was done.

    What is taken out goes to a file beside the copy. The exit status is 1 when the copy still has an
    error.
    """
    from recap.transcript.check import finding_to_json
    from recap.transcript.repair import LISTS, repair_source

    quarantine = out.with_name(out.name + QUARANTINE)
    for target in (out, quarantine):
        refuse_inputs(target, {"the session": path})
    with working("repairing"):
        repaired = repair_source(source_of(path), format)
        findings = findings_in(repaired)
        taken = sum(len(piece) for piece in repaired.quarantine())
        if not dry_run:
            if taken:  # first: where it cannot be written, nothing is taken out
                write_whole(quarantine, repaired.quarantine())
            write_whole(out, repaired.chunks())
    levels = Counter(finding.severity for finding in findings)
    if as_json:
        say_json(
            SCHEMA,
            {
                "format": repaired.format,
                "written": not dry_run,
                "out": str(out),
                "bytes": repaired.source.size,
                "quarantine": str(quarantine) if taken else None,
                "quarantined_bytes": taken,
                "repairs": [asdict(each) for each in repaired.repairs],
                "left": [asdict(each) for each in repaired.left],
                "errors": levels["error"],
                "warnings": levels["warning"],
                "findings": [finding_to_json(finding) for finding in findings],
            },
        )
    else:
        wrote = "would write" if dry_run else "wrote"
        unit = "message" if repaired.format in LISTS else "line"
        say(
            *(_listed(repaired.repairs, "repair", unit) or [Line("Nothing to repair.", "good")]),
            *_listed(repaired.left, "fault left", unit, "faults left"),
            f"{wrote}  {out}, {byte_size(repaired.source.size)}",
            *((f"{wrote}  {quarantine}, {byte_size(taken)} taken out",) if taken else ()),
            *_outcome(findings, levels["error"], unit),
        )
    if levels["error"]:
        raise click.exceptions.Exit(1)


def findings_in(repaired: Repaired) -> list[Finding]:
    """Return what is to be said of a repaired copy, as ``recap check`` would."""
    from recap.transcript.check import check
    from recap.transcript.check.claude_code import check_claude_code
    from recap.transcript.check.rules import Report
    from recap.transcript.formats import EMPTY, read_source
    from recap.transcript.model import decode
    from recap.transcript.repair import LISTS, LOG

    if repaired.format == EMPTY:
        return []
    if repaired.format == LOG:
        report = Report("claude-code")
        check_claude_code(repaired.source, report)
        return report.in_order()
    if repaired.format in LISTS:
        document = decode(repaired.data.removeprefix(b"\xef\xbb\xbf"))
        return check(document, LISTS[repaired.format])
    return list(read_source(repaired.source, repaired.format).findings)


def _listed(repairs: Sequence[Repair], noun: str, unit: str, plural: str = "") -> list[Element]:
    if not repairs:
        return []
    lines: list[Element] = [Line(counted(len(repairs), noun, plural), "strong")]
    for each in repairs[:SHOWN_FINDINGS]:
        where = f"{unit} {each.line}: " if each.line else ""
        lines.append(f"  {where}{each.code}: {each.detail}")
    if len(repairs) > SHOWN_FINDINGS:
        lines.append(f"  and {len(repairs) - SHOWN_FINDINGS} more; --json lists all")
    return lines


def _outcome(findings: Sequence[Finding], errors: int, unit: str) -> list[Element]:
    if not findings:
        return [Line("The copy has no fault.", "good")]
    verdict = f"the copy still has {counted(errors, 'error')}" if errors else "the copy is sound"
    return [*finding_lines(findings, unit), Line(verdict, "bad" if errors else "good")]
