"""Whose message list this is: what in a message, or beside the list, shows the dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from recap.transcript.model import Dialect, Json

Fields: TypeAlias = "dict[str, Json]"

OPENAI_KEYS = ("tool_calls", "tool_call_id", "function_call", "refusal")
OPENAI_TYPES = frozenset(("image_url", "input_audio", "file", "refusal"))
OPENAI_ROLES = frozenset(("tool", "function", "developer"))
ANTHROPIC_TYPES = frozenset(("thinking", "redacted_thinking", "tool_use", "image", "document"))
RESPONSES_TYPES = frozenset(("input_text", "output_text", "input_image", "input_file"))
RESPONSES_ITEMS = frozenset(
    ("reasoning", "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request",
     "mcp_approval_response", "program", "program_output", "tool_search_output")
)  # fmt: skip
LANGCHAIN_TYPES = frozenset(
    ("human", "ai", "system", "tool", "function", "chat", "developer", "remove")
)

DOCUMENT_KEYS: Mapping[str, Dialect] = {"input": "responses", "contents": "gemini"}
"""Key of a request's list that only one vendor uses."""


def sign_of(messages: Sequence[Json]) -> tuple[Dialect, str] | None:
    """Return the dialect of a list and what shows it, None where nothing in it does."""
    numbered = [(n, item) for n, item in enumerate(messages, 1) if isinstance(item, dict)]
    for dialect, find in _SIGNS:
        for number, message in numbered:
            if sign := find(message):
                return dialect, f"{sign} in message {number}"
    return None


def _langchain(message: Fields) -> str:
    kind, data = message.get("type"), message.get("data")
    if isinstance(data, dict) and isinstance(kind, str):
        is_ours = kind in LANGCHAIN_TYPES or kind.endswith("MessageChunk")
        return "type and data" if is_ours and "content" in data else ""
    return "lc and kwargs" if "lc" in message and isinstance(message.get("kwargs"), dict) else ""


def _opencode(message: Fields) -> str:
    is_ours = isinstance(message.get("info"), dict) and isinstance(message.get("parts"), list)
    return "info and parts" if is_ours else ""


def _gemini(message: Fields) -> str:
    parts = message.get("parts")
    if "content" in message or not isinstance(parts, list) or not parts:
        return ""
    is_ours = all(isinstance(part, dict) and not _is_text(part.get("type")) for part in parts)
    return "parts without types" if is_ours else ""


def _responses(message: Fields) -> str:
    kind = message.get("type")
    if isinstance(kind, str) and "role" not in message:
        is_item = kind in RESPONSES_ITEMS or kind.endswith(("_call", "_call_output"))
        return f"an item of type {kind}" if is_item else ""
    kinds = set(_types(message))
    found = kinds & RESPONSES_TYPES
    is_ours = found and kinds <= RESPONSES_TYPES | {"refusal", "input_audio"}
    return f"a part of type {min(found)}" if is_ours else ""


def _openai(message: Fields) -> str:
    role = message.get("role")
    if _is_text(role) and role in OPENAI_ROLES:
        return f"role {role}"
    for key in OPENAI_KEYS:
        if message.get(key) is not None:
            return key
    return next((f"a part of type {kind}" for kind in _types(message) if kind in OPENAI_TYPES), "")


def _anthropic(message: Fields) -> str:
    return next(
        (
            f"a block of type {kind}"
            for kind in _types(message)
            if kind in ANTHROPIC_TYPES or kind.endswith(("tool_result", "_tool_use"))
        ),
        "",
    )


_SIGNS: tuple[tuple[Dialect, Callable[[Fields], str]], ...] = (
    ("langchain", _langchain),
    ("opencode", _opencode),
    ("gemini", _gemini),
    ("responses", _responses),
    ("openai", _openai),
    ("anthropic", _anthropic),
)
"""The most telling first."""


def _types(message: Fields) -> Iterable[str]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(kind, str):
            yield kind


def _is_text(value: Json) -> bool:
    return isinstance(value, str)
