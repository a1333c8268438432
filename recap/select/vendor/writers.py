"""Dialect -> functions that write messages of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.transcript import anthropic, gemini_contents, langchain, openai, opencode, responses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.transcript.model import Dialect, Message, Part, Role
    from recap.transcript.tree import Tree

WRITERS: Mapping[Dialect, Callable[[Role, Sequence[Part]], list[Tree]]] = {
    "anthropic": anthropic.write_message,
    "openai": openai.write_message,
    "responses": responses.write_message,
    "gemini": gemini_contents.write_message,
    "langchain": langchain.write_message,
    "opencode": opencode.write_message,
}

SYSTEM_WRITERS: Mapping[Dialect, Callable[[Sequence[Part]], list[Tree]]] = {
    "anthropic": anthropic.system_blocks,
    "responses": responses.system_blocks,
    "gemini": gemini_contents.system_blocks,
    "opencode": opencode.system_blocks,
}
"""Writers of system text beside the list, for dialects that have a place for it there."""

FINISHERS: Mapping[Dialect, Callable[[Sequence[Tree], Sequence[Message]], list[Tree]]] = {
    "langchain": langchain.in_one_form,
}
"""What is done to all messages at the end, seeing those that were read."""
