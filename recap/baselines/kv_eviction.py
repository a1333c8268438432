"""KV eviction: the history is read whole, then each head forgets what the request does not look at.

The other way to shorten a context: no text is chosen, keys and values are dropped from the cache of
a local model. The request is the window of observation, as in SnapKV (Li et al. 2024, section 3);
there is no pooling, and what is kept is a share of the tokens of history and system (ours). It saves
memory and decoding time but no prefill, and what a head forgot is gone for the next request: then
the history is read again. It has no text, so that only a judge and a clock can tell what it is worth.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from recap.baselines.causal import causal_model
from recap.capture.tap import PREFIX, Tap, register, tapped
from recap.errors import MethodError

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

SINKS = 4
"""First tokens that every head keeps: heads lean on them whatever they say (Xiao et al. 2023)."""

ROWS = 256
"""Rows of the request whose attention is held at a time."""


@dataclass(slots=True, eq=False)
class Evicted:
    """A cache that holds a part of the history and all of the request.

    Attributes:
        cache: Of transformers, for the tokens that follow. Scoring or decoding grows it.
        kept: For each layer int64 ``[Hkv, k]``: tokens of the history each head kept, ascending.
        tokens: Tokens of history and request: the position of what follows.
        foresees: ``[vocabulary]``: logits behind the last token of the request.
        memory_bytes: Keys and values kept of the history.
    """

    cache: Any
    kept: tuple[Tensor, ...]
    tokens: int
    foresees: Tensor
    memory_bytes: int


class _HeadUse(Tap):
    """What the rows of the present chunk give to the first ``history`` tokens, by layer and head."""

    def __init__(self, layers: int, history: int) -> None:
        super().__init__(tuple(range(layers)))
        self.history = history
        self.use: dict[int, Tensor] = {}

    def note(self, module: Any, query: Tensor, key: Tensor, kwargs: dict[str, Any]) -> None:
        """Keep a layer's sums ``[Hkv, history]``; the pass goes on to its end."""
        if kwargs.get("softcap") or kwargs.get("s_aux") is not None:
            raise MethodError("KV eviction needs plain attention: this model caps or sinks it")
        self.use[module.layer_idx] = head_use(
            query[0], key[0], self.history, float(kwargs["scaling"])
        )


def head_use(query: Tensor, key: Tensor, history: int, scale: float) -> Tensor:
    """Return the attention that the last rows give to each token of the history: ``[Hkv, history]``.

    Sums over rows, and over the query heads that share a head of keys. Causal softmax over all tokens.

    Args:
        query: ``[Hq, m, D]``: the last m of n tokens.
        key: ``[Hkv, n, D]``.
        history: First tokens that are counted, at most n - m.
        scale: Of the dot products.
    """
    exact = torch.promote_types(query.dtype, torch.float32)
    heads, tokens, width = key.shape
    grouped = query.to(exact).reshape(heads, -1, query.shape[1], width)
    keys = key.to(exact)[:, None].transpose(-1, -2)
    first = tokens - query.shape[1]
    used = torch.zeros(heads, history, dtype=exact)
    for start in range(0, query.shape[1], ROWS):
        rows = grouped[:, :, start : start + ROWS]
        scores = (rows * scale) @ keys
        place = first + start + torch.arange(rows.shape[2])
        scores.masked_fill_(torch.arange(tokens) > place[:, None], -torch.inf)
        used += scores.softmax(-1)[..., :history].sum((1, 2))
    return used


def best(use: Tensor, keep: int, pinned: Tensor) -> Tensor:
    """Return the tokens each head keeps, ascending: int64 ``[heads, k]``.

    Args:
        use: ``[heads, n]``, not negative.
        keep: How many; where more are pinned all these and no others.
        pinned: bool ``[n]``: tokens that every head keeps.
    """
    count = min(max(keep, int(pinned.sum())), use.shape[1])
    worth = use.masked_fill(pinned, torch.inf)
    order = worth.argsort(dim=-1, descending=True, stable=True)  # of equals the oldest
    return order[:, :count].sort(dim=-1).values


