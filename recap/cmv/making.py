"""Files that appear together, although a process may end at any instant.

The store notes them first. Each is written under a name of its own beside the first one; then the store
records what they are; then they get their names, the first one last. What is left of a process that is gone
is settled by the next: before the record it is undone, after it completed.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from recap.cmv.putting import is_same, make_folders, publish, write_new
from recap.errors import RecapError
from recap.store.unfinished import Unfinished

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recap.store import BranchRow, History, Store

Outcome = Literal["completed", "undone"]


class Settled(NamedTuple):
    """What became of files that another process left: the first of them, and how they ended."""

    path: Path
    outcome: Outcome


class Making:
    """Files that are being made; see ``making``."""

    def __init__(self, history: History, note: Unfinished) -> None:
        self._history = history
        self._note = note

    def write(self, number: int, pieces: Iterable[bytes]) -> bytes:
        """Write the file of a number, and return its SHA-256; it has no name yet.

        Raises:
            InputError: It cannot be written.
        """
        return write_new(self.temporary(number), pieces, Path(self._note.targets[number]))

    def temporary(self, number: int) -> Path:
        """Return where a file is until it has its name."""
        return _temporary(self._note, number)

    def commit(self, branch: BranchRow | None = None) -> BranchRow | None:
        """Record that all are written, and the branch that they are; then give them their names.

        Returns:
            The branch as it is stored.

        Raises:
            UsageError: The branch cannot be stored, or something else has a name.
            InputError: A folder refuses a file. No file and no record stays of what failed.
        """
        made = self._history.commit(self._note, branch)
        try:
            _publish(self._note)
        except BaseException:
            self._history.abandon(replace(self._note, branch=branch.id if branch else ""))
            raise
        return made


@contextmanager
def making(store: Store, targets: Sequence[Path], *, replaces: bool = False) -> Iterator[Making]:
    """Note files that are to be made, the most important one first, and yield what makes them.

    What was not committed when the block ends is taken away.
    """
    note = Unfinished(
        id=secrets.token_hex(8),
        folder=str(targets[0].absolute().parent),
        targets=tuple(str(target.absolute()) for target in targets),
        replaces=replaces,
    )
    history = store.history
    with store.making():
        note = history.begin(note)
        is_made = False
        try:
            yield Making(history, note)
            is_made = True
        finally:
            _clean(note, is_made=is_made)
            history.end(note)


def settle(store: Store) -> list[Settled]:
    """Complete or undo what processes left that are gone; nothing while another makes files."""
    if not store.history.unfinished():
        return []
    with store.settling() as is_alone:
        notes = store.history.unfinished() if is_alone else []  # some may have ended meanwhile
        return [_settle(store.history, note) for note in notes]


def _settle(history: History, note: Unfinished) -> Settled:
    outcome: Outcome = "undone"
    if note.is_ready:
        try:
            _publish(note)
            outcome = "completed"
        except RecapError:  # its name was given to another file, or its folder is gone
            history.abandon(note)
    _clean(note, is_made=outcome == "completed")
    history.end(note)
    return Settled(Path(note.targets[0]), outcome)


def _publish(note: Unfinished) -> None:
    """Give all files their names, the first one last; those that have theirs stay."""
    for number, target in (*enumerate(note.targets[1:], 1), (0, note.targets[0])):
        temporary, path = _temporary(note, number), Path(target)
        if os.path.lexists(temporary):
            make_folders(path.parent)
            publish(temporary, path, replace=note.replaces)


def _clean(note: Unfinished, *, is_made: bool) -> None:
    """Take the names away that files had until then; and those they got, where they are not made."""
    for number, target in enumerate(note.targets):
        temporary = _temporary(note, number)
        if not is_made and is_same(temporary, Path(target)):
            _remove(Path(target))
        _remove(temporary)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _temporary(note: Unfinished, number: int) -> Path:
    return Path(note.folder, f".recap-{note.id}-{number}")
