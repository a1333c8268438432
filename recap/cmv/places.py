"""Where a member of a line stands, found at first sight.

What is found is right for every line that a client writes, and proved before it is written. Where
it is not certain, nothing is found, and an exact scan answers.
"""

from __future__ import annotations

_HEAD = 48
_NOWHERE = -1, -1


class Finder:
    """Looks for members as a file spells them: compact, or with a space after colon and comma."""

    __slots__ = ("_colon", "_comma")

    def __init__(self) -> None:
        self._comma, self._colon = _COMPACT

    def member(self, data: bytes, key: bytes, value: bytes) -> tuple[int, int]:
        """Return where a member with the comma before it stands; the last that looks like it.

        (-1, -1) when there is none: it is the first of its object, or spelled in an unusual way.
        """
        for _ in _SPELLINGS:
            opening = self._comma + key + self._colon
            start = data.rfind(opening + value[:_HEAD])
            if start >= 0:
                return start, start + len(opening) + len(value)
            self._turn()
        return _NOWHERE

    def value(self, data: bytes, key: bytes, value: bytes) -> tuple[int, int]:
        """Return where the value of a member stands; the first that looks like it."""
        for _ in _SPELLINGS:
            opening = b'"' + key + self._colon
            start = data.find(opening + value[:_HEAD])
            if start >= 0:
                return start + len(opening), start + len(opening) + len(value)
            self._turn()
        return _NOWHERE

    def _turn(self) -> None:
        """Try the other spelling, and stay with it."""
        is_compact = self._colon == _COMPACT[1]
        self._comma, self._colon = _SPACED if is_compact else _COMPACT


_COMPACT = b',"', b'":'
_SPACED = b', "', b'": '
_SPELLINGS = _COMPACT, _SPACED
_SPACE = b" \t\r\n"


def back(data: bytes, at: int) -> int:
    """Return the last place before ``at`` that holds no white space."""
    at -= 1
    while at > 0 and data[at] in _SPACE:
        at -= 1
    return at


def forth(data: bytes, at: int) -> int:
    """Return the first place from ``at`` on that holds no white space."""
    while at < len(data) and data[at] in _SPACE:
        at += 1
    return at
