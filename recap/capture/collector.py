"""From query rows and cached keys, layer by layer, to what a turn says about blocks.

Second stage of the flow for a proxy model and for a serving engine, and the same for both: it knows
neither. The formulas are those of ``recap_kernels.reference``; here segments become blocks.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

import numpy as np
import torch

import recap_kernels as rk
from recap.capture.sampling import edge_rows
from recap.errors import CaptureError
from recap.graph.observation import TurnObservation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Unpack

    import numpy.typing as npt
    from torch import Tensor

    from recap.capture.spans import Segments
    from recap.config import Settings

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


class LayerOptions(TypedDict, total=False):
    """What a layer adds to plain scaled dot products; defaults and meaning as of ``attn_stats``."""

    scale: float | None
    softcap: float
    sinks: Tensor | None
    lse_base: Literal["e", "2"]
    lse_has_sink: bool
    kv_indices: Tensor | None
    k_scale: float


class _Share(NamedTuple):
    """Sampled rows that are measured in one call."""

    rows: Tensor  # int64, indices into the sampled rows
    plan: rk.StatsPlan
    mass: Tensor | None


class Collector:
    """Attention sums of one completed turn; ``add`` once a layer, then ``observation``.

    Importance averages all rows, heads and layers. Block-to-block mass is read at the edge layer
    alone, from at most ``rows_per_block`` rows of a segment. There the rows are measured in two
    shares, with and without mass: sums add up, so that it costs no second pass.
    """

    def __init__(
        self,
        segments: Segments,
        positions: IntArray,
        kv_len: int,
        settings: Settings,
        *,
        seed: int,
        edge_layer: int,
        device: torch.device | str = "cpu",
    ) -> None:
        """Make the plans of the turn.

        Args:
            segments: Which tokens belong to which block.
            positions: int64 ``[W]``: absolute positions of the sampled rows.
            kv_len: N, tokens whose keys every layer hands in.
            settings: ``rows_per_block``, ``drop_first`` and ``clip_quantile``.
            seed: Of (session, turn): chooses the rows that edges are read from.
            edge_layer: Layer that edges are read from.
            device: Where queries and keys lie.

        Raises:
            CaptureError: There is no row or no block, or tokens lie behind ``kv_len``.
        """
        if not len(positions):
            raise CaptureError("no-rows", "the turn has no token to sample")
        if not segments.ids:
            raise CaptureError("no-blocks", "the served context holds no block")
        self._segments = segments
        self._settings = settings
        self._edge_layer = edge_layer
        count = len(segments.owner)
        self._rho = torch.zeros(kv_len, device=device)
        self._mass = torch.zeros(count, count, device=device)
        self._heads = torch.zeros(2, device=device)  # of all layers together, of the edge layer
        is_edge = edge_rows(seed, positions, segments.offsets, settings.rows_per_block)
        self._edge_rows = positions[is_edge]
        every = np.arange(len(positions))
        self._all = self._share(positions, every, None)
        self._split = [
            self._share(positions, rows, mass)
            for rows, mass in ((every[is_edge], self._mass), (every[~is_edge], None))
            if len(rows)
        ]

    def _share(self, positions: IntArray, rows: IntArray, mass: Tensor | None) -> _Share:
        device = self._rho.device
        with _refusals():
            plan = rk.plan(
                torch.from_numpy(positions[rows]).to(device),
                self._rho.numel(),
                torch.from_numpy(self._segments.offsets),
            )
        return _Share(torch.from_numpy(rows).to(device), plan, mass)

    def add(
        self,
        layer: int,
        q: Tensor,
        k: Tensor,
        *,
        lse: Tensor | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        """Add the attention of one layer.

        Args:
            layer: Its index in the model; each once.
            q: ``[W, Hq, D]``: sampled query rows after RoPE, in the order of ``positions``.
            k: ``[S, Hkv, D]`` of the same dtype: cached keys after RoPE, heads not repeated.
            lse: float32 ``[W, Hq]``: the rows' log-sum-exp where the engine hands it out.
            **options: As of ``recap_kernels.attn_stats``.

        Raises:
            CaptureError: Something is not finite, or the kernels refuse it.
        """
        is_edge = layer == self._edge_layer
        for rows, plan, mass in self._split if is_edge else [self._all]:
            with _refusals():
                rk.attn_stats(
                    q[rows],
                    k,
                    plan,
                    lse=None if lse is None else lse[rows],
                    rho=self._rho,
                    mass=mass,
                    **options,
                )
        self._heads[0] += q.shape[1]
        self._heads[1] += q.shape[1] * is_edge

    def sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the sums themselves, float32: ranks that share the heads add them up in place.

        Token importance ``[N]``, mass of segments ``[S, S]``, and numbers of heads ``[2]``.
        """
        return self._rho, self._mass, self._heads

    def observation(self, turn: int) -> TurnObservation:
        """Return what was measured.

        A block's use is the mean over its counted tokens, wherever they stand; tokens of no block
        count nowhere, also not for the clip. A block none of whose tokens could be seen was not
        measured: it stays out and keeps its score.

        Args:
            turn: 0-based number of the completed turn.

        Raises:
            CaptureError: A layer or a number is missing: nothing was added, not the edge layer, no
                token of a block could be seen, or a sum is not finite.
        """
        heads, edge_heads = self._heads.tolist()
        if not edge_heads:
            raise CaptureError("no-layers", f"layer {self._edge_layer} was not measured")
        if not (self._rho.isfinite().all() and self._mass.isfinite().all()):
            raise CaptureError("not-finite", "the attention sums hold NaN or inf")
        use, tokens = self._use(int(heads))
        seen = np.flatnonzero(tokens)
        if not len(seen):
            raise CaptureError("no-blocks", "no sampled row can see a token of a block")
        later, mass = self._block_mass(edge_heads)
        mass[:, tokens == 0] = 0
        mass[tokens[later] == 0] = 0
        row, earlier = np.nonzero(mass * (np.arange(len(tokens)) < later[:, None]))
        place = np.cumsum(tokens > 0) - 1
        return TurnObservation.of(
            turn,
            [self._segments.ids[i] for i in seen.tolist()],
            use[seen],
            place[later[row]],
            place[earlier],
            mass[row, earlier].clip(max=1.0),  # sums of float32 may round above
        )

    def _use(self, heads: int) -> tuple[FloatArray, FloatArray]:
        """Return for each block its mean importance and its number of counted tokens."""
        offsets, owner = self._segments.offsets, self._segments.owner
        of_token = np.full(self._rho.numel(), -1)
        for (start, end), block in zip(pairwise(offsets.tolist()), owner.tolist(), strict=True):
            of_token[start:end] = block
        done = rk.finalize(
            self._rho,
            self._all.plan,
            layers=1,
            heads=heads,
            clip=rk.Quantile(self._settings.clip_quantile),
            drop_first=self._settings.drop_first,
            exclude=torch.from_numpy(of_token < 0).to(self._rho.device),
        )
        is_counted = (done.row_count.cpu().numpy() > 0) & (of_token >= 0)
        is_counted[: self._settings.drop_first] = False
        counted_before = np.concatenate(([0], is_counted.cumsum()))
        tokens = np.diff(counted_before[offsets])
        total = done.block_mean.cpu().double().numpy() * tokens
        counted = self._by_block(tokens)
        return _mean(self._by_block(total), counted), counted

    def _block_mass(self, heads: float) -> tuple[IntArray, FloatArray]:
        """Return the blocks with edge rows, ``[b]`` ascending, and the mean mass of a row ``[b, n]``.

        A few segments hold all edge rows: of a long session all others gave no mass.
        """
        count = np.diff(np.searchsorted(np.sort(self._edge_rows), self._segments.offsets))
        segments = np.flatnonzero((count > 0) & (self._segments.owner >= 0))
        given = self._mass[torch.from_numpy(segments).to(self._mass.device)]
        by_earlier = self._by_block(given.cpu().double().numpy().T).T
        blocks, of = np.unique(self._segments.owner[segments], return_inverse=True)
        total, rows = np.zeros((len(blocks), by_earlier.shape[1])), np.zeros((len(blocks), 1))
        np.add.at(total, of, by_earlier)
        np.add.at(rows, of, count[segments, None])
        return blocks.astype(np.int64), _mean(total, heads * rows)

    def _by_block(self, of_segments: npt.NDArray[np.generic]) -> FloatArray:
        """Return the sums over the segments of each block, along the first axis."""
        owner = self._segments.owner
        total = np.zeros((len(self._segments.ids), *of_segments.shape[1:]))
        np.add.at(total, owner[owner >= 0], of_segments[owner >= 0])
        return total


def _mean(total: FloatArray, count: FloatArray) -> FloatArray:
    return total / np.maximum(count, 1)


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn what the kernels refuse into a reason; their message holds no text of a session."""
    try:
        yield
    except ValueError as err:
        reason = "not-finite" if "NaN or inf" in str(err) else "refused"
        raise CaptureError(reason, f"the kernels refuse the turn: {err}") from err
