"""Files a client keeps beside a log: outputs it moved out, logs of sub-agents.

In a snapshot they have the names they have in the session's folder; a sub-agent's log that stands
beside the session, as older clients kept it, has a name below ``agents/``. What we note ourselves
has a name below ``.recap/``.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from recap.cmv.facts import CLAUDE_CODE, MOST, SIDE_FOLDERS
from recap.errors import InputError, shown_path
from recap.transcript.sources import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.cmv.facts import Facts

AGENTS = "agents"
OWN = ".recap/"
DEPTH = 4
"""Folders below the session's own that are looked into."""


class Beside(NamedTuple):
    """A file beside a log: its name in a snapshot, and where it is."""

    name: str
    path: Path


def files_beside(path: Path, facts: Facts) -> tuple[list[Beside], list[str]]:
    """Return the files beside a Claude Code log, and the names of what is there and is left out.

    Both in order of their names. Left out are links, which are not followed, what is no file, names
    that no terminal shows, and what lies too deep.
    """
    if facts.format != CLAUDE_CODE:
        return [], []
    own = path.parent / path.stem
    below = [each for name in SIDE_FOLDERS for each in _below(own / name, name, DEPTH)]
    found = [Beside(name, own / name) for name, is_kept in below if is_kept]
    for agent in facts.agents:
        beside = path.parent / f"agent-{agent}.jsonl"
        if beside != path and _is_regular(beside):
            found.append(Beside(f"{AGENTS}/{beside.name}", beside))
    if len(found) > MOST:
        raise InputError(f"{shown_path(path)}: has more than {MOST:,} files beside it")
    return sorted(found), sorted(name for name, is_kept in below if not is_kept)


def missing(facts: Facts, beside: list[Beside]) -> tuple[str, ...]:
    """Return the files that the log names and that are gone: the client cleans up."""
    return tuple(sorted(set(facts.named) - {each.name for each in beside}))


def read_pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a regular file; InputError for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as err:
        raise InputError(f"{shown_path(path)}: cannot be read: {err.strerror}") from err
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(f"{shown_path(path)}: is no regular file")
        while piece := stream.read(CHUNK_BYTES):
            yield piece


def _below(folder: Path, name: str, depth: int) -> Iterator[tuple[str, bool]]:
    """Yield the names of what is below a folder, and whether each is a file to keep."""
    if folder.is_symlink() or not depth:
        yield name, False
        return
    try:
        with os.scandir(folder) as listed:
            entries = list(listed)
    except FileNotFoundError:
        return
    except OSError:  # a folder that cannot be read, or is none
        yield name, False
        return
    for entry in entries:
        inner = f"{name}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _below(folder / entry.name, inner, depth - 1)
        else:
            yield inner, entry.is_file(follow_symlinks=False) and is_safe(inner)


def _is_regular(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def is_safe(name: str) -> bool:
    """Return True for the name of a side file that can be written below a session's folder."""
    parts = name.split("/")
    return (
        2 <= len(parts) <= DEPTH + 1
        and parts[0] in (*SIDE_FOLDERS, AGENTS)
        and all(part not in ("", ".", "..") and part.isprintable() for part in parts)
        and "\\" not in name
    )
