"""The wrapper around an attention backend: the inner call as it is, then the tap.

Imported in workers only: its class derives from SGLang's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang.srt.layers.attention.base_attn_backend import AttentionBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Keep = Callable[[Any, Tensor, Any, dict[str, Any]], None]

_OWN = frozenset({"inner", "forward", "forward_extend", "forward_decode", "_recap_keep"})


class RecapBackend(AttentionBackend):  # type: ignore[misc]  # untyped where SGLang is absent
    """Everything but the three forward functions is the inner backend's, read and written.

    The base class declares attributes, so forwarding only what is not found here would find its
    defaults instead. The class an ``isinstance`` sees is the inner's too.
    """

    def __init__(self, inner: AttentionBackend, keep: Keep) -> None:
        """Wrap ``inner``; ``keep(layer, q, forward_batch, kwargs)`` is called after each forward."""
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "_recap_keep", keep)

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "inner"), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.inner, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.inner, name)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, layer: Any, forward_batch: Any,
        *args: Any, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """Run the inner backend, which writes the keys and dispatches, then keep sampled rows."""
        result = self.inner.forward(q, k, v, layer, forward_batch, *args, **kwargs)
        self._recap_keep(layer, q, forward_batch, kwargs)
        return result

    def forward_extend(
        self, q: Tensor, k: Tensor, v: Tensor, layer: Any, forward_batch: Any,
        *args: Any, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """As ``forward``, for a backend above that dispatches itself."""
        result = self.inner.forward_extend(q, k, v, layer, forward_batch, *args, **kwargs)
        self._recap_keep(layer, q, forward_batch, kwargs)
        return result

    def forward_decode(
        self, q: Tensor, k: Tensor, v: Tensor, layer: Any, forward_batch: Any,
        *args: Any, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """As ``forward``, for a backend above that dispatches itself."""
        result = self.inner.forward_decode(q, k, v, layer, forward_batch, *args, **kwargs)
        self._recap_keep(layer, q, forward_batch, kwargs)
        return result
