"""``recap demo``: the main job on a session that ships with the package, every number measured.

The session was written for the demo, and so was the turn that follows it: what that turn needed is
known, so what a selection kept of it can be counted.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from importlib.resources import as_file, files
from os import environ
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from recap.cli.blocks import block_preview, why
from recap.cli.command import Command
from recap.cli.compact import headline, report_json
from recap.cli.options import Wanted, json_option
from recap.cli.output import (
    Column,
    Element,
    Line,
    Row,
    Table,
    byte_size,
    counted,
    number,
    say,
    say_json,
    turn_name,
)
from recap.cmv.locations import newest_session
from recap.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recap.blocks.table import BlockTable
    from recap.select.selection import Decision, Selection
    from recap.session import Compaction
    from recap.transcript.model import Json, Transcript

SCHEMA = "recap.demo/1"
FOLDER = "demo"
RETENTION = "0.2"
"""The session is short; of a long one a tenth, the default, is enough."""

KEPT_RULES = ("expanded", "protected:user", "protected:edit", "coverage", "coverage")
"""One kept row is shown for each of these."""

DROPPED_ROWS = 3
LISTED_WIDTH = 50
WRAP = 76


@dataclass(frozen=True, slots=True)
class Needs:
    """Names the next turn took from the history, and what two selections kept of them.

    Attributes:
        needed: Names of the history that the agent wrote before the request, a file it read or
            anything else in the turn showed them; no plain words.
        recap: Those in blocks that Recap kept.
        newest: Those kept by the newest blocks first, with the same protected set and as many
            characters as Recap kept.
        protected: Those in the protected blocks, which every policy keeps.
    """

    needed: frozenset[str]
    recap: frozenset[str]
    newest: frozenset[str]
    protected: frozenset[str]


@dataclass(frozen=True, slots=True)
class Demo:
    """Everything the demo shows."""

    path: Path
    transcript: Transcript
    request: str
    compaction: Compaction
    seconds: float
    needs: Needs


@click.command("demo", cls=Command, example="recap demo")
@json_option
def command(as_json: bool) -> None:
    """Compact a session that ships with the package and count what its next turn needed."""
    with as_file(files("recap") / FOLDER) as folder:
        demo = play(Path(folder))
        if as_json:
            say_json(SCHEMA, demo_json(demo))
        else:
            say(*lines(demo))


def play(folder: Path) -> Demo:
    """Compact the session in a folder for its request, and count against its next turn."""
    from recap.transcript.formats import open_log

    path = folder / "session.jsonl"
    transcript = open_log(path)
    request = (folder / "request.txt").read_text(encoding="utf-8").strip()
    compaction, seconds = _wanted(request, "coverage", RETENTION).compact(transcript)
    report = compaction.report
    share = f"{report.kept_chars}/{report.history_chars}"  # what Recap really used
    newest, _ = _wanted(request, "recency", share).compact(transcript)
    next_turn = open_log(folder / "next_turn.jsonl")
    needs = needs_of(next_turn, request, compaction, newest.selection)
    return Demo(path, transcript, request, compaction, seconds, needs)


def needs_of(
    next_turn: Transcript, request: str, compaction: Compaction, newest: Selection
) -> Needs:
    """Return the names the agent wrote in the next turn without having seen them in that turn."""
    from recap.blocks.identifiers import identifiers

    table = compaction.table
    known = _names_in(table, range(len(table)))
    seen, needed = set(identifiers(request)), set[str]()
    for part in (part for message in next_turn.messages for part in message.parts):
        names = identifiers(part.text())
        if part.author == "agent":
            needed |= {name for name in (names & known) - seen if _is_whole(name)}
        seen |= names
    counted_once = _without_parts(needed)
    return Needs(
        counted_once,
        _names_in(table, compaction.selection.is_kept.nonzero()[0]) & counted_once,
        _names_in(table, newest.is_kept.nonzero()[0]) & counted_once,
        _names_in(table, _protected(compaction.selection)) & counted_once,
    )


def _protected(selection: Selection) -> list[int]:
    return [d.index for d in selection.decisions() if d.rule.startswith("protected")]


def _without_parts(names: set[str]) -> frozenset[str]:
    """Return the names without those that only repeat a piece of a longer one, like a base name."""
    return frozenset(
        name
        for name in names
        if not any(name != longer and name in re.split(r"[/ =\"]+", longer) for longer in names)
        and not any(longer.startswith(f"{name}.") for longer in names)
    )


def lines(demo: Demo) -> list[Element]:
    """Return the demo in at most 30 lines."""
    decisions = demo.compaction.selection.decisions()
    kept, dropped = kept_rows(decisions), dropped_rows(decisions)
    return [
        Line("A coding session, written for this demo; every number is measured now", "strong"),
        f"  {session_line(demo)}",
        *(f"  {line}" for line in wrap(f"Next request: {demo.request}", WRAP)),
        "",
        Line(headline(demo.compaction.report, demo.seconds), "strong"),
        _rows(demo.compaction.table, [*kept, *dropped], decisions),
        "",
        *needs_lines(demo.needs),
        "",
        *next_commands(demo.path),
    ]


def session_line(demo: Demo) -> str:
    """Return the session in numbers."""
    table = demo.compaction.table
    return (
        f"{counted(int(table.turn[-1]) + 1, 'turn')}, {counted(len(table), 'block')}, "
        f"{counted(table.active_chars, 'character')} in a Claude Code log of "
        f"{byte_size(demo.transcript.bytes_read)}; retention {RETENTION}"
    )


def kept_rows(decisions: Sequence[Decision]) -> list[Decision]:
    """Return kept blocks of each rule: the earliest revived or protected, the largest others."""
    shown: list[Decision] = []
    for rule in KEPT_RULES:
        having = [d for d in decisions if d.rule == rule and d not in shown]
        if having:
            is_early = rule in ("expanded", "protected:user")
            shown.append(
                min(having, key=lambda d: d.turn)
                if is_early
                else max(having, key=lambda d: d.cost_chars)
            )
    return sorted(shown, key=lambda d: d.index)


def dropped_rows(decisions: Sequence[Decision]) -> list[Decision]:
    """Return the largest blocks that were dropped."""
    dropped = [d for d in decisions if not d.is_kept]
    return sorted(dropped, key=lambda d: -d.cost_chars)[:DROPPED_ROWS]


def needs_lines(needs: Needs) -> list[str]:
    """Return what the next turn needed and what was kept of it."""
    neither = needs.needed - needs.recap - needs.newest
    return [
        f"The next turn wrote {counted(len(needs.needed), 'name')} that only the history had shown it.",
        f"  Recap kept         {len(needs.recap)}, {len(needs.protected)} of them protected in any case",
        f"  newest first kept  {len(needs.newest)} with as many characters",
        f"  only with Recap    {_listed(needs.recap - needs.newest)}",
        f"  only newest first  {_listed(needs.newest - needs.recap)}",
        f"  with neither       {_listed(neither)}",
    ]


def next_commands(path: Path) -> list[str]:
    """Return the two commands to try next: on the user's newest session, if there is one."""
    try:
        newest_session(Path.home(), environ, Path.cwd())
        source = "--latest --request 'what you want next'"
    except InputError:
        source = (
            f"{shlex.quote(str(path))} --request-file {shlex.quote(str(path.parent))}/request.txt"
            f" --retention {RETENTION}"
        )
    return [f"Next: recap explain {source}", f"      recap compact {source} -o context.json"]


