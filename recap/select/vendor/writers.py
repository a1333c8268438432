"""Dialect -> functions that write messages of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.transcript import (
    anthropic,
    openai,
    write_gemini,
    write_langchain,
    write_opencode,
    write_responses,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.model import Dialect, Message, Part, Role
    from recap.transcript.tree import Tree

WRITERS: Mapping[Dialect, Callable[[Role, Sequence[Part]], list[Tree]]] = {
    "anthropic": anthropic.write_message,
    "openai": openai.write_message,
    "responses": write_responses.write_message,
    "gemini": write_gemini.write_message,
    "langchain": write_langchain.write_message,
    "opencode": write_opencode.write_message,
}

SYSTEM_WRITERS: Mapping[Dialect, Callable[[Sequence[Part]], list[Tree]]] = {
    "anthropic": anthropic.system_blocks,
    "responses": write_responses.system_blocks,
    "gemini": write_gemini.system_blocks,
    "opencode": write_opencode.system_blocks,
}
"""Writers of system text beside the list, for dialects that have a place for it there."""

FINISHERS: Mapping[Dialect, Callable[[Sequence[Tree], Sequence[Message]], list[Tree]]] = {
    "langchain": write_langchain.in_one_form,
}
"""What is done to all messages at the end, seeing those that were read."""
