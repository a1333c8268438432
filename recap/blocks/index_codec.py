"""Identifier index of a table <-> bytes: a cache that any process may take up, and anyone rebuild.

Layout, little endian: magic, version, CRC-32 of the rest, size of the body; the body, deflated: blocks,
entries; fingerprints; identifiers of each block, ascending and as distances from one to the next, one
byte each and four more where that is not enough; bits of what the agent wrote; names as JSON. Counts
are made anew.
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

    from recap.blocks.table import BlockTable, IdentifierIndex, Int32Array

MAGIC = b"RCPI"
VERSION = 1

LEVEL = 1
"""Of deflate. Against level 6 a tenth more bytes in less than half the time; see bench/session."""

MOST_RATIO = 16
"""Bytes that a byte may inflate to: real sessions have 3; what packs better is stored as it is."""

_HEAD = struct.Struct("<4sBII")
_COUNTS = struct.Struct("<III")
_ESCAPE = 255
_REFUSAL = "not an identifier index this release can read: {}; it is built anew from the messages"
_names = msgspec.json.Decoder(list[str])


@dataclass(frozen=True, slots=True, eq=False)
class CachedIndex:
    """What was read of blocks before: trusted for its content, which only their texts could prove.

    Attributes:
        fingerprints: uint64 ``[blocks]``: what each block held when it was read.
        index: Identifier index of the blocks.
    """

    fingerprints: Fingerprints
    index: IdentifierIndex


def encode_index(table: BlockTable) -> bytes:
    """Return the index of a table's blocks as bytes: about 140 a block of a coding session."""
    index = table.index
    distance = np.diff(index.terms, prepend=0).astype(np.uint32)
    is_first = _is_first(index.starts, len(distance))
    distance[is_first] = index.terms[is_first]
    is_far = distance >= _ESCAPE
    body = b"".join((
        _COUNTS.pack(len(table), len(distance), int(is_far.sum())),
        fingerprints(table.messages, table.blocks).astype("<u8").tobytes(),
        np.diff(index.starts).astype("<u4").tobytes(),
        np.minimum(distance, _ESCAPE).astype(np.uint8).tobytes(),
        distance[is_far].astype("<u4").tobytes(),
        np.packbits(index.wrote).tobytes(),
        msgspec.json.encode(list(islice(index.vocabulary, index.size))),
    ))  # fmt: skip
    packed = zlib.compress(body, LEVEL)
    if len(packed) * MOST_RATIO < len(body):
        packed = zlib.compress(body, 0)
    return _HEAD.pack(MAGIC, VERSION, zlib.crc32(packed), len(body)) + packed


def decode_index(data: bytes) -> CachedIndex:
    """Return the index that ``encode_index`` wrote, for ``build_table``.

    Bytes from anyone are safe to pass: memory stays within a multiple of their length, and every
    number is one that an index may hold. Content is not proved: names that are not the block's
    lead to a worse selection, never to a failure.

    Raises:
        InputError: Not such bytes, another version, damaged, or no consistent index; without the
            cache the table is built from the messages.
    """
    body = _checked_body(data)
    _demand(len(body) >= _COUNTS.size, "they end too early")
    blocks, entries, far = _COUNTS.unpack_from(body)
    at = _COUNTS.size
    columns = []
    for dtype, count in (("<u8", blocks), ("<u4", blocks), ("u1", entries), ("<u4", far),
                         ("u1", -(-entries // 8))):  # fmt: skip
        size = np.dtype(dtype).itemsize * count
        _demand(at + size <= len(body), "they end too early")
        columns.append(np.frombuffer(body, dtype, count, at))
        at += size
    prints, lengths, near, distances, bits = columns
    names = _decoded_names(body[at:])
    starts = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    _demand(starts[-1] == entries, "rows and entries do not add up")
    _demand(np.count_nonzero(near == _ESCAPE) == far, "distances do not add up")
    vocabulary = {name: number for number, name in enumerate(names)}
    _demand(len(vocabulary) == len(names), "an identifier stands twice")
    terms = _terms(near, distances, starts, len(names))
    wrote = np.unpackbits(bits, count=entries).astype(np.bool_)
    index = counted_index(vocabulary, len(names), starts, terms, wrote)
    return CachedIndex(prints.astype(np.uint64), index)


def _terms(
    near: npt.NDArray[np.generic],
    far: npt.NDArray[np.generic],
    starts: npt.NDArray[np.int64],
    names: int,
) -> Int32Array:
    """Return the identifiers of the entries: ascending in a row, numbered as they first occur."""
    distance = near.astype(np.int64)
    distance[near == _ESCAPE] = far
    is_first = _is_first(starts, len(near))
    _demand((distance[~is_first] > 0).all(), "identifiers of a block out of order")
    total = np.cumsum(distance)
    before = np.concatenate(([0], total))[starts[:-1]]
    terms = total - np.repeat(before, np.diff(starts))
    highest = np.maximum.accumulate(np.concatenate(([-1], terms)))
    is_numbered = (np.diff(highest) <= 1).all() and highest[-1] == names - 1
    _demand(is_numbered, "identifiers are not numbered as they occur")
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
