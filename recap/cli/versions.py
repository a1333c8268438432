"""What the commands about snapshots and branches share: the store, names, JSON, lines."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from recap.cli.output import byte_size, complain, counted, remark
from recap.errors import InputError, RecapError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recap.cli.state import State
    from recap.cmv.branch import Branch
    from recap.cmv.homes import Homes
    from recap.cmv.options import TrimOptions
    from recap.cmv.report import TrimReport
    from recap.cmv.snapshot import Seen
    from recap.store import BranchRow, SnapshotRow, Store
    from recap.transcript.model import Json


NAMED = 5
"""Files that a snapshot lacks which are named one by one."""


@contextmanager
def opened_store(state: State) -> Iterator[Store]:
    """Open a store that is there; StoreError says how one is made."""
    if not state.is_made:
        raise StoreError(
            f"there is no store in {state.place}; `recap snapshot NAME --latest` makes one"
        )
    with state.opened() as store:
        yield store


def settle_first(store: Store) -> list[Json]:
    """Complete or undo what an earlier command left unfinished, and tell of it; return it as JSON."""
    from recap.cmv.making import settle

    settled = settle(store)
    for each in settled:
        remark(f"{each.outcome} {each.path}, which an earlier command left unfinished")
    return [{"path": str(each.path), "outcome": each.outcome} for each in settled]


def homes() -> Homes:
    """Return where the agents of the person keep their sessions."""
    from recap.cmv.homes import Homes

    return Homes(Path.home(), os.environ)


def snapshot_json(row: SnapshotRow) -> dict[str, Json]:
    """Return a snapshot as the object that ``--json`` prints; its keys are stable."""
    sides = [side for side in row.sides if not side.name.startswith(".recap/")]
    return {
        "id": row.id,
        "name": row.name,
        "description": row.description,
        "tags": list(row.tags),
        "created": stamp(row.created),
        "agent": row.agent,
        "session": row.session,
        "project": row.project,
        "client_versions": list(row.versions),
        "sha256": row.sha256.hex(),
        "bytes": row.size,
        "lines": row.lines,
        "messages": dict(row.messages),
        "parent": row.parent,
        "captured_while_active": row.is_active,
        "graph_revision": row.graph_rev,
        "side_files": [
            {"name": side.name, "bytes": side.size, "sha256": side.sha256.hex()} for side in sides
        ],
    }


def branch_json(row: BranchRow) -> dict[str, Json]:
    """Return a branch as the object that ``--json`` prints; its keys are stable."""
    return {
        "id": row.id,
        "name": row.name,
        "snapshot": row.snapshot,
        "session": row.session,
        "created": stamp(row.created),
        "options": options_of(row),
        "sha256": row.sha256.hex(),
    }


def options_of(row: BranchRow) -> Json:
    """Return how a branch was made; None where that cannot be read."""
    try:
        return json.loads(row.options) if row.options else None
    except ValueError:
        return None


def made_json(made: Branch, *, is_written: bool) -> dict[str, Json]:
    """Return a branch that was made, or would be, as JSON."""
    report: Json = made.report.to_json() if made.report else None
    return {
        "written": is_written,
        "branch": branch_json(made.row) if is_written else None,
        "path": str(made.path),
        "project": made.project,
        "side_files": made.files,
        "resume": made.resume_line or None,
        "trim": report,
    }


def made_lines(made: Branch, *, is_written: bool) -> list[str]:
    """Return what a person is told of a branch."""
    verb = "branch" if is_written else "would write"
    lines = [f"{verb}  {made.path}"]
    if made.report is not None:
        report = made.report
        before, after = report.active_chars_before, report.active_chars_after
        lines.append(f"trimmed  {before:,} -> {counted(after, 'character')} to send")
    if made.files:
        lines.append(f"beside it  {counted(made.files, 'file')}")
    if is_written and made.resume_line:
        lines.append(f"go on with  {made.resume_line}")
    return lines


def tell_gaps(seen: Seen) -> None:
    """Say what a snapshot of a session lacks, or may lack."""
    if seen.live.is_active:
        remark("the session was written to within the last two minutes: it may be in use")
    gone = [f"the session names {name}, which is gone" for name in seen.missing]
    left = [
        f"{name} is left out: no file, or none whose name can be kept" for name in seen.left_out
    ]
    for lines in (gone, left):
        for line in lines[:NAMED]:
            remark(line)
        if len(lines) > NAMED:
            remark(f"and {counted(len(lines) - NAMED, 'more file', 'more files')}")


def tell_drastic(report: TrimReport, options: TrimOptions) -> None:
    """Say in a dry run what the trim itself would be refused for."""
    if report.is_drastic and not options.yes:
        remark("more than 95 % of what is sent would go: that takes --yes")


def inherit_graphs(store: Store, row: SnapshotRow, made: Branch) -> None:
    """Give a branch the context graphs of its snapshot; a line where that fails."""
    from recap.cmv.graphs import GRAPH

    if not any(side.name.startswith(GRAPH) for side in row.sides):
        return
    from recap.cli.options import settings_in_force
    from recap.session.inherit import inherit
    from recap.transcript.formats import open_log, read_bytes

    try:
        before = read_bytes(b"".join(store.history.read(row)), format=row.agent)
        after = open_log(made.path, format=row.agent)
        settings, _ = settings_in_force({})
        inherit(store, row, before, after, settings, label=str(made.path))
    except RecapError as err:
        complain(f"the branch inherits no context graph: {err}")


def launch(made: Branch) -> int:
    """Start the agent on a branch, and return its exit status."""
    folder = made.project if made.project and Path(made.project).is_dir() else None
    if not made.resume:
        raise InputError("it is not known how this agent is started on a session")
    try:
        return subprocess.call(made.resume, cwd=folder)
    except OSError as err:
        raise InputError(
            f"cannot start {made.resume[0]} ({err.strerror}); go on with: {made.resume_line}"
        ) from err


def sizes(row: SnapshotRow) -> str:
    """Return how large a snapshot is."""
    messages = sum(count for kind, count in row.messages if kind != "sidechain")
    return f"{byte_size(row.size)}, {counted(messages, 'message')}"


def stamp(seconds: float) -> str:
    """Return a time as JSON has it: UTC, to the second."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return ""


def local_time(seconds: float) -> str:
    """Return a time as a person reads it."""
    try:
        return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return "?"
