"""``recap observe``: build the context graph of a session and write it to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from recap.cli.command import Command
from recap.cli.graph import graph_of
from recap.cli.options import (
    Session,
    json_option,
    session_options,
    settings_in_force,
    settings_options,
)
from recap.cli.output import byte_size, counted, say, say_json
from recap.cli.writing import refuse_inputs, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = "recap.observe/1"


@click.command("observe", cls=Command, example="recap observe session.jsonl -o session.graph")
@session_options
@settings_options
@click.option("-o", "--out", required=True, metavar="GRAPH", help="File to write, mode 0600.")
@click.option("--dry-run", is_flag=True, help="Write nothing, say what would be written.")
@json_option
def command(
    session: Session, overrides: Mapping[str, object], out: str, dry_run: bool, as_json: bool
) -> None:
    """Build the context graph of a session from text reuse and write it to a file.

    `compact`, `explain` and `graph` take it with --graph. It holds block ids, scores and links,
    and no text.
    """
    from recap.graph.codec import encode

    target = Path(out)
    refuse_inputs(target, {"the session": session.path})
    settings, _ = settings_in_force(overrides)
    _, graph = graph_of(session.read(), settings)
    data = encode(graph)
    if not dry_run:
        write_whole(target, data)
    size = {
        "blocks": len(graph.ids),
        "edges": len(graph.source),
        "turns": graph.turns,
        "bytes": len(data),
    }
    if as_json:
        say_json(SCHEMA, {"out": str(target), "written": not dry_run, **size})
        return
    say(
        f"{counted(size['blocks'], 'block')}, {counted(size['edges'], 'support edge')}, "
        f"{counted(size['turns'], 'turn')}: {byte_size(len(data))} "
        f"{'not written (dry run)' if dry_run else 'written'} to {target}"
    )
