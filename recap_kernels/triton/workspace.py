"""How the work on one layer is cut, so that what lies between its kernels stays small.

All of it follows from sizes the host knows, so a launch needs no value from the GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap_kernels.triton.configs import column_shape

if TYPE_CHECKING:
    from recap_kernels.backends import AttnCall

LIMIT = 8_000_000
"""Bytes beside inputs and results, for 512 rows, 131072 tokens and 1000 blocks at most."""

LSE_BYTES = COLUMN_BYTES = 1 << 22
LEAST_ROWSUM_BYTES = 1 << 20
CHUNK = 2048
"""Least tokens of a partial log-sum-exp: enough programs to fill a GPU, a merge short beside them."""

FLOAT = 4


@dataclass(frozen=True, slots=True)
class Workspace:
    """How one layer is cut, and the bytes that takes.

    Attributes:
        chunk: Tokens of a partial log-sum-exp.
        heads: Key heads of one launch of ``column_kernel``.
        tiles: Tiles of one launch.
        entries: What it writes of a row, tile and key head for block mass: one sum, or one for each
            query head where the heads of a row do not fill a program.
        lse_bytes: Memory of the log-sum-exp; free again before the sums begin.
        column_bytes: Memory of the column sums and of block mass.
    """

    chunk: int
    heads: int
    tiles: int
    entries: int
    lse_bytes: int
    column_bytes: int

    @property
    def bytes(self) -> int:
        """Bytes at the peak."""
        return max(self.lse_bytes, self.column_bytes)


def workspace(call: AttnCall) -> Workspace:
    """Return how the work on a layer is cut.

    Raises:
        ValueError: No kernel for the plan's tiles.
    """
    plan, (rows, heads, _), kv_heads = call.plan, call.q.shape, call.k.shape[1]
    parts = _pieces(plan.kv_len, CHUNK)
    part_bytes = rows * heads * 2 * FLOAT
    chunk = CHUNK * _pieces(parts, max(1, LSE_BYTES // part_bytes))
    lse_bytes = 0 if call.lse is not None else _pieces(plan.kv_len, chunk) * part_bytes

    head_bytes = plan.kv_len * FLOAT
    at_once = _share(kv_heads, COLUMN_BYTES // head_bytes)
    column_bytes = at_once * head_bytes
    group, shape = heads // kv_heads, column_shape(call.q.element_size(), plan.tile)
    entries = 1 if shape.rows % group == 0 else group
    tiles = plan.tiles.start.numel()
    if call.mass is not None:
        column_bytes += rows * plan.blocks * FLOAT
        tile_bytes = at_once * rows * entries * FLOAT
        left = max(LIMIT - column_bytes, LEAST_ROWSUM_BYTES)
        tiles = _share(plan.block_tiles.start.numel(), left // tile_bytes)
        column_bytes += tiles * tile_bytes
    return Workspace(chunk, at_once, tiles, entries, lse_bytes, column_bytes)


def _pieces(count: int, size: int) -> int:
    """Return how many pieces of ``size`` hold ``count``."""
    return -(-count // size)


def _share(count: int, most: int) -> int:
    """Return the size of equal parts of ``count``, none above ``most`` unless that is below 1."""
    return _pieces(count, _pieces(count, max(1, most)))
