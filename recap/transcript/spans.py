"""Where JSON values lie inside bytes: exact spans of members and elements.

Pure functions on bytes. msgspec does the work where it accepts the bytes; where it refuses them
(lone surrogates, NaN, bad UTF-8, control characters in strings) a tolerant scanner answers.
All of them take time linear in the input, whatever it holds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

Span = tuple[int, int]
"""``[start, end)`` in bytes."""

# An unterminated string reaches to the end, so that no byte is looked at twice.
_STRING = rb'"(?:[^"\\]++|\\.?)*+(?:"|\Z)'
_TOKEN = re.compile(_STRING + rb"|[{}\[\],:]", re.DOTALL)

_objects = msgspec.json.Decoder(dict[str, msgspec.Raw])
_arrays = msgspec.json.Decoder(list[msgspec.Raw])
_PREFIX = 64

MAX_DEPTH = 400
"""Deepest nesting read. Python's own limit depends on the caller's stack; this one does not."""


def member_spans(data: bytes) -> dict[str, Span]:
    """Return the spans of an object's values by key, the last one where a key repeats.

    Raises ValueError when ``data`` is no JSON object.
    """
    try:
        values = _objects.decode(data)
    except msgspec.ValidationError as err:
        raise ValueError("no JSON object") from err
    except (msgspec.DecodeError, RecursionError):
        return _scanned_members(data)
    spans = _located(data, values.values())
    # A repeated key stands where it came first but holds what came last: it may not be found.
    return dict(zip(values, spans, strict=True)) if spans else _scanned_members(data)


def element_spans(data: bytes) -> list[Span]:
    """Return the spans of an array's elements. Raises ValueError when ``data`` is no JSON array."""
    try:
        values = _arrays.decode(data)
    except msgspec.ValidationError as err:
        raise ValueError("no JSON array") from err
    except (msgspec.DecodeError, RecursionError):
        return _pieces(data, b"[")
    return _located(data, values)


def _located(data: bytes, values: Iterable[msgspec.Raw]) -> list[Span]:
    """Return where the values stand one after another; nothing when one is not found."""
    spans = []
    end = 0
    for value in values:
        start = locate(data, value, end)
        if start < 0:
            return []
        end = start + memoryview(value).nbytes
        spans.append((start, end))
    return spans


def locate(data: bytes, value: msgspec.Raw, start: int) -> int:
    """Return where the bytes of ``value`` stand in ``data`` at or after ``start``; -1 if nowhere.

    Equal bytes further ahead are as good as the value's own.
    """
    view = memoryview(value)
    if view.nbytes <= _PREFIX:
        return data.find(view, start)
    at = data.find(view[:_PREFIX], start)
    return at if at < 0 or data.startswith(view, at) else data.find(view, at + 1)


def _scanned_members(data: bytes) -> dict[str, Span]:
    pieces = _pieces(data, b"{")
    if len(pieces) % 2:
        raise ValueError("no JSON object")
    keys = (data[start:end].decode("utf-8", "replace") for start, end in pieces[::2])
    return {_key(key): span for key, span in zip(keys, pieces[1::2], strict=True)}


def member_places(data: bytes) -> dict[str, tuple[Span, Span]]:
    """Return where the key and the value of each member of an object stand, exactly.

    The last one where a key repeats. Slower than ``member_spans``, and right even where the bytes of a
    value stand further ahead too: for those who edit. Raises ValueError when ``data`` is no object.
    """
    pieces = _pieces(data, b"{")
    if len(pieces) % 2:
        raise ValueError("no JSON object")
    keys = (data[start:end].decode("utf-8", "replace") for start, end in pieces[::2])
    return dict(zip(map(_key, keys), zip(pieces[::2], pieces[1::2], strict=True), strict=True))


def element_places(data: bytes) -> list[Span]:
    """Return where the elements of an array stand, exactly; see ``member_places``."""
    return _pieces(data, b"[")


def _key(text: str) -> str:
    try:
        value = msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return text.strip('"')
    return value if isinstance(value, str) else text


