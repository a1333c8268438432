"""``recap inspect``: what a session holds, without selecting anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from recap.cli.blocks import block_preview
from recap.cli.command import Command
from recap.cli.options import Session, json_option, session_options
from recap.cli.output import (
    Column,
    Element,
    Line,
    Row,
    Table,
    byte_size,
    counted,
    number,
    percent,
    say,
    say_json,
    turn_name,
)
from recap.transcript.seals import signature_chars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.blocks.segment import Block, Segmentation
    from recap.cli.output import Tone
    from recap.transcript.model import Finding, Json, Transcript

SCHEMA = "recap.inspect/1"
SHOWN_FINDINGS = 20
TONES: dict[str, Tone] = {"error": "bad", "warning": "", "note": "faint"}


@click.command("inspect", cls=Command, example="recap inspect --latest")
@session_options()
@json_option
def command(session: Session, as_json: bool) -> None:
    """Show what a session holds: turns, blocks, sizes by kind, authors, compactions, odd lines."""
    from recap.blocks.segment import segment

    transcript = session.read()
    segmentation = segment(transcript.messages)
    if as_json:
        say_json(SCHEMA, inspect_json(transcript, segmentation))
        return
    say(
        *_overview(session, transcript, segmentation),
        "",
        _sizes(segmentation.blocks),
        "",
        _turn_table(transcript, segmentation.blocks),
        "",
        *finding_lines(transcript.findings),
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn in numbers: its blocks and characters, and how it begins."""

    number: int
    blocks: int
    cost_chars: int
    is_active: bool
    preview: str


def turns_of(transcript: Transcript, blocks: Sequence[Block]) -> list[Turn]:
    """Return the turns of a session in order."""
    members: dict[int, list[Block]] = {}
    for block in blocks:
        members.setdefault(block.turn, []).append(block)
    return [
        Turn(
            turn,
            len(own),
            sum(block.cost_chars for block in own),
            any(block.is_active for block in own),
            block_preview(transcript.messages, own[0]),
        )
        for turn, own in members.items()
    ]


def authors_of(transcript: Transcript) -> dict[str, int]:
    """Return characters by author."""
    chars: Counter[str] = Counter()
    for message in transcript.messages:
        for part in message.parts:
            chars[part.author] += part.cost_chars
    return dict(chars.most_common())


def inspect_json(transcript: Transcript, segmentation: Segmentation) -> dict[str, Json]:
    """Return the contents of a session as the object that ``--json`` prints; keys are stable."""
    from recap.transcript.check import finding_to_json

    blocks = segmentation.blocks
    return {
        "format": transcript.format,
        "evidence": transcript.evidence,
        "dialect": transcript.dialect,
        "session_id": transcript.session_id,
        "bytes": transcript.bytes_read,
        "lines": transcript.lines,
        "messages": len(transcript.messages),
        "blocks": len(blocks),
        "active_chars": sum(block.cost_chars for block in blocks if block.is_active),
        "all_chars": sum(block.cost_chars for block in blocks),
        "signature_chars": signature_chars(transcript.messages),
        "kinds": {
            kind: {"blocks": count, "cost_chars": chars} for kind, count, chars in kinds_of(blocks)
        },
        "authors": authors_of(transcript),
        "counts": dict(transcript.counts),
        "excluded": dict(Counter(exclusion.reason for exclusion in segmentation.excluded)),
        "turns": [
            {
                "turn": turn.number,
                "blocks": turn.blocks,
                "cost_chars": turn.cost_chars,
                "active": turn.is_active,
                "preview": turn.preview,
            }
            for turn in turns_of(transcript, blocks)
        ],
        "findings": [finding_to_json(finding) for finding in transcript.findings],
    }


def kinds_of(blocks: Sequence[Block]) -> list[tuple[str, int, int]]:
    """Return (kind, blocks, characters), the largest kind first."""
    counts = Counter(block.kind for block in blocks)
    chars: Counter[str] = Counter()
    for block in blocks:
        chars[block.kind] += block.cost_chars
    return [(kind, counts[kind], total) for kind, total in chars.most_common()]  # type: ignore[index]


def finding_lines(findings: Sequence[Finding], unit: str = "line") -> list[Element]:
    """Return what was odd, the first of it one by one; ``unit`` is what their numbers count."""
    if not findings:
        return ["Nothing odd in it."]
    lines: list[Element] = [Line(counted(len(findings), "finding"), "strong")]
    for finding in findings[:SHOWN_FINDINGS]:
        where = f"{unit} {finding.line}: " if finding.line else ""
        text = f"  {finding.severity:8}{where}{finding.code}: {finding.detail}"
        lines.append(Line(text, TONES[finding.severity]))
    if len(findings) > SHOWN_FINDINGS:
        lines.append(f"  and {len(findings) - SHOWN_FINDINGS} more; --json lists all")
    return lines


def _overview(
    session: Session, transcript: Transcript, segmentation: Segmentation
) -> list[Element]:
    blocks = segmentation.blocks
    active = sum(block.cost_chars for block in blocks if block.is_active)
    before = sum(not block.is_active for block in blocks)
    lines: list[Element] = [
        Line(session.name, "strong"),
        f"  format      {transcript.format} ({transcript.evidence})",
        f"  size        {byte_size(transcript.bytes_read)}, {counted(transcript.lines, 'line')}, "
        f"{counted(len(transcript.messages), 'message')}, {counted(len(blocks), 'block')}",
        f"  live        {counted(active, 'character')} in the live context",
    ]
    if before:
        lines.append(f"  compacted   {counted(before, 'block')} from before a native compaction")
    reasons = Counter(exclusion.reason for exclusion in segmentation.excluded)
    lines += [f"  left out    {counted(n, 'part')}: {reason}" for reason, n in reasons.items()]
    if sealed := signature_chars(transcript.messages):
        lines.append(f"  signatures  {counted(sealed, 'character')}, sent and not counted")
    counts = [f"{name.replace('_', ' ')} {number(n)}" for name, n in transcript.counts.items()]
    if counts:
        lines.append(f"  counted     {', '.join(counts)}")
    shares = authors_of(transcript)
    total = sum(shares.values()) or 1
    told = ", ".join(f"{author} {percent(chars / total)}" for author, chars in shares.items())
    return [*lines, f"  written by  {told}" if told else "  empty: no messages"]


def _sizes(blocks: Sequence[Block]) -> Table:
    return Table(
        (Column("kind"), Column("blocks", "right"), Column("chars", "right")),
        tuple(Row((kind, number(n), number(chars))) for kind, n, chars in kinds_of(blocks)),
    )


def _turn_table(transcript: Transcript, blocks: Sequence[Block]) -> Table:
    return Table(
        (
            Column("turn", "right"),
            Column("blocks", "right"),
            Column("chars", "right"),
            Column("begins with", is_flexible=True),
        ),
        tuple(
            Row(
                (
                    turn_name(turn.number),
                    number(turn.blocks),
                    number(turn.cost_chars),
                    turn.preview,
                ),
                "" if turn.is_active else "faint",
            )
            for turn in turns_of(transcript, blocks)
        ),
    )
