"""Which vendor's rules a message list is written for, from its content."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.transcript.model import Dialect, Json

OPENAI_ROLES = ("developer", "tool", "function")
OPENAI_KEYS = frozenset(("tool_calls", "tool_call_id", "function_call", "refusal", "audio"))
OPENAI_TYPES = ("image_url", "input_audio", "file", "refusal")
RESPONSES_TYPES = ("input_text", "output_text", "input_image", "input_file")
RESPONSES_ITEMS = ("_call", "_output", "reasoning", "item_reference", "compaction")
"""Endings of the types of items that are no messages."""

ANTHROPIC_TYPES = ("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document")


LISTS: Mapping[str, Dialect] = {"input": "responses", "contents": "gemini"}
"""Key of a list that one vendor's requests alone have."""


def detect(document: Mapping[str, Json], messages: Sequence[Json]) -> Dialect:
    """Return the dialect that the shape of some message shows, else the first one that decides.

    A top-level ``system`` is Anthropic's. Where nothing but texts was said, a list that opens with a
    system or assistant message is OpenAI's, any other Anthropic's.
    """
    said = [message for message in messages if isinstance(message, dict)]
    shapes = (dialect for message in said if (dialect := _by_shape(message)))
    beside = (LISTS[key] for key in LISTS if key in document and "messages" not in document)
    if found := next(shapes, next(beside, None)):
        return found
    if "system" in document:
        return "anthropic"
    if found := next((dialect for message in said if (dialect := _decide(message))), None):
        return found
    first = messages[0] if messages else None
    role = first.get("role") if isinstance(first, dict) else None
    return "openai" if role in ("system", "assistant") else "anthropic"


def _decide(message: Mapping[str, Json]) -> Dialect | None:
    if message.get("role") in OPENAI_ROLES or not OPENAI_KEYS.isdisjoint(message):
        return "openai"
    for kind in _kinds(message):
        if kind in OPENAI_TYPES:
            return "openai"
        if kind in ANTHROPIC_TYPES or kind.endswith("_tool_result"):
            return "anthropic"
    return None


def _kinds(message: Mapping[str, Json]) -> list[str]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    kinds = (block.get("type") for block in blocks if isinstance(block, dict))
    return [kind for kind in kinds if isinstance(kind, str)]


def _by_shape(message: Mapping[str, Json]) -> Dialect | None:
    """Return the dialect whose messages have this shape; None for roles with content."""
    kind, parts = message.get("type"), message.get("parts")
    if isinstance(message.get("kwargs" if "lc" in message else "data"), dict):
        return "langchain"
    if isinstance(message.get("info"), dict):
        return "opencode"
    if isinstance(parts, list) and "content" not in message:
        return "gemini"
    is_item = isinstance(kind, str) and kind.endswith(RESPONSES_ITEMS) and "role" not in message
    return "responses" if is_item or set(RESPONSES_TYPES).intersection(_kinds(message)) else None
