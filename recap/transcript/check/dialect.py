"""Which vendor's rules a message list is written for, from its content."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.transcript.model import Dialect, Json

OPENAI_ROLES = ("developer", "tool", "function")
OPENAI_KEYS = frozenset(("tool_calls", "tool_call_id", "function_call", "refusal", "audio"))
OPENAI_TYPES = ("image_url", "input_audio", "file", "refusal", "input_text", "output_text")
ANTHROPIC_TYPES = ("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document")


def detect(document: Mapping[str, Json], messages: Sequence[Json]) -> Dialect:
    """Return the dialect of the first message that decides.

    A top-level ``system`` is Anthropic's. Where nothing but texts was said, a list that opens with a
    system or assistant message is OpenAI's, any other Anthropic's.
    """
    if "system" in document:
        return "anthropic"
    for message in messages:
        if isinstance(message, dict) and (decided := _decide(message)):
            return decided
    first = messages[0] if messages else None
    role = first.get("role") if isinstance(first, dict) else None
    return "openai" if role in ("system", "assistant") else "anthropic"


def _decide(message: Mapping[str, Json]) -> Dialect | None:
    if message.get("role") in OPENAI_ROLES or not OPENAI_KEYS.isdisjoint(message):
        return "openai"
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in OPENAI_TYPES:
            return "openai"
        if kind in ANTHROPIC_TYPES or (isinstance(kind, str) and kind.endswith("_tool_result")):
            return "anthropic"
    return None
