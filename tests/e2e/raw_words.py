"""A session cut anywhere, and the rules that tell a person's words from a machine's."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

MACHINE = re.compile(
    r"\s*<(system-reminder|local-command-caveat|local-command-stdout|local-command-stderr"
    r"|task-notification|bash-input|bash-stdout|bash-stderr|environment_context|turn_aborted"
    r"|user_instructions|command-name|command-message|tool_result id)\b"
)
OTHER_MACHINE = (
    "[Request interrupted by user",
    "This session is being continued from a previous",
    "Base directory for this skill: ",  # the body of a skill
    "[Image: source: ",  # where a pasted image came from
    "Tool loaded.",
    "# AGENTS.md instructions for ",
)
REFUSAL = "The user doesn't want to "
SPOKEN = "the user said:\n"
ANSWERS = ("User has answered your questions:", "User answered Claude's questions:")
ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


class Said(NamedTuple):
    """A text a person wrote: where it stands (1-based line or index) and its words."""

    at: int
    words: str


class Session(NamedTuple):
    """What a person said in a session, its size in lines or elements, and how to cut it short."""

    said: list[Said]
    size: int
    cut: Callable[[int], bytes]


def lines_session(data: bytes, said: list[Said]) -> Session:
    """Return a session that is cut after a line."""
    lines = data.split(b"\n")
    return Session(said, len(lines), lambda at: b"\n".join(lines[:at]) + b"\n" * (at < len(lines)))


def list_session(document: Any, key: str, said: list[Said]) -> Session:
    """Return a session that is cut after an element of a document, or of its list under a key."""
    elements = document[key] if key else document

    def cut(at: int) -> bytes:
        whole = {**document, key: elements[:at]} if key else elements[:at]
        return json.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass")

    return Session(said, len(elements), cut)


def human(text: str) -> str:
    """Return the words of a person in a user text, "" for machine text."""
    if not text.strip() or text.startswith(OTHER_MACHINE):
        return ""
    if MACHINE.match(text):
        arguments = ARGUMENTS.search(text)
        if arguments:
            return arguments.group(1) if arguments.group(1).strip() else ""
        rest = re.sub(r"<system-reminder>.*?</system-reminder>", "", text, flags=re.DOTALL)
        return text if not MACHINE.match(rest) and rest.strip() else ""
    return text


def texts_of(content: Any) -> list[str]:
    """Return the texts of a content value, results apart."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    return [
        b["text"] for b in blocks
        if isinstance(b, dict) and b.get("type") in ("text", "input_text")
        and isinstance(b.get("text"), str)
    ]  # fmt: skip


def spoken(text: str) -> str:
    """Return a person's words in a result: why a call was refused, or answers to questions."""
    if text.startswith(ANSWERS):
        return text
    return text.partition(SPOKEN)[2] if text.startswith(REFUSAL) else ""


def words_in(content: Any) -> list[str]:
    """Return a person's words in the content of a user message."""
    results = [
        block.get("content")
        for block in (content if isinstance(content, list) else [])
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]
    answers = [spoken(text) for result in results for text in texts_of(result)]
    return [words for words in (*map(human, texts_of(content)), *answers) if words]
