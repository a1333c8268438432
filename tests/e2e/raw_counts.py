"""Numbers of calls and results in a file of the corpus, by counting in its raw JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.e2e.raw import LEFT_OUT
from tests.e2e.raw_logs import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path


class Counts(NamedTuple):
    """Calls and results of a session."""

    calls: int
    results: int


def read_counts(path: Path) -> Counts:
    """Return the numbers of a file, of the first session where it holds several."""
    data, folder = path.read_bytes(), path.parent.name
    if path.suffix == ".jsonl":
        left_out = LEFT_OUT.get(path.name, ())
        return _COUNTERS[folder]([each for at, each in records(data) if at not in left_out])
    if path.suffix == ".md":
        return Counts(0, 0)
    document = json.loads(data)
    lists = (document.get(key) for key in KEYS) if isinstance(document, dict) else iter([document])
    return _COUNTERS[folder](next(each for each in lists if each is not None))


KEYS = ("messages", "traj", "history", "loglines")
"""Where documents hold their list."""


def _of(calls: Iterable[Any], results: Iterable[Any]) -> Counts:
    return Counts(sum(1 for _ in calls), sum(1 for _ in results))


def _claude_code(lines: list[Any]) -> Counts:
    is_agent = all(line.get("isSidechain", True) for line in lines)
    return _blocks(
        line["message"]
        for line in lines
        if line["type"] in ("user", "assistant")
        and (is_agent or not line.get("isSidechain"))
        and not line.get("isApiErrorMessage")
    )


def _blocks(messages: Iterable[Any]) -> Counts:
    lists = (each.get("content") for each in messages)
    kinds = [b["type"] for content in lists if isinstance(content, list) for b in content]
    return Counts(kinds.count("tool_use"), kinds.count("tool_result"))


def _codex(lines: list[Any]) -> Counts:
    items = [line["payload"] for line in lines if line["type"] == "response_item"]
    return _of(
        (item for item in items if item["type"].endswith("_call") and "call_id" in item),
        (item for item in items if item["type"].endswith("_output")),
    )


def _copilot(lines: list[Any]) -> Counts:
    answers = (line["data"] for line in lines if line["type"] == "assistant.message")
    return _of(
        (call for answer in answers for call in answer.get("toolRequests", ())),
        (line for line in lines if line["type"] == "tool.execution_complete"),
    )


def _gemini(records: list[Any]) -> Counts:
    calls = [call for each in records for call in each.get("toolCalls", ())]
    return _of(calls, (call for call in calls if call.get("result") is not None))


def _pi(lines: list[Any]) -> Counts:
    messages = [line["message"] for line in lines if line["type"] == "message"]
    lists = (each["content"] for each in messages if isinstance(each["content"], list))
    return _of(
        (block for content in lists for block in content if block["type"] == "toolCall"),
        (each for each in messages if each["role"] == "toolResult"),
    )


def _opencode(messages: list[Any]) -> Counts:
    parts = (part for message in messages for part in message["parts"])
    states = [part["state"] for part in parts if part["type"] == "tool"]
    return _of(states, (each for each in states if "output" in each or "error" in each))


def _chat(messages: list[Any]) -> Counts:
    return _of(
        (call for message in messages for call in message.get("tool_calls") or ()),
        (message for message in messages if message["role"] == "tool"),
    )


def _langchain(messages: list[Any]) -> Counts:
    data = [message["data"] for message in messages]
    keys = ("tool_calls", "invalid_tool_calls")
    return _of(
        (call for each in data for key in keys for call in each.get(key, ())),
        (message for message in messages if message["type"] == "tool"),
    )


def _openhands(events: list[Any]) -> Counts:
    """Count the events that name a call; rows of a benchmark hold a session each."""
    if "history" in events[0]:
        events = events[0]["history"]
    named = [event for event in events if event.get("tool_call_metadata")]
    return _of(
        {event["tool_call_metadata"]["tool_call_id"]: 0 for event in named if "action" in event},
        (event for event in named if "observation" in event),
    )


def _swe_together(messages: list[Any]) -> Counts:
    """Count blocks, else uses beside the text, else elements in the text."""
    if any(isinstance(message.get("content"), list) for message in messages):
        return _blocks(messages)
    uses = [use for message in messages for use in message.get("tool_uses") or ()]
    if uses:
        return _of(uses, (use for use in uses if use.get("output") is not None))
    by_role = {"assistant": "", "user": ""}
    for message in messages:
        by_role[message["role"]] += f"\n{message['content']}"
    return _of(
        re.findall(r'^<tool_use id="[^"]+">', by_role["assistant"], re.MULTILINE),
        re.findall(r'^<tool_result id="[^"]+">', by_role["user"], re.MULTILINE),
    )


_COUNTERS: Mapping[str, Callable[[list[Any]], Counts]] = {
    "claude-code": _claude_code,
    "claude-web": _claude_code,
    "codex": _codex,
    "copilot-cli": _copilot,
    "gemini-cli": _gemini,
    "pi": _pi,
    "opencode": _opencode,
    "openai-chat": _chat,
    "swe-agent": _chat,
    "mini-swe-agent": _chat,
    "langchain": _langchain,
    "anthropic-messages": _blocks,
    "openhands": _openhands,
    "swe-together": _swe_together,
}
