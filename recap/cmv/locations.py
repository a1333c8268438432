"""Where agents keep their sessions: a table of locations, and the newest session found there.

OpenCode is not in the table: it keeps a session in many files, ``opencode export`` writes one.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from recap.errors import InputError, shown, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LOOKED_INTO = 200
"""Newest sessions whose head is read to find one of the current folder."""

HEAD_BYTES = 1 << 16
LEAST_PREFIX = 4
LISTED = 5
"""Characters of an id that name a session; sessions that an error lists."""

_ODD = re.compile("[^A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Location:
    """Where one agent keeps its sessions.

    Attributes:
        agent: The agent's name.
        variable: Environment variable that names its folder, "" where there is none.
        folder: Its folder below the home folder.
        patterns: Session files below the folder.
        side_prefix: Beginning of the names of files that hold sub-agents, not sessions; "" for none.
    """

    agent: str
    variable: str
    folder: str
    patterns: tuple[str, ...]
    side_prefix: str = ""


LOCATIONS = (
    Location("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", ("projects/*/*.jsonl",), "agent-"),
    Location("Codex", "CODEX_HOME", ".codex", ("sessions/*/*/*/rollout-*.jsonl",)),
    Location("Gemini CLI", "", ".gemini", ("tmp/*/chats/*.json", "tmp/*/chats/*.jsonl")),
    Location(
        "Copilot CLI", "COPILOT_HOME", ".copilot",
        ("session-state/*.jsonl", "session-state/*/events.jsonl"),
    ),
    Location("pi", "PI_CODING_AGENT_DIR", ".pi/agent", ("sessions/*/*.jsonl",)),
)  # fmt: skip


class Found(NamedTuple):
    """A session file, its agent, and when it was written last."""

    written_ns: int
    path: Path
    agent: str


def location_root(location: Location, home: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder an agent keeps its sessions below."""
    named = environ.get(location.variable, "") if location.variable else ""
    return type(home)(named) if named else home / location.folder


def session_files(location: Location, home: Path, environ: Mapping[str, str]) -> Iterator[Found]:
    """Yield an agent's session files that have been written to."""
    root = location_root(location, home, environ)
    for pattern in location.patterns:
        for path in root.glob(pattern):
            if location.side_prefix and path.name.startswith(location.side_prefix):
                continue
            with suppress(OSError):  # gone meanwhile, or not ours to read
                status = path.stat()
                if path.is_file() and status.st_size:
                    yield Found(status.st_mtime_ns, path, location.agent)


def newest_session(home: Path, environ: Mapping[str, str], folder: Path) -> Found:
    """Return the session that was written last, one of ``folder`` before all others.

    An agent says in the head of a session, or in the name of its folder, where it worked; looked at
    are the ``LOOKED_INTO`` newest. Ties go by name. Raises InputError when there is none.
    """
    found = [each for location in LOCATIONS for each in session_files(location, home, environ)]
    if not found:
        looked = ", ".join(
            f"{location_root(location, home, environ) / location.patterns[0]}"
            for location in LOCATIONS
        )
        raise InputError(f"no session found (looked in {looked}); name the session file instead")
    found.sort(reverse=True)
    own = (each for each in found[:LOOKED_INTO] if _is_of(each.path, folder))
    return next(own, found[0])


def find_session(name: str, home: Path, environ: Mapping[str, str]) -> Path:
    """Return the session that a file, a client's id or the beginning of one names.

    Raises:
        InputError: There is none, or several.
    """
    path = type(home)(name)
    if "\0" not in name and path.exists():
        return path
    found = [each for location in LOCATIONS for each in session_files(location, home, environ)]
    named = [each.path for each in found if each.path.stem.endswith(name)]
    begun = [each.path for each in found if each.path.stem.startswith(name)]
    for fitting in (named, begun) if len(name) >= LEAST_PREFIX else ():
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            listed = ", ".join(str(each) for each in sorted(fitting)[:LISTED])
            raise InputError(f"{shown(name)} could be {listed}; give the file")
    raise InputError(
        f"there is no session or file {shown_path(name)}; `recap sessions --all` lists sessions, "
        "--latest takes the newest"
    )


def _is_of(path: Path, folder: Path) -> bool:
    """Return True when a session says that its agent worked in ``folder``."""
    name = str(folder)
    if _ODD.sub("-", name) == path.parent.name:  # Claude Code
        return True
    if sha256(name.encode("utf-8", "surrogateescape")).hexdigest() in path.parts:  # Gemini CLI
        return True
    with suppress(OSError), path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        stated = (json.dumps(name, ensure_ascii=ascii_only) for ascii_only in (True, False))
        return any(
            re.search(rb'"cwd"\s*:\s*' + re.escape(text.encode("utf-8", "replace")), head)
            for text in stated
        )
    return False
