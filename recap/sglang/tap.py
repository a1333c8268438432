"""Query rows of running requests, kept on the device until their turn ends.

Tensors of one fixed size: a decode step inside a CUDA graph runs no Python, it only reads a table that
names the place of each request's row in this step, or -1. **Not run on a GPU yet.**
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from recap.sglang.rows import SPARE
from recap_kernels import capture_rows_

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt
    from torch import Tensor

    IntArray = npt.NDArray[np.int64]
    Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TappedLayer:
    """An attention layer whose queries are kept.

    Attributes:
        layer: Index in the model.
        heads: Query heads of this rank.
        width: Numbers of a head.
        scale: Factor of its logits.
        softcap: Its logits become ``softcap * tanh(logit / softcap)``; 0 for none.
    """

    layer: int
    heads: int
    width: int
    scale: float
    softcap: float

    def row_bytes(self, dtype: torch.dtype) -> int:
        """Return the bytes of one query row."""
        return self.heads * self.width * dtype.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class _Prefill:
    """Rows that this step's prefill gathers: ``store[place] = q[token]``."""

    spans: Spans
    token: Tensor
    place: Tensor


class Tap:
    """The store. Requests get a part of ``rows + SPARE`` places; the parts are few and never grow."""

    def __init__(
        self,
        layers: Iterable[TappedLayer],
        rows: int,
        requests: int,
        *,
        pool_rows: int,
        dtype: torch.dtype,
        device: torch.device | str,
    ) -> None:
        """Allocate the store.

        Args:
            layers: What is kept.
            rows: Rows wanted of a request.
            requests: Parts, requests measured at a time.
            pool_rows: Rows of SGLang's table of requests; its row 0 is padding.
            dtype: Of the model's queries.
            device: Of the model.
        """
        self.layers: Mapping[int, TappedLayer] = {layer.layer: layer for layer in layers}
        self.rows = rows
        self.sinks: dict[int, Tensor] = {}
        self._part = rows + SPARE
        self._store = {
            at: torch.full(
                (requests * self._part, layer.heads, layer.width),
                torch.nan,
                dtype=dtype,
                device=device,
            )
            for at, layer in self.layers.items()
        }
        self._free = list(range(requests))
        self._table = torch.full((pool_rows,), -1, dtype=torch.int32, device=device)
        self._set: set[int] = set()
        self._prefill: _Prefill | None = None
        self._runs_python = self._table.device.type == "cpu"  # in every step: no CUDA graph

    def take(self) -> int | None:
        """Return a part for a request, None when all are in use.

        It is filled with NaN: a row that was never written makes the result NaN, not wrong.
        """
        if not self._free:
            return None
        part = self._free.pop()
        for store in self._store.values():
            store[part * self._part : (part + 1) * self._part] = torch.nan
        return part

    def give_back(self, part: int) -> None:
        """Take a part back."""
        self._free.append(part)

    @property
    def free(self) -> int:
        """Parts that are not in use."""
        return len(self._free)

    def places(self, part: int, places: IntArray) -> IntArray:
        """Return the places in the store of a request's own ``places``."""
        return places + part * self._part

    def stage_prefill(self, spans: Spans, token: IntArray, place: IntArray) -> None:
        """Say which rows of the next prefill step are kept, and where.

        Args:
            spans: Positions ``[first, end)`` of each request of the step, in order.
            token: int64 ``[m]``: rows of the step's queries.
            place: int64 ``[m]``: where they go.
        """
        self._prefill = None
        if len(token):
            self._prefill = _Prefill(spans, self._sent(token), self._sent(place))

    def stage_decode(self, places: Mapping[int, int]) -> None:
        """Say where the next decode step keeps the row of each of SGLang's request rows.

        A row of the table that is not named keeps nothing. Where nothing changes, nothing is sent.
        """
        named = set(places)
        if named or self._set:
            rows = sorted(named | self._set)
            place = [places.get(row, -1) for row in rows]
            self._table[self._sent(np.asarray(rows))] = self._sent(np.asarray(place, np.int32))
        self._set = named

    def keep_prefill(self, layer: int, q: Tensor, spans: Spans) -> None:
        """Keep the staged rows of one layer; a step of other positions (a warm-up) keeps none.

        Padding may stand behind the staged requests. Their ids would tell a step more surely, but
        a prefill inside a CUDA graph does not carry them.
        """
        staged = self._prefill
        if staged is None or spans[: len(staged.spans)] != staged.spans:
            return
        rows = self._rows(layer, q).index_select(0, staged.token)
        self._store[layer].index_copy_(0, staged.place, rows)

    def keep_decode(self, layer: int, q: Tensor, request_rows: Tensor) -> None:
        """Keep the rows of one layer as the table says; recorded when a CUDA graph is captured.

        Args:
            layer: Index in the model.
            q: ``[n, Hq * D]`` or ``[n, Hq, D]``: one row a request.
            request_rows: int64 ``[n]``: SGLang's row of each request, 0 for padding.
        """
        if self._runs_python and not self._set:
            return
        count = min(len(q), len(request_rows))
        place = self._table.index_select(0, request_rows[:count])
        capture_rows_(self._store[layer], None, self._rows(layer, q[:count]), None, place)

    def kept(self, layer: int, places: IntArray) -> Tensor:
        """Return ``[w, Hq, D]``: the rows at these places of the store."""
        return self._store[layer].index_select(0, self._sent(places))

    def _rows(self, layer: int, q: Tensor) -> Tensor:
        of = self.layers[layer]
        return q.reshape(-1, of.heads, of.width)

    def _sent(self, values: npt.NDArray[Any]) -> Tensor:
        """Return the values on the device, without waiting for it."""
        tensor = torch.from_numpy(values)
        if self._table.device.type != "cuda":
            return tensor.to(self._table.device)
        return tensor.pin_memory().to(self._table.device, non_blocking=True)


def parts_for(layers: Iterable[TappedLayer], rows: int, dtype: torch.dtype, mib: int) -> int:
    """Return how many requests a store of ``mib`` MiB holds."""
    part = (rows + SPARE) * sum(layer.row_bytes(dtype) for layer in layers)
    return mib * 2**20 // part
