"""Parents in a Claude Code log: who each line's parent is once copies are told apart and gaps closed.

The rules are the client's: of several lines with one uuid the last one counts, and where a parent is
missing the line before is taken for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

from recap.transcript.claude_lines import KINDS
from recap.transcript.model import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from recap.transcript.repair.rows import Row

ROOT, UNSTATED = -1, -2
"""Parents that are no row: there is none, the line does not say."""

LINKS = ("user", "assistant", "system")
"""Kinds of lines that a line without its parent can follow."""


class Names:
    """Which row each uuid means, where several rows carry it.

    Attributes:
        twin: Row that repeats another -> that one. Of equal rows the first that stands behind its
            parent is kept, else the last; the others are taken out.
        renamed: Row -> its new uuid. Of different rows with one uuid the last keeps it: that is the
            one the client takes, and what comes later in the file means it.
    """

    def __init__(self, rows: Sequence[Row], is_same: Callable[[Row, Row], bool]) -> None:
        self.twin: dict[int, int] = {}
        self.renamed: dict[int, str] = {}
        self._rows = rows
        self._places: dict[str, list[int]] = defaultdict(list)
        for at, row in enumerate(rows):
            if row.uuid:
                self._places[row.uuid].append(at)
        for places in list(self._places.values()):
            if len(places) > 1:
                self._tell_apart(places, is_same)

    def of(self, at: int) -> str:
        """Return a row's uuid after the repair."""
        return self.renamed.get(at, self._rows[at].uuid)

    def find(self, uuid: str, at: int) -> int | None:
        """Return the row that a reference in row ``at`` means; None if there is none.

        That is the last one before it or, where there is none before, the first one after it.
        """
        places = self._places.get(uuid, [])
        place = bisect_left(places, at)
        others = [*places[max(place - 1, 0) : place], *(p for p in places[place:] if p != at)]
        return self.twin.get(others[0], others[0]) if others else None

    def _tell_apart(self, places: Sequence[int], is_same: Callable[[Row, Row], bool]) -> None:
        groups: list[list[int]] = []  # of equal rows, that of the last row first
        for at in reversed(places):
            equal = (group for group in groups if is_same(self._rows[group[0]], self._rows[at]))
            group = next(equal, None)
            if group is None:
                groups.append([at])
            else:
                group.insert(0, at)
        for number, group in enumerate(groups):
            kept = next((at for at in group if self._follows(at)), group[-1])
            self.twin.update({at: kept for at in group if at != kept})
            if number:
                self.renamed[kept] = self._fresh(self._rows[kept].uuid, number)

    def _follows(self, at: int) -> bool:
        """Return True when a row's parent stands before it, or it has none."""
        parent = self._rows[at].parent
        return parent is None or any(place < at for place in self._places.get(parent, ())[:1])

    def _fresh(self, uuid: str, number: int) -> str:
        """Return a uuid that no line has, the same in every run."""
        while True:
            name = digest("repair", uuid, str(number)).hex()
            fresh = "-".join((name[:8], name[8:12], name[12:16], name[16:20], name[20:]))
            if fresh not in self._places:
                return fresh
            number += 1


class Parents:
    """The parent of every row once the repair is made.

    Attributes:
        gaps: Rows whose parent is not in the file.
    """

    def __init__(self, rows: Sequence[Row], names: Names, dropped: Set[int]) -> None:
        self.gaps: set[int] = set()
        self._rows = rows
        self._names = names
        self._dropped = dropped
        self._above = [self._stated(at, row) for at, row in enumerate(rows)]
        self._close_gaps()

    def of(self, at: int) -> int:
        """Return the row that a row follows, none that is taken out; or ROOT, or UNSTATED."""
        return self.kept(self._above[at])

    def kept(self, at: int) -> int:
        """Return a row itself if it is kept, else the first kept one above it."""
        seen: set[int] = set()
        while at in self._dropped and at not in seen:
            seen.add(at)
            at = self._above[at]
        return ROOT if at in seen or (at < 0 and seen) else at

    def _stated(self, at: int, row: Row) -> int:
        if row.parent is None:
            return ROOT
        found = self._names.find(row.parent, at) if row.parent else None
        if found is not None and found != at:
            return found
        if row.parent and row.type in KINDS:
            self.gaps.add(at)
        return UNSTATED

    def _close_gaps(self) -> None:
        """Give rows without their parent the line before, unless that one descends from them."""
        tops = _Tops(self._above)
        last: dict[str, int] = {}
        for at, row in enumerate(self._rows):
            if at in self.gaps:
                before = last.get(row.lane, ROOT)
                self._above[at] = ROOT if before >= 0 and tops.of(before) == at else before
            kept = self._names.twin.get(at, at)
            if row.type in LINKS and row.uuid and kept <= at:
                last[row.lane] = kept


class _Tops:
    """The topmost row above each row, found again in next to no time as parents are added."""

    def __init__(self, above: Sequence[int]) -> None:
        self._above = above
        self._known: dict[int, int] = {}

    def of(self, at: int) -> int:
        path = []
        seen: set[int] = set()
        while at not in seen:
            seen.add(at)
            path.append(at)
            following = self._known.get(at, at)
            following = following if following != at else self._above[at]
            if following < 0:
                break
            at = following
        self._known.update(dict.fromkeys(path, at))
        return at


def moved(
    rows: Sequence[Row], names: Names, parents: Parents, dropped: Set[int]
) -> Mapping[int, str | None]:
    """Return the kept rows whose parent changes, with its uuid; None for none."""
    changes: dict[int, str | None] = {}
    for at, row in enumerate(rows):
        if at in dropped or not row.parent:
            continue
        above = parents.of(at)
        if above == UNSTATED:
            continue
        uuid = names.of(above) if above >= 0 else None
        if uuid != row.parent:
            changes[at] = uuid
    return changes
