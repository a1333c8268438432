"""Documents that were cut off: the whole elements that one of their arrays still holds."""

from __future__ import annotations

import re

from recap.transcript.spans import MAX_DEPTH, Span

# An unterminated string reaches to the end, so that no byte is looked at twice.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[{}\[\]]', re.DOTALL)


def whole_elements(data: bytes, key: str) -> list[Span]:
    """Return the spans of the whole objects and arrays in the array under a top-level ``key``.

    ``data`` begins with an object, and may end anywhere; time is linear in its length.
    """
    wanted = b'"' + key.encode() + b'"'
    spans: list[Span] = []
    depth = begin = 0
    name = b""
    is_inside = False
    for token in _TOKEN.finditer(data):
        char = data[token.start()]
        if depth == 1 and char in b'"':
            name = token.group()
        elif char in b"[{":
            depth += 1
            is_inside = is_inside or (depth == 2 and char in b"[" and name == wanted)
            begin = token.start() if depth == 3 else begin
        elif char in b"]}":
            if depth == 3 and is_inside:
                spans.append((begin, token.end()))
            depth -= 1
            is_inside = is_inside and depth > 1
        if depth > MAX_DEPTH:
            break
    return spans