def demo_json(demo: Demo) -> dict[str, Json]:
    """Return the demo as the object that ``--json`` prints; its keys are stable."""
    return {
        "written_for_demo": True,
        "session": str(demo.path),
        "request": demo.request,
        "turns": int(demo.compaction.table.turn[-1]) + 1,
        "report": report_json(demo.compaction, demo.seconds, len(demo.compaction.to_json())),
        "needed": sorted(demo.needs.needed),
        "kept_by_recap": sorted(demo.needs.recap),
        "kept_by_newest_first": sorted(demo.needs.newest),
    }


def _wanted(request: str, policy: str, retention: str) -> Wanted:
    from recap.config import Settings

    return Wanted(request, Settings(retention=retention, policy=policy), (), None)


def _names_in(table: BlockTable, blocks: Iterable[int]) -> frozenset[str]:
    """Return the identifiers of some blocks."""
    index = table.index
    names = list(index.vocabulary)
    return frozenset(
        names[term]
        for block in blocks
        for term in index.terms[index.starts[block] : index.starts[block + 1]]
    )


def _rows(table: BlockTable, shown: Sequence[Decision], decisions: Sequence[Decision]) -> Table:
    columns = (
        Column(""),
        Column("turn", "right"),
        Column("chars", "right"),
        Column("why"),
        Column("begins with", is_flexible=True),
    )
    return Table(
        columns,
        tuple(
            Row(
                (
                    "kept" if decision.is_kept else "dropped",
                    turn_name(decision.turn),
                    number(decision.cost_chars),
                    _reason(decision, decisions),
                    block_preview(table.messages, table.blocks[decision.index]),
                ),
                "good" if decision.is_kept else "faint",
            )
            for decision in shown
        ),
    )


def _reason(decision: Decision, decisions: Sequence[Decision]) -> str:
    if decision.pulled_by is None:
        return why(decision)
    supported = decisions[decision.pulled_by]
    return f"revived, edge to turn {turn_name(supported.turn)} ({decision.edge_mass:.2f})"


def _is_whole(name: str) -> bool:
    """Return True for a name as it is written: no lower-case word of one, no keyword like SELECT."""
    return not name.isalpha() or not (name.islower() or name.isupper())


def _listed(names: frozenset[str]) -> str:
    """Return names in one short line, the longest first: they say most."""
    ordered = sorted(names, key=lambda name: (-len(name), name))
    shown = ordered[:1]
    for name in ordered[1:]:
        if len(", ".join([*shown, name])) <= LISTED_WIDTH:
            shown.append(name)
    more = len(ordered) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "") or "none"
