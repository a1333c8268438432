"""Slices of a JSON text, found without recap: the exact text of each element of a list in it."""

from __future__ import annotations

import json
import re

_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"\s*")
_GAP = re.compile(r"\s*[:,]?\s*")


def elements(text: str) -> list[str]:
    """Return the text of each element of an array."""
    return _values(text)


def members(text: str) -> dict[str, str]:
    """Return the text of each member of an object, by its key."""
    values = iter(_values(text))
    return {json.loads(key): value for key, value in zip(values, values, strict=True)}


def _values(text: str) -> list[str]:
    """Return the texts of the values that an array or object holds, keys among them."""
    at = _end(_SPACE, text, 1)
    found = []
    while text[at] not in "]}":
        _, end = _DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = _end(_GAP, text, end)
    return found


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
