"""Message lists written by hand, and what is asked of a context in every test."""

from __future__ import annotations

import base64
import json
import struct
from typing import TYPE_CHECKING, Any

import recap
from recap.session import Compaction, compact_transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Json = Any


def ask(*content: Json) -> Json:
    """Return a user message: one text, or blocks."""
    is_text = len(content) == 1 and isinstance(content[0], str)
    return {"role": "user", "content": content[0] if is_text else list(content)}


def say(*content: Json) -> Json:
    """Return an assistant message: one text, or blocks."""
    return ask(*content) | {"role": "assistant"}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def use(call_id: str, name: str = "Read", **arguments: Json) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, content: Json = "done", **more: Json) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def thinking(words: str, signature: str = "sig") -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature}


def redacted(data: str) -> Json:
    return {"type": "redacted_thinking", "data": data}


def step(call_id: str, content: Json = "done", **arguments: Json) -> list[Json]:
    """Return a call and its result."""
    return [say(use(call_id, **arguments)), ask(result(call_id, content))]


def chat_call(call_id: str, arguments: str = "{}", name: str = "read") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat_step(call_ids: Sequence[str], *contents: str) -> list[Json]:
    """Return an OpenAI message of calls and the tool messages behind it."""
    return [
        {"role": "assistant", "content": None, "tool_calls": [chat_call(i) for i in call_ids]},
        *(
            {"role": "tool", "tool_call_id": call_id, "content": content}
            for call_id, content in zip(call_ids, contents, strict=True)
        ),
    ]


def png(width: int, height: int) -> str:
    """Return the beginning of a PNG of that size, in base64."""
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"
    return base64.b64encode(head).decode()


def image(width: int = 100, height: int = 100) -> Json:
    source = {"type": "base64", "media_type": "image/png", "data": png(width, height)}
    return {"type": "image", "source": source}


def words_in(messages: Sequence[Json], role: str | None = None) -> list[str]:
    """Return the texts of a context in order, markers of omissions apart."""
    return [
        words
        for message in messages
        if role in (None, message["role"])
        for words in _texts(message["content"])
        if not words.startswith("[recap: ")
    ]


def blocks_in(messages: Sequence[Json], kind: str) -> list[Json]:
    """Return the content blocks of a type in order."""
    return [
        block
        for message in messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block.get("type") == kind
    ]


def _texts(content: Json) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "text":
            yield block["text"]


def sound(done: Compaction) -> Compaction:
    """Return the compaction after the vendor's validator passed it."""
    errors = [f for f in recap.check(done.messages, done.report.dialect) if f.severity == "error"]
    assert errors == []
    return done


def compacted(messages: Json, request: Json = None, **options: Json) -> Compaction:
    """Return the compaction of a list; all of it is kept unless ``retention`` says otherwise."""
    return sound(recap.compact(messages, request, **{"retention": "1", **options}))


def compacted_log(
    data: bytes, folder: Path, request: str | None = None, **more: Json
) -> Compaction:
    """Return the compaction of a log, all of it kept."""
    path = folder / "session.jsonl"
    path.write_bytes(data)
    settings = recap.Settings(retention="1")
    transcript = recap.open_log(path)
    return sound(compact_transcript(transcript, request, **{"settings": settings, **more}))


def copy_of(value: Json) -> Json:
    """Return an independent copy of a JSON value."""
    return json.loads(json.dumps(value))
