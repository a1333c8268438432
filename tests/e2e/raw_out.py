"""What a rendered context holds, read from each vendor's JSON without recap."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.e2e.raw_words import human, spoken, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REQUESTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "responses": lambda system, messages: {"instructions": system[0], "input": messages},
    "gemini": lambda system, messages: {
        "systemInstruction": {"parts": system},
        "contents": messages,
    },
}
"""Dialect -> the request that holds system text beside its messages, where no ``system`` does."""


class Context(NamedTuple):
    """A context in parts: texts of the user, texts of results, ids of calls, ids of results."""

    texts: list[str]
    results: list[str]
    calls: list[str]
    answers: list[str]

    @property
    def words(self) -> Counter[str]:
        """What a person may have said: user texts, and their words in results."""
        return Counter(human(text) or text for text in self.texts) + Counter(
            words for text in self.results if (words := spoken(text))
        )

    @property
    def is_paired(self) -> bool:
        """True when there are as many results of each id as calls."""
        return Counter(self.calls) == Counter(self.answers)


def context_of(dialect: str, messages: list[Any]) -> Context:
    """Return the parts of a vendor's messages."""
    context = Context([], [], [], [])
    for message in messages:
        _TAKERS[dialect](context, message)
    return context


def request_of(dialect: str, system: list[Any], messages: list[Any]) -> Any:
    """Return what ``to_json`` writes."""
    if not system:
        return messages
    return REQUESTS.get(dialect, _with_system)(system, messages)


def _with_system(system: list[Any], messages: list[Any]) -> Any:
    return {"system": system, "messages": messages}


def _openai(context: Context, message: Any) -> None:
    context.calls.extend(call["id"] for call in message.get("tool_calls") or [])
    if message["role"] == "tool":
        context.answers.append(message["tool_call_id"])
        context.results.extend(texts_of(message["content"]))
    if message["role"] == "user":
        context.texts.extend(texts_of(message["content"]))


def _anthropic(context: Context, message: Any) -> None:
    content = message["content"]
    for block in content if isinstance(content, list) else []:
        if block["type"] == "tool_use":
            context.calls.append(block["id"])
        if block["type"] == "tool_result":
            context.answers.append(block["tool_use_id"])
            context.results.extend(texts_of(block.get("content")))
    if message["role"] == "user":
        context.texts.extend(texts_of(content))


def _responses(context: Context, item: Any) -> None:
    kind = item.get("type", "message")
    if kind.endswith("_output"):
        context.answers.append(item["call_id"])
        context.results.extend(texts_of(item.get("output")))
    elif kind.endswith("_call") and "call_id" in item:  # a search of the vendor's has no result
        context.calls.append(item["call_id"])
    elif item.get("role") == "user":
        context.texts.extend(texts_of(item["content"]))


def _gemini(context: Context, content: Any) -> None:
    for part in content["parts"]:
        if call := part.get("functionCall"):
            context.calls.append(f"{call['name']} {call['id']}")
        elif response := part.get("functionResponse"):
            context.answers.append(f"{response['name']} {response['id']}")
            context.results.extend(map(str, response["response"].values()))
        elif content["role"] == "user" and "text" in part:
            context.texts.append(part["text"])


def _langchain(context: Context, message: Any) -> None:
    kind, data = message["type"], message["data"]
    if kind == "ai":
        calls = (*data.get("tool_calls", ()), *data.get("invalid_tool_calls", ()))
        context.calls.extend(call["id"] for call in calls)
    elif kind == "tool":
        context.answers.append(data["tool_call_id"])
        context.results.extend(texts_of(data["content"]))
    elif kind == "human":
        context.texts.extend(texts_of(data["content"]))


def _opencode(context: Context, message: Any) -> None:
    for part in message["parts"]:
        if part["type"] == "tool":
            state = part["state"]
            context.calls.append(part["callID"])
            if state["status"] in ("completed", "error"):
                context.answers.append(part["callID"])
                context.results.append(state.get("output", state.get("error")))
        elif message["info"]["role"] == "user" and not part.get("synthetic"):
            context.texts.extend(texts_of([part]))


_TAKERS: Mapping[str, Callable[[Context, Any], None]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "responses": _responses,
    "gemini": _gemini,
    "langchain": _langchain,
    "opencode": _opencode,
}
