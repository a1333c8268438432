"""Where agents keep their sessions: a table of locations, and the newest session found there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Location:
    """Where one agent keeps its sessions.

    Attributes:
        agent: The agent's name.
        variable: Environment variable that names its folder, "" where there is none.
        folder: Its folder below the home folder.
        pattern: Session files below the folder.
        side_prefix: Beginning of the names of files that hold sub-agents, not sessions.
    """

    agent: str
    variable: str
    folder: str
    pattern: str
    side_prefix: str


LOCATIONS = (
    Location("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", "projects/*/*.jsonl", "agent-"),
)


def location_root(location: Location, home: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder an agent keeps its sessions below."""
    named = environ.get(location.variable, "") if location.variable else ""
    return type(home)(named) if named else home / location.folder


def session_files(home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the session files of all agents in the table that have been written to."""
    for location in LOCATIONS:
        for path in location_root(location, home, environ).glob(location.pattern):
            if path.is_file() and not path.name.startswith(location.side_prefix):
                yield path


def newest_session(home: Path, environ: Mapping[str, str]) -> Path:
    """Return the session file that was written last; ties go by name.

    Raises InputError when there is none.
    """
    found = [
        (status.st_mtime_ns, path)
        for path in session_files(home, environ)
        if (status := path.stat()).st_size
    ]
    if not found:
        looked = ", ".join(
            f"{location_root(location, home, environ) / location.pattern}" for location in LOCATIONS
        )
        raise InputError(f"no session found (looked in {looked}); name the session file instead")
    return max(found)[1]
