"""A small local language model that replays a turn, and what it attends to meanwhile.

Any causal language model of transformers in a local folder will do whose attention, as measured, is
what the model itself reports. The attention of a proxy is not that of the agent's own model.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import recap_kernels as rk
from recap.capture.collector import Collector
from recap.capture.layers import edge_of
from recap.capture.loading import read, reading
from recap.capture.sampling import sample_rows
from recap.capture.spans import Segments, message_spans
from recap.capture.tap import PREFIX, Tap, register, tapped
from recap.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from recap.capture.loading import Dtype, Loaded
    from recap.capture.replay import Replay
    from recap.config import Settings
    from recap.graph.observation import TurnObservation

    IntArray = npt.NDArray[np.int64]

CHUNK = 1024
"""Tokens of one pass at most."""

EAGER_CELLS = 2**25
"""Attention weights that a model without fused attention makes at once: 128 MB in float32."""

CUTTABLE = {"full_attention", "sliding_attention", "chunked_attention"}
"""Kinds of layers whose cache of a prefix is the prefix of their cache."""

PROBE_TOKENS = 24
TOLERANCE = 1e-4
"""How far the attention a model reports itself may be from what is measured, see ``_prove``."""


class ProxyModel:
    """A loaded proxy model, with the keys and values of the replay it last ran.

    One turn at a time; models in several threads do not disturb each other. While a model runs, the
    number of torch threads of the calling thread is set, and put back after.

    Attributes:
        template: Chat template and tokenizer.
        layers: Layers that are measured.
        most_tokens: Tokens that the model can take.
    """

    def __init__(self, loaded: Loaded, threads: int) -> None:
        """Take what ``read`` returns; ``load`` does both, and proves what is measured."""
        template, model, layers = loaded
        config = model.config
        kinds = getattr(config, "layer_types", None) or ["full_attention"] * (layers[-1] + 1)
        has_fused = model._supports_sdpa
        self.template = template
        self.layers = layers
        self.most_tokens: int = getattr(config, "max_position_embeddings", None) or 2**31
        self._model = model
        self._threads = threads
        self._lock = Lock()
        self._attention = PREFIX + ("sdpa" if has_fused else "eager")
        self._cells = 2**62 if has_fused else EAGER_CELLS // config.num_attention_heads
        self._told = [at for at, kind in enumerate(kinds) if kind in CUTTABLE]
        self._is_cuttable = len(self._told) == len(kinds)
        takes = inspect.signature(model.forward).parameters
        self._cache = "cache" if "cache" in takes else "past_key_values"
        self._held: tuple[IntArray, Any] | None = None  # token ids and their cache

    @classmethod
    def load(
        cls, folder: Path, *, layers: int, dtype: Dtype = "bfloat16", threads: int = 1
    ) -> ProxyModel:
        """Return the model of a folder.

        Args:
            folder: Configuration, tokenizer and safetensors weights.
            layers: Layers measured: the first ones that attend to the whole history, or all of them
                where there are fewer.
            dtype: Of the weights in memory. Computation is in float32 either way.
            threads: Threads that torch may use.

        Raises:
            UsageError: A package is missing, transformers reads no model there, or what it measures
                is not what the model itself reports.
        """
        with reading(folder):
            register()
            proxy = cls(read(folder, layers, dtype), threads)
            proxy._prove()
        return proxy

    def count(self, replay: Replay) -> int:
        """Return how many tokens a replay has."""
        return len(self.template.encode(self.template.render(replay.messages))[0])

    def forget(self) -> None:
        """Drop the keys and values of the last replay."""
        self._held = None

    def observe(self, replay: Replay, turn: int, seed: int, settings: Settings) -> TurnObservation:
        """Return what the rows sampled from a turn attended to.

        Keys and values of the tokens that the last replay began with too are used again.

        Args:
            replay: What the model is shown.
            turn: 0-based number of the completed turn.
            seed: Of (session, turn), see ``row_seed``.
            settings: ``rows``, ``rows_per_block``, ``edge_layer``, ``drop_first`` and
                ``clip_quantile``.

        Raises:
            SpanError: Tokens cannot be attributed to blocks beyond doubt.
            CaptureError: The model cannot take so many tokens, or nothing could be measured.
        """
        spans = message_spans(replay.messages, self.template)
        segments = Segments.of(replay.ids, replay.owner, spans)
        tokens = len(spans.ids)
        if tokens > self.most_tokens:
            raise CaptureError("too-long", f"{tokens} tokens; the model takes {self.most_tokens}")
        is_new = replay.first_new < len(replay.messages)
        start = int(spans.start[replay.first_new]) if is_new else tokens
        positions = sample_rows(seed, start, tokens, settings.rows)
        edge_layer = edge_of(self.layers, settings.edge_layer)
        collector = Collector(
            segments, positions, tokens, settings, seed=seed, edge_layer=edge_layer
        )
        with self._lock, _threads(self._threads), torch.inference_mode():
            tap = self._run(spans.ids, positions, CHUNK)
            for layer in self.layers:
                collector.add(layer, tap.rows_of(layer), tap.keys[layer], **tap.options[layer])
            return collector.observation(turn)

    def _run(self, ids: IntArray, positions: IntArray, most: int) -> Tap:
        """Run the model over what it does not hold yet, from the first sampled row at the latest."""
        (known, cache), self._held = self._held or (ids[:0], self._new_cache()), None
        start = min(_common(known, ids), int(positions[0]))
        if start < len(known):
            _cut_cache(cache, start)
        tap = Tap(self.layers)
        step = min(most, max(1, self._cells // len(ids)))
        for first in range(start, len(ids), step):
            chunk = ids[first : first + step]
            is_inside = (positions >= first) & (positions < first + len(chunk))
            tap.rows = torch.from_numpy(positions[is_inside] - first)
            with tapped(tap):
                self._model(torch.from_numpy(chunk)[None], use_cache=True, **{self._cache: cache})
        if any(len(tap.keys.get(layer, ())) != len(ids) for layer in self.layers):
            raise CaptureError("refused", "the model did not hand in the keys of all tokens")
        self._held = (ids, cache) if self._is_cuttable else None
        return tap

    def _new_cache(self) -> Any:
        """Return an empty cache: of all tokens in every layer, where that is all a layer needs."""
        from transformers import DynamicCache

        return DynamicCache() if self._is_cuttable else DynamicCache(config=self._model.config)

    def _prove(self) -> None:
        """Raise ValueError when the weights the model itself reports are not those measured."""
        ids = np.random.default_rng(0).integers(0, self._model.config.vocab_size, PROBE_TOKENS)
        positions = np.arange(PROBE_TOKENS)
        with _threads(self._threads), torch.inference_mode():
            self._model.set_attn_implementation("eager")
            told = self._model(
                torch.from_numpy(ids)[None], use_cache=False, output_attentions=True
            ).attentions
            if told is None:
                raise ValueError("the model does not report its attention")
            self._model.set_attn_implementation(self._attention)
            tap = self._run(ids, positions, PROBE_TOKENS // 2)
            self.forget()
            for layer in self.layers:
                plan = rk.plan(torch.from_numpy(positions), PROBE_TOKENS)
                seen = rk.attn_stats(
                    tap.rows_of(layer), tap.keys[layer], plan, **tap.options[layer]
                )
                own = told[self._told.index(layer)][0].float().sum((0, 1))
                if not (seen.rho - own).norm() <= TOLERANCE * own.norm():
                    raise ValueError(f"attention of layer {layer} is not what the model reports")


def _common(known: IntArray, ids: IntArray) -> int:
    """Return how many first tokens are the same."""
    length = min(len(known), len(ids))
    differ = np.flatnonzero(known[:length] != ids[:length])
    return int(differ[0]) if len(differ) else length


def _cut_cache(cache: Any, tokens: int) -> None:
    """Leave the first tokens in a cache."""
    for layer in cache.layers:
        if layer.get_seq_length() > tokens:
            layer.keys, layer.values = layer.keys[..., :tokens, :], layer.values[..., :tokens, :]


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
