"""Shapes of the programs: fixed per head width and dtype, never tuned while serving.

One shape means one order of additions, so the same bits on every run. Each was chosen for no spills
in the compile check (``python -m recap_kernels.aot``); none has been timed on a GPU.
"""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """Shape of one program over queries and keys.

    Attributes:
        tokens: Keys of a step.
        rows: Packed rows of a step.
        warps: Warps of a program.
        stages: Steps in flight in the pipeline.
    """

    tokens: int
    rows: int
    warps: int
    stages: int


COLUMN = {128: Shape(128, 64, 8, 3), 64: Shape(64, 32, 4, 3)}
"""By tokens of a tile, 16-bit keys: the tile stays, rows stream by."""

COLUMN_FP32 = {128: Shape(128, 16, 8, 2), 64: Shape(64, 16, 4, 2)}
LSE = Shape(64, 128, 8, 3)
LSE_CONTIGUOUS = Shape(64, 128, 8, 2)
LSE_FEW_ROWS = Shape(64, 64, 4, 3)
LSE_FP32 = Shape(32, 64, 8, 2)

MAX_WIDTH = {2: 256, 4: 64}
"""Largest head_dim by bytes of a query element: float32 products run on no tensor core, and a wider
one spills whatever the shape."""


def column_shape(size: int, tokens: int) -> Shape:
    """Return the shape of ``column_kernel`` for queries of ``size`` bytes and tiles of ``tokens``.

    Raises:
        ValueError: No shape for such tiles has been compiled and checked.
    """
    table = COLUMN_FP32 if size == 4 else COLUMN
    if tokens not in table:
        wanted = " or ".join(str(tokens) for tokens in sorted(table))
        raise ValueError(
            f"plan must have tiles of {wanted} tokens for backend 'triton'; got {tokens}"
        )
    return table[tokens]


def lse_shape(size: int, packed: int, *, paged: bool) -> Shape:
    """Return the shape of ``lse_partial_kernel`` for ``packed`` rows of a key head."""
    if size == 4:
        return LSE_FP32
    if packed <= LSE_FEW_ROWS.rows:
        return LSE_FEW_ROWS
    return LSE if paged else LSE_CONTIGUOUS