def _pieces(data: bytes, opening: bytes) -> list[Span]:
    """Return the spans between the separators one level deep, white space stripped."""
    depth = begin = 0
    pieces = []
    for token in _TOKEN.finditer(data):
        start, char = token.start(), data[token.start()]
        if depth == 0 and data[: start + 1].strip() != opening:
            break
        if char in b"[{":
            depth += 1
            begin = token.end() if depth == 1 else begin
        elif char in b"]}":
            depth -= 1
        if depth > MAX_DEPTH:
            break
        if (depth == 1 and char in b",:") or depth == 0:
            pieces.append(_stripped(data, begin, start))
            begin = token.end()
        if depth == 0:
            return [span for span in pieces if span[0] < span[1]]
    raise ValueError("no JSON array" if opening == b"[" else "no JSON object")


def _stripped(data: bytes, start: int, end: int) -> Span:
    piece = data[start:end]
    start += len(piece) - len(piece.lstrip())
    return start, start + len(piece.strip())


def strict_twin(data: bytes) -> bytes:
    """Return bytes of equal length in which what strict JSON forbids is replaced by neutral bytes.

    Lone surrogates, NaN, infinities, bad UTF-8 and control characters go; so every span of the twin
    is a span of the original, and keys, types and ids can be read from it.
    """
    plain = data.translate(_PRINTABLE)
    if b"\\u" in plain or b"NaN" in plain or b"Infinity" in plain:
        return _LOOSE.sub(_neutral, plain)
    return plain


def _neutral(match: re.Match[bytes]) -> bytes:
    text = match.group()
    if text.startswith(b'"'):
        return _ESCAPE.sub(_without_lone_surrogate, text) if b"\\u" in text else text
    return b"0" + b" " * (len(text) - 1)


def _without_lone_surrogate(match: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if match["lone"] else match.group()


# What is white space between values may stand for itself in a string; nothing else may stand
# between values.
_PRINTABLE = bytes(
    32 if byte in b"\t\r\n" else byte if byte == 0 or 32 <= byte < 128 else 63
    for byte in range(256)
)
_LOOSE = re.compile(_STRING + rb"|(?<![-\w.])NaN|(?<![\w.])Infinity", re.DOTALL)
_HEX = rb"[0-9a-fA-F]"
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB]" + _HEX + rb"{2}\\u[dD][c-fC-F]" + _HEX + rb"{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F]" + _HEX + rb"{2})|\\.",
    re.DOTALL,
)  # fmt: skip


def is_deep(data: bytes) -> bool:
    """Return True when a value is nested deeper than ``MAX_DEPTH``."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    for token in _BRACKET.finditer(data):
        char = data[token.start()]
        depth += (char in b"[{") - (char in b"]}")
        if depth > MAX_DEPTH:
            return True
    return False


_BRACKET = re.compile(_STRING + rb"|[{}\[\]]", re.DOTALL)


def leading_objects(data: bytes) -> list[Span]:
    """Return the spans of the whole objects that stand one after another from the start."""
    return _whole_objects(data, _BRACKET, b"{[", b"}]")


def trailing_objects(data: bytes) -> list[Span]:
    """Return the spans of the whole objects that stand one after another up to the end.

    The scan runs backwards: seen from the end, a record is whole even where the one before it was
    cut inside a string, and each byte is looked at once.
    """
    size = len(data)
    spans = _whole_objects(data[::-1], _BACKWARD_BRACKET, b"}]", b"{[")
    return [(size - end, size - start) for start, end in reversed(spans)]


# Backwards, an escaped quote is one followed by an odd number of backslashes.
_BACKWARD_BRACKET = re.compile(
    rb'"(?:[^"]++|"\\(?:\\\\)*+(?!\\))*+(?:"|\Z)|[{}\[\]]', re.DOTALL
)  # fmt: skip
_BETWEEN = b" \t\r\n\0"


def _whole_objects(
    data: bytes, tokens: re.Pattern[bytes], opening: bytes, closing: bytes
) -> list[Span]:
    spans: list[Span] = []
    depth = begin = end = 0
    for token in tokens.finditer(data):
        char = data[token.start()]
        if depth == 0:
            begin = token.start()
            if char != opening[0] or data[end:begin].strip(_BETWEEN):
                break
        depth += (char in opening) - (char in closing)
        if depth > MAX_DEPTH:
            break
        if depth == 0:
            end = token.end()
            spans.append((begin, end))
    return spans
