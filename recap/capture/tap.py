"""Reads queries and keys out of a transformers model while it runs.

A model asks its configuration for an attention function by name. Ours notes the query rows wanted
and the layer's keys, and then calls the plain function for the output; behind the last layer wanted
it ends the pass. What is wanted lies in a context variable, so that models in several threads do not
disturb each other; without one the functions are the plain ones.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from recap.capture.collector import LayerOptions

PREFIX = "recap_"
"""Before the name of the plain attention function, "sdpa" or "eager"."""


class _Reached(Exception):  # noqa: N818 - a way out, not an error
    """The last layer wanted has handed in what it has."""


@dataclass(slots=True, eq=False)
class Tap:
    """What a pass through the model hands out.

    Attributes:
        layers: Layers that are read.
        rows: int64: which tokens of the present chunk are sampled, counted from its start.
        queries: For each layer the sampled rows of each chunk, ``[w, Hq, D]``.
        keys: For each layer the keys of all tokens so far, ``[S, Hkv, D]``.
        options: For each layer what it adds to plain scaled dot products.
    """

    layers: tuple[int, ...]
    rows: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    queries: dict[int, list[Tensor]] = field(default_factory=dict)
    keys: dict[int, Tensor] = field(default_factory=dict)
    options: dict[int, LayerOptions] = field(default_factory=dict)

    def rows_of(self, layer: int) -> Tensor:
        """Return all sampled rows of a layer, ``[W, Hq, D]``."""
        return torch.cat(self.queries[layer])

    def note(self, module: Any, query: Tensor, key: Tensor, kwargs: dict[str, Any]) -> None:
        """Keep what a layer hands in: ``[1, heads, tokens, D]``, keys of all tokens so far."""
        layer = module.layer_idx
        if layer not in self.layers:
            return
        self.queries.setdefault(layer, []).append(query[0, :, self.rows].transpose(0, 1))
        self.keys[layer] = key[0].transpose(0, 1)
        sinks = kwargs.get("s_aux", getattr(module, "sinks", None))
        self.options[layer] = {
            "scale": kwargs.get("scaling"),
            "softcap": kwargs.get("softcap") or 0.0,
            "sinks": None if sinks is None else sinks.detach().reshape(-1),
        }
        if layer == self.layers[-1]:
            raise _Reached


_TAP: ContextVar[Tap | None] = ContextVar("recap_tap", default=None)


@contextmanager
def tapped(tap: Tap) -> Iterator[None]:
    """Let a tap read what runs inside, in this thread, up to its last layer."""
    token = _TAP.set(tap)
    try:
        yield
    except _Reached:
        pass
    finally:
        _TAP.reset(token)


def register() -> None:
    """Make the attention functions known to transformers; a second time changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface

    masks: Any = AttentionMaskInterface
    masks = masks()
    for plain, function in (("sdpa", _sdpa), ("eager", _eager)):
        AttentionInterface.register(PREFIX + plain, function)
        AttentionMaskInterface.register(PREFIX + plain, masks[plain])


def _sdpa(module: Any, query: Tensor, key: Tensor, *args: Any, **kwargs: Any) -> Any:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    _note(module, query, key, kwargs)
    return sdpa_attention_forward(module, query, key, *args, **kwargs)


def _eager(module: Any, query: Tensor, key: Tensor, *args: Any, **kwargs: Any) -> Any:
    _note(module, query, key, kwargs)
    plain = sys.modules[type(module).__module__].eager_attention_forward  # the model's own
    return plain(module, query, key, *args, **kwargs)


def _note(module: Any, query: Tensor, key: Tensor, kwargs: dict[str, Any]) -> None:
    tap = _TAP.get()
    if tap is not None:
        tap.note(module, query, key, kwargs)