class KvEviction:
    """A causal model of a local folder whose cache is shortened.

    Every layer has to attend to the whole history: a window forgets by itself.
    """

    def __init__(self, folder: Path, dtype: torch.dtype = torch.bfloat16) -> None:
        """Load the model; nothing is fetched.

        Raises:
            MethodError: transformers cannot read it, or its attention is not plain.
        """
        register()
        self._model = causal_model(folder, dtype, attn_implementation=PREFIX + "sdpa")
        config = self._model.config
        kinds = getattr(config, "layer_types", None)
        has_window = getattr(config, "sliding_window", None) if kinds is None else None
        if has_window or set(kinds or ()) - {"full_attention"}:
            raise MethodError("KV eviction needs a model whose layers attend to the whole history")
        takes = inspect.signature(self._model.get_decoder().forward).parameters
        self._cache = "cache" if "cache" in takes else "past_key_values"

    def read(
        self, history: Tensor, request: Tensor, keep: int, pinned: Tensor | None = None
    ) -> Evicted:
        """Return the shortened cache of a history behind which a request came.

        The request reads the whole history; only what follows it reads what was kept.

        Args:
            history: int64 ``[n]``: tokens of system and history, one or more.
            request: int64 ``[m]``: tokens of the request, one or more.
            keep: Tokens of the history that each head of each layer keeps, the pinned ones among
                them.
            pinned: bool ``[n]``: tokens that stay in any case; the first four always do.
        """
        from transformers import DynamicCache

        count = len(history)
        fixed = torch.zeros(count, dtype=torch.bool) if pinned is None else pinned.clone()
        fixed[:SINKS] = True
        cache: Any = DynamicCache()
        tap = _HeadUse(self._model.config.num_hidden_layers, count)
        with torch.inference_mode():
            self._pass(history, cache, 0, 1)
            with tapped(tap):
                logits = self._pass(request, cache, count, 1)
            kept = tuple(best(tap.use[at], keep, fixed) for at in range(len(cache.layers)))
            size = 0
            for layer, chosen in zip(cache.layers, kept, strict=True):
                layer.keys = _gathered(layer.keys, chosen, count)
                layer.values = _gathered(layer.values, chosen, count)
                held = chosen.numel() * (layer.keys.shape[-1] + layer.values.shape[-1])
                size += held * layer.keys.element_size()
        return Evicted(cache, kept, count + len(request), logits[-1], size)

    def losses(self, evicted: Evicted, target: Tensor) -> Tensor:
        """Return the negative log-likelihood of each token that follows, nats, ``[t]``.

        The cache has the tokens after it: it can be used once.

        Args:
            evicted: What ``read`` returned.
            target: int64 ``[t]``, one or more.
        """
        with torch.inference_mode():
            after = self._pass(target, evicted.cache, evicted.tokens, len(target))
            logits = torch.cat([evicted.foresees[None], after[:-1]])
            exact = torch.promote_types(logits.dtype, torch.float32)
            return torch.nn.functional.cross_entropy(logits.to(exact), target, reduction="none")

    def _pass(self, ids: Tensor, cache: Any, start: int, logits: int) -> Tensor:
        """Run tokens that stand at ``start``, whatever the cache lost; return the last logits."""
        places = torch.arange(start, start + len(ids))[None]
        told: Tensor = self._model(
            ids[None],
            position_ids=places,
            use_cache=True,
            logits_to_keep=logits,
            **{self._cache: cache},
        ).logits[0]
        return told


def _gathered(states: Tensor, chosen: Tensor, history: int) -> Tensor:
    """Return ``[1, Hkv, k + m, D]``: each head's chosen tokens of the history, and what follows it."""
    index = chosen[None, :, :, None].expand(1, -1, -1, states.shape[-1])
    own = states[:, :, :history].gather(2, index)
    return torch.cat([own, states[:, :, history:]], dim=2)
