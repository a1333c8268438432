"""Snapshots: what a session is at one instant, kept for good."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from recap.cmv.facts import Facts, facts_of
from recap.cmv.graphs import graphs_of
from recap.cmv.live import Live, open_live
from recap.cmv.names import check_name, new_id
from recap.cmv.side_files import OWN, Beside, files_beside, missing, read_pieces
from recap.cmv.streams import has_open_line
from recap.errors import InputError, UsageError
from recap.store import SideFile, SnapshotRow
from recap.transcript.model import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from recap.store import History, Store

ORIGIN = f"{OWN}origin.json"


@dataclass(frozen=True, slots=True)
class Seen:
    """A session before its snapshot is taken.

    Attributes:
        live: Its bytes.
        facts: What they say.
        beside: The files beside it.
        missing: Files it names that are gone.
        left_out: What is beside it and is not kept: links, what is no file, names nobody can read.
    """

    live: Live
    facts: Facts
    beside: tuple[Beside, ...]
    missing: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What people call a snapshot. Checked when it is made.

    Attributes:
        name: Its name.
        description: What it is, in words.
        tags: To find it by.
        is_numbered: Where the name is taken it gets a number, instead of being refused.

    Raises:
        UsageError: The name or a tag cannot be given.
    """

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    is_numbered: bool = False

    def __post_init__(self) -> None:
        for name in (self.name, *self.tags):
            check_name(name)


def look(path: Path, *, now: float | None = None) -> Seen:
    """Read a session as it stands, and keep nothing of it.

    Raises:
        InputError: It is missing, empty, of no known format, or no regular file.
    """
    live = open_live(path, time.time() if now is None else now)
    facts = facts_of(live.source, path)
    beside, left_out = files_beside(path, facts)
    gone = tuple(name for name in missing(facts, beside) if name not in left_out)
    return Seen(live, facts, tuple(beside), gone, tuple(left_out))


def take(store: Store, seen: Seen, labels: Labels) -> SnapshotRow:
    """Keep a session as it was seen, with the files beside it and its context graphs.

    Bytes that are kept already are not kept twice. The session is never changed.

    Returns:
        The snapshot. Its parent is the one whose branch the session is, if it is one.

    Raises:
        UsageError: The name is taken.
        InputError: The session was rewritten or replaced meanwhile.
        StoreError: It cannot be kept.
    """
    history, facts = store.history, seen.facts
    if not labels.is_numbered and history.snapshots(name=labels.name):
        raise UsageError(f"the name {labels.name!r} is taken, choose another")
    chain = history.put_chain(seen.live.pieces())
    seen.live.demand_same(chain.sha256)
    graphs = graphs_of(store, facts.session, seen.live.path)
    origin = encode({"path": str(seen.live.path.resolve())})
    kept = [(ORIGIN, [origin]), *((f"{OWN}{each.name}", [each.data]) for each in graphs)]
    sides = [_side(history, each.name, read_pieces(each.path)) for each in seen.beside]
    sides += [_side(history, name, pieces) for name, pieces in kept]
    row = SnapshotRow(
        id=new_id(),
        name=labels.name,
        description=labels.description,
        tags=labels.tags,
        root=chain.root,
        sha256=chain.sha256,
        size=chain.size,
        lines=chain.lines + has_open_line(seen.live.source),
        agent=facts.format,
        session=facts.session,
        project=facts.project,
        versions=facts.versions,
        messages=facts.messages,
        parent=_parent(history, facts.session),
        is_active=seen.live.is_active,
        graph_rev=max((each.revision for each in graphs), default=0),
        sides=tuple(sides),
    )
    return _added_under_free_name(history, row) if labels.is_numbered else history.add_snapshot(row)


def _added_under_free_name(history: History, row: SnapshotRow) -> SnapshotRow:
    """Store a snapshot under its name, or under that with a number where the name is taken."""
    while True:
        named = replace(row, name=free_name(history, row.name))
        try:
            return history.add_snapshot(named)
        except UsageError:
            if not history.snapshots(name=named.name):
                raise
            # another process was faster: the next number is free


def free_name(history: History, wanted: str) -> str:
    """Return a name nobody has: the one that is wanted, or that with a number."""
    taken = {row.name for row in history.snapshots()}
    names = (f"{wanted}_{number}" if number > 1 else wanted for number in count(1))
    return next(name for name in names if name not in taken)


def origin_of(history: History, row: SnapshotRow) -> str:
    """Return the path a snapshot's file had, "" where that is not known."""
    side = next((side for side in row.sides if side.name == ORIGIN), None)
    if side is None:
        return ""
    try:
        return str(decode(b"".join(history.read(side)))["path"])
    except (ValueError, TypeError, KeyError) as err:
        raise InputError(f"snapshot {row.name!r} does not say where its file was") from err


def _side(history: History, name: str, pieces: Iterable[bytes]) -> SideFile:
    chain = history.put_chain(pieces)
    return SideFile(name=name, root=chain.root, sha256=chain.sha256, size=chain.size)


def _parent(history: History, session: str) -> str | None:
    made = history.branches(session=session)
    return made[0].snapshot if made else None
