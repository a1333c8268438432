"""What a turn used, by the definitions, from whole attention matrices: slow, and plain to follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recap.capture.sampling import edge_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from recap.capture.spans import Segments
    from recap.config import Settings

    Weights = dict[int, npt.NDArray[np.float64]]


class Expected(NamedTuple):
    """Use by block id, and mass by (later id, earlier id)."""

    use: dict[str, float]
    mass: dict[tuple[str, str], float]


def expected(
    weights: Weights,
    segments: Segments,
    positions: npt.NDArray[np.int64],
    settings: Settings,
    seed: int,
    edge_layer: int,
) -> Expected:
    """Return what an observation should hold; ``weights`` of a layer are [rows, heads, tokens]."""
    tokens = {block: tokens_of(segments, block) for block in range(len(segments.ids))}
    rho = {}
    for token in range(settings.drop_first, int(segments.offsets[-1])):
        seers = [row for row, position in enumerate(positions) if position >= token]
        if seers:
            rho[token] = np.mean([w[seers, :, token].mean() for w in weights.values()])
    counted = {block: [t for t in own if t in rho] for block, own in tokens.items()}
    ranked = sorted(rho[t] for own in counted.values() for t in own)
    cut = ranked[max(1, int(np.ceil(settings.clip_quantile * len(ranked)))) - 1]
    use = {
        segments.ids[block]: float(np.mean([min(rho[t], cut) for t in own]))
        for block, own in counted.items()
        if own
    }
    is_edge = edge_rows(seed, positions, segments.offsets, settings.rows_per_block)
    mass = {}
    for later, own in tokens.items():
        rows = [row for row in np.flatnonzero(is_edge) if positions[row] in own]
        for earlier in range(later):
            if rows and counted[later] and counted[earlier]:
                given = weights[edge_layer][rows][:, :, tokens[earlier]].sum(-1).mean()
                mass[segments.ids[later], segments.ids[earlier]] = float(given)
    return Expected(use, {pair: value for pair, value in mass.items() if value > 0})


def tokens_of(segments: Segments, block: int) -> list[int]:
    """Return the tokens of a block, wherever they stand."""
    return [
        token
        for at, owner in enumerate(segments.owner)
        if owner == block
        for token in range(segments.offsets[at], segments.offsets[at + 1])
    ]
