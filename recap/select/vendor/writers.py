"""Dialect -> function that writes messages of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.transcript import anthropic, openai

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.model import Dialect, Part, Role
    from recap.transcript.tree import Tree

WRITERS: Mapping[Dialect, Callable[[Role, Sequence[Part]], list[Tree]]] = {
    "anthropic": anthropic.write_message,
    "openai": openai.write_message,
}
