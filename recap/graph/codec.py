"""Context graph <-> bytes: compact, versioned, checksummed; ``decode(encode(g)) == g``.

Layout, little endian: magic, version, CRC-32 of the rest; turns, nodes, edges; observer; ids;
importance, observed bits, superseders; edges per target, distance to each source, mass. A list of
whole numbers is stored in the narrowest width that holds its greatest, given by one byte before it.
"""

from __future__ import annotations

import re
import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np

from recap.errors import GraphFormatError
from recap.graph.state import ContextGraph

if TYPE_CHECKING:
    import numpy.typing as npt

MAGIC = b"RCPG"
VERSION = 1

_HEAD = struct.Struct("<4sBI")
_COUNTS = struct.Struct("<III")
_LENGTH = struct.Struct("<I")
_WIDTHS = (1, 2, 4)
_HASH_BYTES = 8
_HEX = re.compile(r"[0-9a-f]*")
_HEX_IDS, _TEXT_IDS = b"\0", b"\1"
_REFUSAL = "not a context graph this release can read: {}; observe the session again"


def encode(graph: ContextGraph) -> bytes:
    """Return the graph as bytes: 13 bytes a block and 5 or 6 an edge, with ids of 16 hex digits."""
    degree = np.bincount(graph.target, minlength=len(graph.ids))
    is_stale = graph.superseded_by >= 0
    lag = np.where(is_stale, graph.superseded_by - np.arange(len(graph.ids)), 0)
    body = b"".join((
        _COUNTS.pack(graph.turns, len(graph.ids), len(graph.mass)),
        _packed_text(graph.observer),
        _packed_ids(graph.ids),
        graph.importance.astype("<f4").tobytes(),
        np.packbits(graph.is_observed).tobytes(),
        _packed_numbers(lag),
        _packed_numbers(degree),
        _packed_numbers(graph.target - graph.source),
        graph.mass.astype("<f4").tobytes(),
    ))  # fmt: skip
    return _HEAD.pack(MAGIC, VERSION, zlib.crc32(body)) + body


def decode(data: bytes) -> ContextGraph:
    """Return the graph that ``encode`` wrote.

    Bytes from anyone are safe to pass: memory stays within a small multiple of their length.

    Raises:
        GraphFormatError: Not such bytes, another version, damaged, or no consistent graph.
    """
    reader = _Reader(_checked_body(data))
    turns, nodes, edges = _COUNTS.unpack(reader.take(_COUNTS.size))
    observer = reader.text()
    ids = reader.ids(nodes)
    importance = reader.floats(nodes)
    bits = np.frombuffer(reader.take(-(-nodes // 8)), np.uint8)
    is_observed = np.unpackbits(bits, count=nodes).astype(np.bool_)
    lag = reader.numbers(nodes).astype(np.int32)
    degree = reader.numbers(nodes)
    distance = reader.numbers(edges).astype(np.int32)
    mass = reader.floats(edges)
    _demand(reader.is_done, "bytes are left over")
    _demand(degree.sum() == edges, "edges and blocks do not add up")
    index = np.arange(nodes, dtype=np.int32)
    superseded_by = np.where(lag == 0, np.int32(-1), index + lag)
    target = np.repeat(index, degree)
    source = target - distance
    graph = ContextGraph(
        observer, turns, ids, importance, is_observed, superseded_by, source, target, mass
    )
    _check_links(graph)
    return graph


class _Reader:
    """A cursor that never reads, and never allocates, beyond the bytes that are there."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_done(self) -> bool:
        return self._at == len(self._data)

    def take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        _demand(len(piece) == size, "they end too early")
        self._at += size
        return piece

    def floats(self, count: int) -> npt.NDArray[np.float32]:
        values = np.frombuffer(self.take(4 * count), "<f4").astype(np.float32)
        _demand(((values >= 0) & (values <= 1)).all(), "a score is not between 0 and 1")
        return values

    def numbers(self, count: int) -> npt.NDArray[np.int64]:
        width = self.take(1)[0]
        _demand(width in _WIDTHS, "an unknown width of numbers")
        return np.frombuffer(self.take(width * count), f"<u{width}").astype(np.int64)

    def text(self) -> str:
        return self._text(_LENGTH.unpack(self.take(_LENGTH.size))[0])

    def ids(self, count: int) -> tuple[str, ...]:
        kind = self.take(1)
        if kind == _HEX_IDS:
            ids = tuple(self.take(count * _HASH_BYTES).hex(" ", _HASH_BYTES).split())
        else:
            _demand(kind == _TEXT_IDS, "an unknown kind of ids")
            ids = tuple(self._text(size) for size in self.numbers(count).tolist())
        _demand(len(set(ids)) == count, "a block stands twice")
        return ids

    def _text(self, size: int) -> str:
        try:
            return self.take(size).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as err:
            raise GraphFormatError(_REFUSAL.format("a text is no UTF-8")) from err


def _checked_body(data: bytes) -> bytes:
    _demand(isinstance(data, bytes), "no bytes at all")  # from callers without types
    _demand(data[: len(MAGIC)] == MAGIC and len(data) >= _HEAD.size, "they begin otherwise")
    _, version, checksum = _HEAD.unpack_from(data)
    _demand(version == VERSION, f"version {version}, this release reads version {VERSION}")
    body = data[_HEAD.size :]
    _demand(zlib.crc32(body) == checksum, "the checksum differs")
    return body


def _check_links(graph: ContextGraph) -> None:
    nodes = len(graph.ids)
    superseder, source, target = graph.superseded_by, graph.source, graph.target
    _demand(((superseder >= -1) & (superseder < nodes)).all(), "a superseder that is no block")
    is_link = (source >= 0) & (source < nodes) & (source != target)
    _demand(is_link.all(), "an edge between no two blocks")
    pairs = np.sort(target * np.int64(nodes) + source)
    _demand((pairs[1:] > pairs[:-1]).all(), "an edge stands twice")
    is_new_target = target[1:] > target[:-1]
    is_weaker = graph.mass[1:] < graph.mass[:-1]
    is_tie = (graph.mass[1:] == graph.mass[:-1]) & (source[1:] > source[:-1])
    _demand((is_new_target | is_weaker | is_tie).all(), "edges out of order")


def _demand(claim: bool | np.bool_, otherwise: str) -> None:
    if not claim:
        raise GraphFormatError(_REFUSAL.format(otherwise))


def _packed_numbers(values: npt.NDArray[np.integer]) -> bytes:
    unsigned = values.astype(np.uint32)  # a negative number wraps around, and back when read
    greatest = int(unsigned.max(initial=0))
    width = next(width for width in _WIDTHS if greatest < 1 << 8 * width)
    return bytes((width,)) + unsigned.astype(f"<u{width}").tobytes()


def _packed_text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(data)) + data


def _packed_ids(ids: tuple[str, ...]) -> bytes:
    joined = "".join(ids)
    if _HEX.fullmatch(joined) and all(len(block_id) == 2 * _HASH_BYTES for block_id in ids):
        return _HEX_IDS + bytes.fromhex(joined)
    texts = [block_id.encode("utf-8", "surrogatepass") for block_id in ids]
    sizes = np.array([len(text) for text in texts], np.int64)
    return _TEXT_IDS + _packed_numbers(sizes) + b"".join(texts)
