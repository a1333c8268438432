"""Where a member of a line stands, found at first sight.

What is found is right for every line that a client writes, and proved before it is written. Where
it is not certain, nothing is found, and an exact scan answers.
"""

from __future__ import annotations

_NOWHERE = -1, -1
_KEYS = (b"usage", b"toolUseResult")
_RESULT = b'"tool_result"'


class Finder:
    """Looks for members as a file spells them: compact, or with a space after colon and comma."""

    __slots__ = ("_members", "_other", "_value")

    def __init__(self) -> None:
        (self._members, self._value), self._other = _COMPACT, _SPACED

    def member(self, data: bytes, key: bytes, size: int) -> tuple[int, int]:
        """Return where a member with the comma before it stands; the last that looks like it.

        (-1, -1) when there is none: it is the first of its object, or spelled in an unusual way.

        Args:
            data: The line.
            key: ``usage`` or ``toolUseResult``.
            size: Bytes of its value.
        """
        for _ in range(2):
            opening = self._members[key]
            start = data.rfind(opening)
            if start >= 0:
                return start, start + len(opening) + size
            self._turn()
        return _NOWHERE

    def content(self, data: bytes, size: int) -> tuple[int, int]:
        """Return where the content of a result stands whose type is stated before it."""
        type_at = data.find(_RESULT)
        for _ in range(2 * (type_at >= 0)):
            start = data.find(self._value, type_at)
            if start >= 0:
                start += len(self._value)
                return start, start + size
            self._turn()
        return _NOWHERE

    def _turn(self) -> None:
        """Try the other spelling, and stay with it."""
        held = self._members, self._value
        (self._members, self._value), self._other = self._other, held


def _spelling(comma: bytes, colon: bytes) -> tuple[dict[bytes, bytes], bytes]:
    return {key: comma + key + colon for key in _KEYS}, b'"content' + colon


_COMPACT = _spelling(b',"', b'":')
_SPACED = _spelling(b', "', b'": ')
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
