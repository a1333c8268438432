"""Whether a value is plain JSON, and how many bytes it takes: one pass, no recursion, no large copy.

A request with a lone surrogate, a NaN or a Python object in it cannot be written as JSON at all, so
this comes before every other rule.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from recap.transcript.model import Json, strings

if TYPE_CHECKING:
    from collections.abc import Sequence

CHUNK = 1 << 16
"""Characters looked at together: bounds the memory a long text takes."""

SHORT = 1 << 12
BATCH = 1 << 10
"""Texts of up to ``SHORT`` characters are looked at together, ``BATCH`` or so at a time."""

ESCAPED = ("\n", '"', "\\", "\t", "\r")
"""Characters JSON writes with two bytes; rarer control characters take six and are not counted."""


def measure(value: Json) -> tuple[int, bool]:
    """Return (bytes of the compact JSON without escapes, whether it can be written as strict JSON).

    The bytes are those of UTF-8; floats count as Python spells them, what is no JSON as nothing.
    """
    size, is_json = 0, True
    stack, short = [value], list[Json]()
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if len(item) <= SHORT:
                short.append(item)
                continue
            length, is_clean = _long(item)
        elif isinstance(item, dict):
            length, is_clean = 2 * len(item) + (1 if item else 2), True
            short.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            length, is_clean = 1 + max(1, len(item)), True
            stack.extend(item)
        else:
            length, is_clean = _scalar(item)
        if len(short) > BATCH:
            more, is_whole = _short(short)
            length, is_clean = length + more, is_clean and is_whole
            short.clear()
        size, is_json = size + length, is_json and is_clean
    length, is_clean = _short(short)
    return size + length, is_json and is_clean


def escapes(value: Json) -> int:
    """Return how many bytes escaping adds to the texts of a value; object keys are left out."""
    return sum(text.count(character) for text in strings(value) for character in ESCAPED)


def _short(texts: Sequence[Json]) -> tuple[int, bool]:
    """Return (bytes of the JSON strings, whether all are strings free of lone surrogates)."""
    try:
        joined, are_strings = "".join(texts), True
    except TypeError:  # object keys of another type
        joined, are_strings = "".join(text for text in texts if isinstance(text, str)), False
    length, is_clean = _encoded(joined)
    return 2 * len(texts) + length, are_strings and is_clean


def _long(text: str) -> tuple[int, bool]:
    if text.isascii():
        return 2 + len(text), True
    pieces = [_encoded(text[at : at + CHUNK]) for at in range(0, len(text), CHUNK)]
    return 2 + sum(length for length, _ in pieces), all(is_clean for _, is_clean in pieces)


def _encoded(text: str) -> tuple[int, bool]:
    if text.isascii():
        return len(text), True
    try:
        return len(text.encode()), True
    except UnicodeEncodeError:
        return len(text.encode("utf-8", "surrogatepass")), False


def _scalar(value: Json) -> tuple[int, bool]:
    if value is None or value is True:
        return 4, True
    if value is False:
        return 5, True
    if isinstance(value, int):
        return 1 + value.bit_length() * 3 // 10, True
    if isinstance(value, float):
        return len(repr(value)), math.isfinite(value)
    return 0, False
