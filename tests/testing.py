"""Factories of canonical messages for tests, and tables built from them."""

from __future__ import annotations

from typing import Any

from recap.transcript.authors import mark_steering
from recap.transcript.lists import read_messages
from recap.transcript.model import Author, Envelope, Held, Message, Part, Role
from recap.transcript.parts import call_part, result_part, text_part, thinking_part


def text(words: str, author: Author = "human") -> Part:
    """Return a text part of no dialect."""
    return text_part(Held(words), words, author)


def call(call_id: str, name: str = "Read", **arguments: Any) -> Part:
    """Return a call part in Anthropic's form."""
    block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    return call_part(Held(block), name, call_id, arguments, path=("input",), dialect="anthropic")


def result(call_id: str, content: Any = "done", *, is_error: bool = False) -> Part:
    """Return a result part in Anthropic's form."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return result_part(
        Held(block), call_id, content, path=("content",), is_error=is_error, dialect="anthropic"
    )


def thinking(words: str, *, signature: str = "sig") -> Part:
    """Return a thinking part in Anthropic's form."""
    block = {"type": "thinking", "thinking": words, "signature": signature}
    return thinking_part(
        Held(block), words, path=("thinking",), has_signature=bool(signature), dialect="anthropic"
    )


def message(role: Role, *parts: Part, line: int = 0, **changes: Any) -> Message:
    """Return a message whose envelope has no raw form."""
    return Message(role, parts, line, Envelope(None, len(parts), "anthropic"), **changes)


def user(words: str, **changes: Any) -> Message:
    """Return a person's message."""
    return message("user", text(words), **changes)


def reply(words: str, **changes: Any) -> Message:
    """Return a plain assistant message."""
    return message("assistant", text(words, "agent"), **changes)


def step(call_id: str, output: str = "done", name: str = "Read", **arguments: Any) -> list[Message]:
    """Return an assistant message with one call, and its result."""
    return [
        message("assistant", call(call_id, name, **arguments)),
        message("tool", result(call_id, output)),
    ]


def conversation(turns: int, steps: int = 3, size: int = 200) -> list[dict[str, Any]]:
    """Return an Anthropic message list: every turn edits one file and reads others."""
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Please fix module_{turn}.py and its test"})
        for at in range(steps):
            call_id = f"toolu_{turn}_{at}"
            name, path = ("Edit", f"src/module_{turn}.py") if at == 1 else ("Read", f"a/f_{at}.py")
            messages.append(
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": f"Looking at {path}"},
                        {
                            "type": "tool_use",
                            "id": call_id,
                            "name": name,
                            "input": {"file_path": path},
                        },
                    ],
                }
            )
            body = " ".join(f"name_{turn}_{at}_{i}" for i in range(size // 12))
            messages.append(
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": call_id, "content": body}],
                }
            )
        messages.append({"role": "assistant", "content": f"module_{turn}.py is fixed"})
    return messages


__all__ = [
    "call", "conversation", "mark_steering", "message", "read_messages", "reply", "result", "step",
    "text", "thinking", "user",
]  # fmt: skip
