"""Where an agent looks for a session, and how it is told to go on with one."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from recap.cmv.facts import CLAUDE_CODE, CODEX, OPENCODE, slug
from recap.cmv.locations import LOCATIONS, location_root, session_files
from recap.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LOCATION = {CLAUDE_CODE: LOCATIONS[0], CODEX: LOCATIONS[1]}


@dataclass(frozen=True, slots=True)
class Homes:
    """Where the agents of a person keep their sessions.

    Attributes:
        home: The person's home folder.
        environ: Environment variables, by which agents are told other folders.
    """

    home: Path
    environ: Mapping[str, str]

    def place(self, format: str, session: str, project: str, now: float) -> Path | None:
        """Return the file in which an agent looks for a session; None for an agent not known.

        Args:
            format: Format of the session.
            session: Its id.
            project: Folder of its project, with links resolved.
            now: Unix time, seconds.
        """
        if format not in _LOCATION:
            return None
        root = location_root(_LOCATION[format], self.home, self.environ)
        if format == CLAUDE_CODE:
            if not project:
                raise UsageError("the session does not say of which project it is: --to-project")
            return root / "projects" / slug(project) / f"{session}.jsonl"
        moment = datetime.fromtimestamp(now)
        name = f"rollout-{moment:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
        return root / "sessions" / f"{moment:%Y/%m/%d}" / name

    def find(self, format: str, session: str) -> Path | None:
        """Return the file of a session that is there; None without one."""
        if format not in _LOCATION:
            return self.home / session if (self.home / session).is_file() else None
        found = session_files(_LOCATION[format], self.home, self.environ)
        return next((each.path for each in found if each.path.stem.endswith(session)), None)


def real_folder(folder: str | os.PathLike[str]) -> str:
    """Return a folder as agents know it: absolute, links resolved, whether it is there or not."""
    return os.path.realpath(folder)


def resume_words(format: str, session: str, path: Path) -> tuple[str, ...]:
    """Return the command by which an agent goes on with a session; nothing where none would find it."""
    if format == CLAUDE_CODE:
        is_placed = path.parent.parent.name == "projects" and path.stem == session
        return ("claude", "--resume", session if is_placed else str(path))
    if format == CODEX:
        is_placed = "sessions" in path.parts and path.stem.endswith(session)
        return ("codex", "resume", session) if is_placed else ()
    if format == OPENCODE:
        return ("opencode", "import", str(path))
    return ()


def resume_line(words: tuple[str, ...], project: str) -> str:
    """Return the command as a person types it, in the folder it has to be typed in."""
    line = shlex.join(words)
    return f"cd {shlex.quote(project)} && {line}" if words[:1] == ("claude",) and project else line
