"""Formats that are recognised but not read yet, so that they are refused by name.

Each recogniser looks at a sample of the input and returns what shows its format, or None.
"""

from __future__ import annotations

import re
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


def swe_agent(sample: Sample) -> str | None:
    """Trajectories of SWE-agent."""
    document = sample.document
    if isinstance(document, dict) and _objects(document.get("trajectory")):
        return "trajectory with history" if "history" in document else "trajectory"
    return None


def mini_swe_agent(sample: Sample) -> str | None:
    """Trajectories of mini-swe-agent: a document that says so, or a list of fenced commands."""
    document = sample.document
    if isinstance(document, dict):
        return "trajectory_format" if "trajectory_format" in document else None
    is_observed = any(
        _text(message, "role") == "user" and _text(message, "content").startswith("<returncode>")
        for message in _objects(document)
    )
    return "observations that begin with <returncode>" if is_observed else None


def openhands(sample: Sample) -> str | None:
    """Event lists and benchmark rows of OpenHands."""
    for line, record in sample.records:
        if "instance_id" in record and _are_events(record.get("history")):
            return f"line {line}: instance_id with a history of events"
    return "events with a source" if _are_events(sample.document) else None


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


def aider(sample: Sample) -> str | None:
    """Chat histories of Aider."""
    mark = "# aider chat started at"
    return mark if re.search(f"^{mark}", sample.head, re.MULTILINE) else None


def _objects(value: Json) -> list[dict[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _are_events(value: Json) -> bool:
    return any(
        "source" in event and ("action" in event or "observation" in event)
        for event in _objects(value)
    )


def _text(value: dict[str, Json], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""
