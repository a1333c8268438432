"""``recap diff``: two sessions or snapshots as the model sees them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.options import json_option, session_file, source_of
from recap.cli.output import (
    Column,
    Element,
    Line,
    Row,
    Table,
    counted,
    number,
    say,
    say_json,
    working,
)
from recap.cli.state import State, folder_option
from recap.cli.versions import opened_store
from recap.errors import InputError, RecapError, UsageError

if TYPE_CHECKING:
    from recap.cmv.diff import Diff
    from recap.transcript.model import Transcript

SCHEMA = "recap.diff/1"
TONES = {"stubbed": "faint", "dropped": "bad", "added": "good", "changed": "bad"}


@click.command("diff", cls=Command, example="recap diff before-refactor branch.jsonl --texts")
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option("--stat", "is_stat", is_flag=True, help="Numbers alone.")
@click.option(
    "--texts", "is_proof", is_flag=True, help="Prove that the texts are equal; else exit 1."
)
@click.option("--blocks", "with_blocks", is_flag=True, help="List all blocks, kept ones as well.")
@folder_option
@json_option
def command(
    one: str, other: str, is_stat: bool, is_proof: bool, with_blocks: bool, state: State,
    as_json: bool,
) -> None:  # fmt: skip
    """Compare two sessions as the model sees them: blocks kept, stubbed, dropped, added.

    A and B are session files, names or ids of snapshots and branches, or ids of sessions.
    """
    from recap.cmv.diff import diff

    with working("comparing"):
        found = diff(_transcript(one, state), _transcript(other, state))
    if as_json:
        say_json(SCHEMA, _as_json(found))
    else:
        say(*_lines(found, with_blocks=with_blocks, is_stat=is_stat or is_proof))
    if is_proof and not found.are_texts_equal:
        raise click.exceptions.Exit(1)


def _transcript(name: str, state: State) -> Transcript:
    """Read the session that a file, a snapshot, a branch or a client's id is."""
    from recap.cli.versions import homes
    from recap.cmv.names import find
    from recap.cmv.restoring import branch_file
    from recap.store import SnapshotRow
    from recap.transcript.formats import read_bytes, read_source

    if "\0" not in name and Path(name).exists():
        return read_source(source_of(Path(name)))
    unknown: RecapError = InputError(
        f"there is no file {name!r}, and no store with a snapshot of this name"
    )
    if state.is_made:
        with opened_store(state) as store:
            try:
                row = find(store.history, name)
            except UsageError as err:
                unknown = err
            else:
                if isinstance(row, SnapshotRow):
                    return read_bytes(b"".join(store.history.read(row)), format=row.agent)
                return read_source(source_of(branch_file(store.history, row, homes())))
    try:
        path = session_file(name)
    except InputError:
        raise unknown from None
    return read_source(source_of(path))


def _as_json(found: Diff) -> dict[str, object]:
    names = ("user", "assistant")
    return {
        "chars_before": found.chars[0],
        "chars_after": found.chars[1],
        "common_prefix": {
            "blocks": found.prefix_blocks,
            "chars": found.prefix_chars,
            "tokens": found.prefix_tokens,
            "method": "chars4",
        },
        "counts": found.counts,
        "texts_equal": found.are_texts_equal,
        "texts": {
            name: [{"count": each.count, "sha256": each.sha256} for each in found.texts[name]]
            for name in names
        },
        "blocks": [
            {
                "id": each.id,
                "kind": each.kind,
                "fate": each.fate,
                "chars_before": each.chars_before,
                "chars_after": each.chars_after,
            }
            for each in found.blocks
        ],
    }


def _lines(found: Diff, *, with_blocks: bool, is_stat: bool) -> list[Element]:
    counts = ", ".join(f"{number(count)} {fate}" for fate, count in found.counts.items() if count)
    lines: list[Element] = [
        Line(f"{number(found.chars[0])} -> {counted(found.chars[1], 'character')}", "strong"),
        f"blocks   {counts or 'none'}",
        f"prefix   {counted(found.prefix_blocks, 'block')} the same from the beginning, about "
        f"{counted(found.prefix_tokens, 'token')}",
        *(_text_line(role, found) for role in ("user", "assistant")),
    ]
    shown = [each for each in found.blocks if with_blocks or each.fate != "kept"]
    if is_stat and not with_blocks:
        return lines
    columns = (
        Column("block"), Column("kind"), Column("fate"), Column("before", "right"),
        Column("after", "right"),
    )  # fmt: skip
    rows = (
        Row(
            (each.id, each.kind, each.fate, number(each.chars_before), number(each.chars_after)),
            TONES.get(each.fate, ""),  # type: ignore[arg-type]  # a tone
        )
        for each in shown
    )
    return [*lines, Table(columns, tuple(rows))] if shown else lines


def _text_line(role: str, found: Diff) -> Line:
    one, other = found.texts[role]
    label = f"{role} texts"
    if one == other:
        return Line(f"{label:<16} {number(one.count)}, all equal: sha256 {one.sha256[:16]}", "good")
    return Line(f"{label:<16} {number(one.count)} -> {number(other.count)}, not equal", "bad")
