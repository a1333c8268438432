"""Files that a user names, or that lie below folders: what may be a session, each file once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recap.errors import InputError, shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SUFFIXES = (".json", ".jsonl", ".md", ".traj")


@dataclass(frozen=True, slots=True)
class Listing:
    """What was found.

    Attributes:
        files: Name -> file that may be a session.
        closed: Name of a folder -> why it cannot be listed.
    """

    files: dict[str, Path]
    closed: dict[str, str]


def listed(places: Iterable[Path]) -> Listing:
    """Return the files of several places, by their paths below the folder they were found in.

    A name that is taken becomes the whole path. A file that is reached in two ways counts once.

    Raises:
        InputError: A place is missing, or no file below it may be a session.
    """
    found = Listing({}, {})
    seen: set[str] = set()
    for place in places:
        if not os.path.lexists(place):
            raise InputError(f"there is no folder or file {shown_path(place)}")
        below = _below(place, found.closed) if place.is_dir() else {place: place}
        for name, path in below.items():
            if (real := os.path.realpath(path)) not in seen:
                seen.add(real)
                names = map(_text, (name, path, path.absolute()))
                found.files[next(each for each in names if each not in found.files)] = path
    return found


def session_files(folder: Path, tell: Callable[[OSError], None] | None = None) -> list[Path]:
    """Return the files below a folder that may be sessions, sorted.

    Args:
        folder: Where to search; links to other folders are not followed.
        tell: Is told of each folder that cannot be listed.

    Raises:
        InputError: There is none.
    """
    found = [
        path
        for place, _, names in os.walk(folder, onerror=tell)
        for path in (Path(place, name) for name in names)
        if path.suffix in SUFFIXES and _may_be_read(path)
    ]
    if not found:
        raise InputError(
            f"no session in {shown_path(folder)}: expected {', '.join(SUFFIXES)} files below it"
        )
    return sorted(found)


def _below(folder: Path, closed: dict[str, str]) -> dict[Path, Path]:
    """Return the files below a folder by their names, and note which folders cannot be listed."""
    errors: list[OSError] = []
    try:
        paths = session_files(folder, errors.append)
    except InputError:
        if not errors:
            raise
        paths = []
    closed |= {_text(Path(err.filename)): err.strerror or type(err).__name__ for err in errors}
    return {path.relative_to(folder): path for path in paths}


def _may_be_read(path: Path) -> bool:
    """Return False for folders, pipes, devices and links to nothing; what cannot be told is tried."""
    try:
        return path.is_file()
    except OSError:
        return True


def _text(path: Path) -> str:
    """Return a path as text that every file can hold; bytes that are no UTF-8 stand escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()
