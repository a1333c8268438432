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

_CODEX = frozenset(("session_meta", "turn_context", "response_item", "event_msg", "compacted"))
_COPILOT = re.compile(r"(session|user|assistant|tool|hook|system|permission)\.\w+")
_RESPONSES = frozenset(
    ("message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
     "local_shell_call", "web_search_call", "computer_call")
)  # fmt: skip


def codex(sample: Sample) -> str | None:
    """Codex CLI rollouts."""
    for line, record in sample.records:
        if record.get("type") in _CODEX and isinstance(record.get("payload"), dict):
            return f"line {line}: type {record['type']} with payload"
    return None


def copilot_cli(sample: Sample) -> str | None:
    """Copilot CLI events."""
    for line, record in sample.records:
        if _COPILOT.fullmatch(_text(record, "type")) and isinstance(record.get("data"), dict):
            return f"line {line}: type {record['type']} with data"
    return None


def gemini_cli(sample: Sample) -> str | None:
    """Gemini CLI sessions, one document or one message a line."""
    heads = [record for _, record in sample.records[:1]]
    for head in (*heads, sample.document):
        if isinstance(head, dict) and "sessionId" in head and "projectHash" in head:
            return "sessionId with projectHash"
    return None


def pi(sample: Sample) -> str | None:
    """Logs of pi."""
    for line, record in sample.records[:1]:
        if record.get("type") == "session" and "id" in record and "cwd" in record:
            return f"line {line}: type session with id and cwd"
    return None


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
