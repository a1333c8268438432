"""What a person wrote in documents that hold a list: messages, events, log lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.raw_logs import claude_said
from tests.e2e.raw_words import Said, Session, list_session, texts_of, words_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def messages(document: Any) -> Session:
    """Return a session that is a list of chat messages, or a document around one."""
    key = next((key for key in ("traj", "messages") if key in document), "")
    said = [
        Said(at, words)
        for at, message in enumerate(document[key] if key else document, 1)
        if message.get("role") == "user"
        for words in words_in(message.get("content"))
    ]
    return list_session(document, key, said)


def claude_web(document: Any) -> Session:
    """Return a session of claude.ai/code."""
    return list_session(document, "loglines", claude_said(enumerate(document["loglines"], 1)))


def gemini_cli(document: Any) -> Session:
    """Return a session of Gemini CLI in one document."""
    said = [
        Said(at, words)
        for at, message in enumerate(document["messages"], 1)
        if message["type"] == "user"
        for words in texts_of(message["content"])
    ]
    return list_session(document, "messages", said)


def opencode(document: Any) -> Session:
    """Return a session of OpenCode: what it made itself is synthetic."""
    said = [
        Said(at, part["text"])
        for at, message in enumerate(document["messages"], 1)
        if message["info"]["role"] == "user"
        for part in message["parts"]
        if part["type"] == "text" and not part.get("synthetic")
    ]
    return list_session(document, "messages", said)


def langchain(document: Any) -> Session:
    """Return a session of LangChain messages."""
    said = [
        Said(at, words)
        for at, message in enumerate(document["messages"], 1)
        if message["type"] == "human"
        for words in texts_of(message["data"]["content"])
    ]
    return list_session(document, "messages", said)


def trajectory(document: Any) -> Session:
    """Return a run of (mini-)SWE-agent: one task, then observations in whatever role."""
    key = "history" if isinstance(document, dict) else ""
    history = document[key] if key else document
    at, task = next(
        (at, message)
        for at, message in enumerate(history, 1)
        if message["role"] == "user" and not message.get("is_demo")
    )
    return list_session(document, key, [Said(at, task["content"])])


def openhands(document: Any) -> Session:
    """Return a session of OpenHands: a list of events, or a benchmark's row with one."""
    key = "history" if isinstance(document, dict) else ""
    said = [
        Said(at, event["args"]["content"])
        for at, event in enumerate(document[key] if key else document, 1)
        if event["source"] == "user" and event.get("action") == "message"
    ]
    return list_session(document, key, said)


READERS: Mapping[str, Callable[[Any], Session]] = {
    "claude-web": claude_web,
    "gemini-cli": gemini_cli,
    "opencode": opencode,
    "langchain": langchain,
    "swe-agent": trajectory,
    "mini-swe-agent": trajectory,
    "openai-chat": messages,
    "anthropic-messages": messages,
    "swe-together": messages,
}
"""Formats of one document, by the folder of their files."""
