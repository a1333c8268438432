"""Formats that are recognised but not read yet, so that they are refused by name.

Each recogniser looks at a sample of the input and returns what shows its format, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from recap.transcript.model import Json


class Sample(NamedTuple):
    """What formats are recognised by.

    Attributes:
        head: The first characters of the file.
        document: The whole file where it is one JSON value; None otherwise.
        records: The first records of a file with one JSON object a line (or one alone), with
            their 1-based lines.
    """

    head: str
    document: Json = None
    records: tuple[tuple[int, Json], ...] = ()


Detector: TypeAlias = Callable[[Sample], str | None]

_RESPONSES = frozenset(
    ("message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
     "local_shell_call", "web_search_call", "computer_call")
)  # fmt: skip


def opencode(sample: Sample) -> str | None:
    """OpenCode exports."""
    document = sample.document
    if not isinstance(document, dict) or not isinstance(document.get("info"), dict):
        return None
    messages = _objects(document.get("messages"))
    if any("info" in message and "parts" in message for message in messages):
        return "messages of info and parts"
    return "a session id ses_" if _text(document["info"], "id").startswith("ses_") else None


def langchain(sample: Sample) -> str | None:
    """LangChain messages, as ``messages_to_dict`` and ``dumpd`` write them."""
    document = sample.document
    for item in _objects(document.get("messages") if isinstance(document, dict) else document):
        if _text(item, "type") in ("human", "ai", "tool", "system") and "data" in item:
            return "messages of type and data"
        if "lc" in item and "kwargs" in item:
            return "messages of lc and kwargs"
    return None


def openai_responses(sample: Sample) -> str | None:
    """Requests and answers of OpenAI's Responses API, and bare lists of their items."""
    document = sample.document
    if isinstance(document, dict):
        if document.get("object") == "response":
            return "object response"
        document = document.get("input")
    items = _objects(document) or [record for _, record in sample.records]
    kinds = [_text(item, "type") for item in items]
    found = next((kind for kind in kinds if kind in _RESPONSES - {"message"}), None)
    if found and all(kind in _RESPONSES for kind in kinds if kind):
        return f"items of type {found}"
    return None


def _objects(value: Json) -> list[dict[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: dict[str, Json], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""
