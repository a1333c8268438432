"""``recap trim`` without a file to write: a snapshot of the session, and a trimmed branch of it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from recap.cli.output import Line, say, say_json, working
from recap.cli.versions import (
    branch_json,
    homes,
    inherit_graphs,
    launch,
    made_lines,
    settle_first,
    snapshot_json,
    tell_gaps,
)
from recap.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from recap.cli.state import State
    from recap.cmv.branch import Wish


def fork_session(
    path: Path,
    name: str | None,
    wish: Wish,
    state: State,
    *,
    schema: str,
    is_launched: bool,
    as_json: bool,
) -> None:
    """Keep a session, make its trimmed branch, and tell."""
    from recap.cmv.fork import fork
    from recap.cmv.snapshot import Labels, look

    if not state.is_kept:
        raise UsageError("a trim without -o keeps a snapshot: leave --no-store out")
    wanted = f"trim_{datetime.now():%Y%m%d_%H%M%S}"
    labels = Labels(name=name or wanted, is_numbered=not name)
    with working(f"trimming {path}"), state.opened() as store:
        settle_first(store)
        seen = look(path)
        row, made = fork(store, seen, labels, wish, homes())
        inherit_graphs(store, row, made)
    tell_gaps(seen)
    if as_json:
        report = made.report.to_json() if made.report else {}
        said = {"written": True, "out": str(made.path), **report}
        kept = {"snapshot": snapshot_json(row), "branch": branch_json(made.row)}
        say_json(schema, {**said, **kept, "resume": made.resume_line or None})
    else:
        kept_as = f"snapshot {row.name}  {row.id[:8]}: the session as it was"
        say(Line(kept_as, "good"), *made_lines(made, is_written=True))
    if is_launched:
        raise click.exceptions.Exit(launch(made))
