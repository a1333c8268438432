"""Which attention layers of a model are measured: only those that see the whole history."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def first_full(is_full: Sequence[bool], count: int) -> tuple[int, ...]:
    """Return the first ``count`` full-attention layers, or all where there are fewer.

    For a proxy model: nothing behind the last of them has to be computed.

    Args:
        is_full: For each layer, whether it attends to the whole history; a layer with a sliding
            window does not.
        count: Layers wanted, 1 or more.
    """
    return tuple(_full(is_full)[:count])


def spaced_full(is_full: Sequence[bool], count: int) -> tuple[int, ...]:
    """Return ``count`` full-attention layers evenly spaced from the first to the last (ours).

    For a serving engine, which computes all layers anyway. One layer alone is the middle one.
    Arguments as of ``first_full``.
    """
    full = _full(is_full)
    if len(full) <= count:
        return tuple(full)
    if count == 1:
        return (full[(len(full) - 1) // 2],)
    gaps = count - 1
    return tuple(full[(2 * i * (len(full) - 1) + gaps) // (2 * gaps)] for i in range(count))


def edge_of(layers: Sequence[int], wanted: int) -> int:
    """Return the layer that edges are read from: the nearest to ``wanted``, the lower of two.

    Args:
        layers: Measured layers, one or more.
        wanted: Setting ``edge_layer``.
    """
    return min(layers, key=lambda layer: (abs(layer - wanted), layer))


def _full(is_full: Sequence[bool]) -> list[int]:
    return [layer for layer, full in enumerate(is_full) if full]
