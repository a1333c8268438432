"""A seeded mutator of sessions: bytes, lines, tokens, hostile pieces, and JSON values.

The same format, number and seeds give the same input, so a failure is repeated by its number alone.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_BYTES = 1 << 17

HOSTILE = (
    b"\0", b"\0" * 300, b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\x1b[31m", b"\r",
    b"\n", b"\n\n", b"\xe2\x80\xa8", b"\x01", rb"\ud83d", rb"\udc00\ud83d", rb"\u0000", rb"\u",
    b'"', b"\\", b"'", b"{", b"}", b"[", b"]", b",", b":", b"]}", b"{}", b"null", b"NaN",
    b"-Infinity", b"1e999", b"-0", b"9" * 400, b"9" * 5000, b"0.1e-400", b'{"type":' * 60,
    b'{"parentUuid":' * 30, b"[" * 2000, b'{"a":' * 1500, b"[" * 450 + b"]" * 450, b"{" * 90,
    b'<tool_use id="', b"</tool_use>", b'<tool_result id="', b"</tool_result>", b"#### ", b"> ",
    b"# aider chat started at 2026-01-02 03:04:05\n", b"<system-reminder>", b"[recap: ",
    b"data:image/png;base64,", b"\\\\\\\"", b" " * 2000, b"``",
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 7, 10**30, 1.5, float("nan"), float("inf"), "", " ", "\n", "x", "{}",
    "[", '{"a": 1}', "\ud83d", "\udc00a", "é" * 40, "naïveté_unbroken", [], {}, [[]], [None], [{}],
    ["bare words"], {"type": "text"}, {"type": "text", "text": "unmistakable"}, {"type": None},
    {"type": "image"}, {"role": "user"}, {"text": 5}, {"content": None}, {"": ""}, "user", "tool",
    "assistant", "system", "tool_use", "tool_result", "error", "completed", "compaction", "c1",
)  # fmt: skip

KEYS = (
    "type", "role", "content", "text", "id", "name", "input", "output", "parts", "info", "data",
    "payload", "message", "messages", "parentUuid", "uuid", "tool_use_id", "tool_calls", "state",
    "result", "arguments", "call_id", "history", "summary", "thinking", "source", "action", "",
)  # fmt: skip

Slot: TypeAlias = "tuple[Any, Any]"
"""A container and the key or index of one of its values."""

_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|\d+|\w+|[{}\[\],:]|[^\w\s]+')


def mutant(format: str, number: int, seeds: Mapping[str, Sequence[bytes]]) -> bytes:
    """Return an input made of a seed of the format, and sometimes of another one's."""
    rng = Random(f"{format}:{number}")
    data = rng.choice(seeds[format])
    other = rng.choice(seeds[rng.choice(sorted(seeds))] if rng.random() < 0.3 else seeds[format])
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5, 9))):
        data = rng.choice(MUTATIONS)(rng, data, other)[:MAX_BYTES]
    return data


def _span(rng: Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + int(2 ** rng.uniform(0, 10)))


def _flip(rng: Random, data: bytes, _: bytes) -> bytes:
    changed = bytearray(data)
    for _bit in range(rng.choice((1, 1, 4, 20)) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[at:] if rng.random() < 0.2 else data[:at]


def _remove(rng: Random, data: bytes, _: bytes) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def _repeat(rng: Random, data: bytes, _: bytes) -> bytes:
    start, end = _span(rng, data)
    return data[:end] + data[start:end] * rng.choice((1, 1, 2, 30)) + data[end:]


def _splice(rng: Random, data: bytes, other: bytes) -> bytes:
    start, end = _span(rng, other)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[start:end] + data[at + rng.choice((0, end - start)) :]


def _lines(rng: Random, data: bytes, other: bytes) -> bytes:
    lines, others = data.split(b"\n"), other.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(6)
    if kind == 0:
        lines[a], lines[b] = lines[b], lines[a]
    elif kind == 1:
        lines.insert(b, lines[a])
    elif kind == 2:
        del lines[a]
    elif kind == 3:
        lines.insert(a, rng.choice(others))
    elif kind == 4:
        lines[a : a + 2] = [b"".join(lines[a : a + 2])]
    else:
        rng.shuffle(lines)
    return b"\n".join(lines)


def _token(rng: Random, data: bytes, other: bytes) -> bytes:
    old = _TOKEN.search(data, rng.randrange(len(data) + 1))
    new = _TOKEN.search(other, rng.randrange(len(other) + 1))
    if not old or not new:
        return data
    return data[: old.start()] + new.group() + data[old.end() :]


def _hostile(rng: Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    if rng.random() < 0.5:  # inside a string
        at = data.find(b'"', at) + 1
    return data[:at] + rng.choice(HOSTILE) + data[at:]


def _json(rng: Random, data: bytes, other: bytes) -> bytes:
    """Change values of the document, or of one of its lines."""
    lines = [data] if rng.random() < 0.5 else data.split(b"\n")
    at = rng.randrange(len(lines))
    try:
        root = [json.loads(lines[at])]
    except (ValueError, RecursionError):
        return _hostile(rng, data, other)
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change(rng, root)
    try:
        text = json.dumps(
            root[0], ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, None, 1))
        )
    except RecursionError:
        return data
    text = text if len(lines) == 1 else text.replace("\n", " ")
    lines[at] = text.encode("utf-8", "surrogatepass")
    return b"\n".join(lines)


def _slots(root: list[Any]) -> list[Slot]:
    found: list[Slot] = []
    waiting: list[Any] = [root]
    while waiting:
        holder = waiting.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    return found


def _change(rng: Random, root: list[Any]) -> None:
    slots = _slots(root)
    holder, key = rng.choice(slots)
    value = holder[key]
    donor, place = rng.choice(slots)
    kind = rng.randrange(8)
    if kind <= 2:
        holder[key] = json.loads(json.dumps(rng.choice(VALUES)))
    elif kind == 3 and holder is not root:
        del holder[key]
    elif kind == 4 and isinstance(holder, dict):
        holder[rng.choice((*KEYS, place if isinstance(place, str) else "type"))] = holder.pop(key)
    elif kind == 5 and isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1) if holder is not root else 1, value)
    elif kind == 6:
        holder[key] = json.loads(json.dumps(donor[place]))
    else:
        holder[key] = _wrapped(rng, value)


def _wrapped(rng: Random, value: Any) -> Any:
    if isinstance(value, str) and rng.random() < 0.5:
        piece = rng.choice(HOSTILE).decode("utf-8", "replace")
        return rng.choice((value + piece, piece + value, value * 40, json.dumps(value)))
    if rng.random() < 0.2:
        for _ in range(rng.choice((50, 399, 450))):
            value = [value]
        return value
    return rng.choice(([value], {"text": value}, [value, value], {"type": "text", "text": value}))


Mutation: TypeAlias = "Callable[[Random, bytes, bytes], bytes]"
MUTATIONS: tuple[Mutation, ...] = (
    _flip, _cut, _remove, _repeat, _splice, _lines, _lines, _token, _token, _hostile, _hostile,
    _json, _json, _json, _json, _json, _json,
)  # fmt: skip
