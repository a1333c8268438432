"""Where a transcript is cut: at line ends that its own bytes choose, so that copies share pieces."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEAST, MOST = 16 << 10, 256 << 10
"""Bytes of a piece; above, only where a single line is longer."""

LONGEST = 4 << 20
"""Bytes of a piece of one line; a longer line is cut there, counted from its beginning."""

_ONE_IN = 16  # lines of enough bytes that end a piece


def cut(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes in pieces, the same ones whatever the chunks; at least one, perhaps empty.

    A piece ends after a line whose checksum says so: what stands before it does not matter, so two
    transcripts that grow apart share the pieces before, and those that grow together again, after.
    """
    piece = bytearray()
    count = 0
    for line in _lines(chunks):
        piece += line
        is_end = zlib.crc32(line) % _ONE_IN == 0 or len(piece) >= MOST
        if len(piece) >= LEAST and is_end:
            yield bytes(piece)
            piece.clear()
            count += 1
    if piece or not count:
        yield bytes(piece)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines with their ends, and long ones in parts."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield from _parts(line + b"\n")
        while len(rest) > LONGEST:
            yield rest[:LONGEST]
            rest = rest[LONGEST:]
    if rest:
        yield rest


def _parts(line: bytes) -> Iterator[bytes]:
    for start in range(0, len(line), LONGEST):
        yield line[start : start + LONGEST]
