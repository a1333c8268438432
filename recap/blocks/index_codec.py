"""Indices of a table <-> bytes: a cache that any process may take up, and anyone rebuild.

Layout, little endian: magic, version, CRC-32 of the rest, size of the body; the body, deflated: the
number of blocks, their fingerprints, and two indices, of identifiers and of lines. An index: entries,
distances that take more than a byte, bytes of its names; terms of each block, ascending and as
distances from one to the next, one byte each and four more where that is not enough; bits of what the
agent wrote; names as JSON. Counts are made anew.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from recap.blocks.fingerprints import Fingerprints, fingerprints
from recap.blocks.table import counted_index
from recap.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from recap.blocks.table import BlockTable, Int32Array, TermIndex

MAGIC = b"RCPI"
VERSION = 2

LEVEL = 1
"""Of deflate. Against level 6 a tenth more bytes in less than half the time; see bench/session."""

MOST_RATIO = 16
"""Bytes that a byte may inflate to: real sessions have 3; what packs better is stored as it is."""

_HEAD = struct.Struct("<4sBII")
_BLOCKS = struct.Struct("<I")
_COUNTS = struct.Struct("<III")
_ESCAPE = 255
_REFUSAL = "not a term index this release can read: {}; it is built anew from the messages"
_names = msgspec.json.Decoder(list[str])


@dataclass(frozen=True, slots=True, eq=False)
class CachedIndex:
    """What was read of blocks before: trusted for its content, which only their texts could prove.

    Attributes:
        fingerprints: uint64 ``[blocks]``: what each block held when it was read.
        index: Identifiers of the blocks.
        lines: Their lines.
    """

    fingerprints: Fingerprints
    index: TermIndex
    lines: TermIndex


def encode_index(table: BlockTable) -> bytes:
    """Return the indices of a table's blocks as bytes: about 300 a block of a coding session."""
    body = b"".join((
        _BLOCKS.pack(len(table)),
        fingerprints(table.messages, table.blocks).astype("<u8").tobytes(),
        _index_bytes(table.index),
        _index_bytes(table.lines),
    ))  # fmt: skip
    packed = zlib.compress(body, LEVEL)
    if len(packed) * MOST_RATIO < len(body):
        packed = zlib.compress(body, 0)
    return _HEAD.pack(MAGIC, VERSION, zlib.crc32(packed), len(body)) + packed


def _index_bytes(index: TermIndex) -> bytes:
    distance = np.diff(index.terms, prepend=0).astype(np.uint32)
    is_first = _is_first(index.starts, len(distance))
    distance[is_first] = index.terms[is_first]
    is_far = distance >= _ESCAPE
    names = msgspec.json.encode(list(islice(index.vocabulary, index.size)))
    return b"".join((
        _COUNTS.pack(len(distance), int(is_far.sum()), len(names)),
        np.diff(index.starts).astype("<u4").tobytes(),
        np.minimum(distance, _ESCAPE).astype(np.uint8).tobytes(),
        distance[is_far].astype("<u4").tobytes(),
        np.packbits(index.wrote).tobytes(),
        names,
    ))  # fmt: skip


def decode_index(data: bytes) -> CachedIndex:
    """Return the indices that ``encode_index`` wrote, for ``build_table``.

    Bytes from anyone are safe to pass: memory stays within a multiple of their length, and every
    number is one that an index may hold. Content is not proved: names that are not the block's
    lead to a worse selection, never to a failure.

    Raises:
        InputError: Not such bytes, another version, damaged, or no consistent index; without the
            cache the table is built from the messages.
    """
    body = _Body(_checked_body(data))
    (blocks,) = _BLOCKS.unpack(body.take(_BLOCKS.size))
    prints = body.column("<u8", blocks).astype(np.uint64)
    index, lines = _read_index(body, blocks), _read_index(body, blocks)
    _demand(body.at == len(body.data), "they go on after their end")
    return CachedIndex(prints, index, lines)


class _Body:
    """Bytes that are read from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        _demand(self.at + size <= len(self.data), "they end too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def column(self, dtype: str, count: int) -> npt.NDArray[np.generic]:
        """Return the next numbers."""
        return np.frombuffer(self.take(np.dtype(dtype).itemsize * count), dtype)


def _read_index(body: _Body, blocks: int) -> TermIndex:
    entries, far, size = _COUNTS.unpack(body.take(_COUNTS.size))
    lengths, near = body.column("<u4", blocks), body.column("u1", entries)
    distances, bits = body.column("<u4", far), body.column("u1", -(-entries // 8))
    names = _decoded_names(body.take(size))
    starts = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    _demand(starts[-1] == entries, "rows and entries do not add up")
    _demand(np.count_nonzero(near == _ESCAPE) == far, "distances do not add up")
    vocabulary = {name: number for number, name in enumerate(names)}
    _demand(len(vocabulary) == len(names), "a term stands twice")
    terms = _terms(near, distances, starts, len(names))
    wrote = np.unpackbits(bits.astype(np.uint8), count=entries).astype(np.bool_)
    return counted_index(vocabulary, len(names), starts, terms, wrote)


def _terms(
    near: npt.NDArray[np.generic],
    far: npt.NDArray[np.generic],
    starts: npt.NDArray[np.int64],
    names: int,
) -> Int32Array:
    """Return the terms of the entries: ascending in a row, numbered as they first occur."""
    distance = near.astype(np.int64)
    distance[near == _ESCAPE] = far
    is_first = _is_first(starts, len(near))
    _demand((distance[~is_first] > 0).all(), "terms of a block out of order")
    total = np.cumsum(distance)
    before = np.concatenate(([0], total))[starts[:-1]]
    terms = total - np.repeat(before, np.diff(starts))
    highest = np.maximum.accumulate(np.concatenate(([-1], terms)))
    is_numbered = (np.diff(highest) <= 1).all() and highest[-1] == names - 1
    _demand(is_numbered, "terms are not numbered as they occur")
    rows: Int32Array = terms.astype(np.int32)
    return rows


def _is_first(starts: npt.NDArray[np.int64], entries: int) -> npt.NDArray[np.bool_]:
    """Return which entries begin a row."""
    is_first = np.zeros(entries + 1, np.bool_)
    is_first[starts[:-1]] = True  # an empty row marks the next one's beginning, or the end
    return is_first[:entries]


def _checked_body(data: bytes) -> bytes:
    _demand(isinstance(data, bytes), "no bytes at all")  # from callers without types
    _demand(data[: len(MAGIC)] == MAGIC and len(data) >= _HEAD.size, "they begin otherwise")
    _, version, checksum, size = _HEAD.unpack_from(data)
    _demand(version == VERSION, f"version {version}, this release reads version {VERSION}")
    packed = data[_HEAD.size :]
    _demand(zlib.crc32(packed) == checksum, "the checksum differs")
    _demand(size <= MOST_RATIO * len(packed), "the size cannot be")
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(packed, size + 1)
    except zlib.error as err:
        raise InputError(_REFUSAL.format("the body is damaged")) from err
    is_whole = len(body) == size and inflater.eof and not inflater.unused_data
    _demand(is_whole, "the body has another size")
    return body


def _decoded_names(data: bytes) -> list[str]:
    try:
        return _names.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise InputError(_REFUSAL.format("the names are damaged")) from err


def _demand(claim: bool | np.bool_, otherwise: str) -> None:
    if not claim:
        raise InputError(_REFUSAL.format(otherwise))
