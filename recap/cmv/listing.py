"""The sessions of all agents as a list: what each is, how large, what is known of it.

Counting messages takes reading a session: counts are kept in a file of numbers, by the identity of
the session's file, so that a session is read again when it has changed.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from recap.cmv.locations import HEAD_BYTES, LOCATIONS, session_files
from recap.cmv.putting import put
from recap.cmv.titles import title_of
from recap.errors import RecapError
from recap.transcript.lines import split_lines
from recap.transcript.model import decode
from recap.transcript.sources import open_source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recap.cmv.homes import Homes
    from recap.cmv.locations import Found
    from recap.store import BranchRow, SnapshotRow

Sort = Literal["date", "size", "messages"]
CACHE_NAME = "sessions.counts"
MOST_CACHED = 20_000

_CWD = re.compile(rb'"(?:cwd|directory)"\s*:\s*("(?:[^"\\]|\\.)*")')
_MESSAGE = re.compile(rb'"(?:type|role)"\s*:\s*"(?:user|assistant|message)"')
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One session.

    Attributes:
        id: By which commands find it.
        path: Its file.
        agent: Whose it is.
        project: Folder it was started in, "" where its head does not say.
        size: Bytes.
        modified: Unix time, seconds.
        messages: Lines of it that hold messages.
        snapshots: How many snapshots of it are kept.
        branches: How many branches came of these.
        title: What it is called, "" where it has no title.
    """

    id: str
    path: Path
    agent: str
    project: str
    size: int
    modified: float
    messages: int
    snapshots: int
    branches: int
    title: str


class Counts:
    """Message counts by the identity of files: device, inode, size and time of the last change."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, int] = {}
        self._used: dict[str, int] = {}
        if path is not None:
            with suppress(OSError, msgspec.DecodeError):
                self._known = msgspec.json.decode(path.read_bytes(), type=dict[str, int])

    def of(self, path: Path) -> int:
        """Return how many lines of a session hold messages; 0 for one that cannot be read."""
        try:
            status = path.stat()
            key = f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
            count = self._known[key] if key in self._known else _count(path)
        except (OSError, RecapError):
            return 0
        self._used[key] = count
        return count

    def save(self) -> None:
        """Keep the counts; without a word where that cannot be done."""
        if self._path is None or self._used.items() <= self._known.items():
            return
        kept = list((self._known | self._used).items())[-MOST_CACHED:]
        with suppress(RecapError):
            put(self._path, [msgspec.json.encode(dict(kept))], replace=True)


class Known(NamedTuple):
    """Snapshots and branches that are counted."""

    snapshots: Sequence[SnapshotRow] = ()
    branches: Sequence[BranchRow] = ()


def sessions(
    homes: Homes,
    counts: Counts,
    known: Known,
    *,
    project: str = "",
    agent: str = "",
    sort: Sort = "date",
) -> list[Listed]:
    """Return the sessions of agents.

    Args:
        homes: Where agents keep them.
        counts: Message counts.
        known: Snapshots and branches that are counted for each.
        project: Those of this folder alone; "" for all.
        agent: Those of this agent alone, whatever the case; "" for all.
        sort: Newest, largest, or longest first.
    """
    taken = Counter(row.session for row in known.snapshots)
    session_of = {row.id: row.session for row in known.snapshots}
    made = Counter(session_of.get(row.snapshot) for row in known.branches)
    listed = []
    for location in LOCATIONS:
        if agent and agent.lower() not in location.agent.lower():
            continue
        for found in session_files(location, homes.home, homes.environ):
            where = project_of(found.path)
            if not project or where == project:
                listed.append(_listed(found, where, counts, taken, made))
    keys = {
        "date": lambda each: -each.modified,
        "size": lambda each: -each.size,
        "messages": lambda each: -each.messages,
    }
    return sorted(listed, key=lambda each: (keys[sort](each), str(each.path)))


def project_of(path: Path) -> str:
    """Return the folder a session says it was started in, from its head; "" where it says none."""
    try:
        with path.open("rb") as stream:
            match = _CWD.search(stream.read(HEAD_BYTES))
        value = decode(match[1]) if match else ""
    except (OSError, ValueError):
        return ""
    return value if isinstance(value, str) else ""


def _listed(
    found: Found, project: str, counts: Counts, taken: Counter[str], made: Counter[str | None]
) -> Listed:
    stem = found.path.stem
    match = _UUID.search(stem)
    id = match[0] if match else stem
    size = 0
    with suppress(OSError):
        size = found.path.stat().st_size
    return Listed(
        id=id,
        path=found.path,
        agent=found.agent,
        project=project,
        size=size,
        modified=found.written_ns / 1e9,
        messages=counts.of(found.path),
        snapshots=taken[id] + taken[str(found.path)],
        branches=made[id] + made[str(found.path)],
        title=title_of(found.path) if found.agent == LOCATIONS[0].agent else "",
    )


def _count(path: Path) -> int:
    return sum(bool(_MESSAGE.search(line.data)) for line in split_lines(open_source(path)))
