"""The vendors' forms of a message list. A module of its own: the command line starts with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

Dialect = Literal["anthropic", "openai", "responses", "gemini", "langchain", "opencode"]

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)

DIALECT_NAMES: Mapping[str, str] = {
    "anthropic": "Anthropic Messages",
    "openai": "OpenAI chat",
    "responses": "OpenAI Responses",
    "gemini": "Gemini contents",
    "langchain": "LangChain messages",
    "opencode": "OpenCode messages",
}
"""What people call them."""
