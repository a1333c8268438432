"""Turns as the elements of one JSON document: message lists of the vendors, trajectories, events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.ingest.turns import Step, Turn

Record = dict[str, Any]


def anthropic(turn: Turn) -> Iterator[Record]:
    """Yield Anthropic messages."""
    yield {"role": "user", "content": turn.request}
    for step in turn.steps:
        blocks: list[Record] = [
            {"type": "tool_use", "id": step.id, "name": step.tool, "input": step.arguments}
        ]
        if step.words:
            blocks.insert(0, {"type": "text", "text": step.words})
        if step.thinking:
            thought = {"type": "thinking", "thinking": step.thinking, "signature": "s" * 300}
            blocks.insert(0, thought)
        yield {"role": "assistant", "content": blocks}
        result = {"type": "tool_result", "tool_use_id": step.id, "content": step.result}
        yield {"role": "user", "content": [result]}
    yield {"role": "assistant", "content": [{"type": "text", "text": turn.answer}]}


def openai(turn: Turn) -> Iterator[Record]:
    """Yield OpenAI chat messages."""
    yield {"role": "user", "content": turn.request}
    for step in turn.steps:
        thought = {"reasoning_content": step.thinking} if step.thinking else {}
        yield {"role": "assistant", "content": step.words or None, **thought, **_tool_calls(step)}
        yield {"role": "tool", "tool_call_id": step.id, "content": step.result}
    yield {"role": "assistant", "content": turn.answer}


def _tool_calls(step: Step) -> Record:
    function = {"name": step.tool, "arguments": json.dumps(step.arguments)}
    return {"tool_calls": [{"id": step.id, "type": "function", "function": function}]}


def responses(turn: Turn) -> Iterator[Record]:
    """Yield items of OpenAI Responses."""
    yield {"role": "user", "content": [{"type": "input_text", "text": turn.request}]}
    for step in turn.steps:
        if step.thinking:
            summary = [{"type": "summary_text", "text": step.thinking}]
            yield {"type": "reasoning", "id": f"rs_{step.id}", "summary": summary}
        if step.words:
            yield _answer(step.words)
        arguments = json.dumps(step.arguments)
        call = {"type": "function_call", "call_id": step.id, "name": step.tool}
        yield {**call, "arguments": arguments}
        yield {"type": "function_call_output", "call_id": step.id, "output": step.result}
    yield _answer(turn.answer)


def _answer(text: str) -> Record:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


def gemini(turn: Turn) -> Iterator[Record]:
    """Yield Gemini contents."""
    yield {"role": "user", "parts": [{"text": turn.request}]}
    for step in turn.steps:
        call = {"functionCall": {"id": step.id, "name": step.tool, "args": step.arguments}}
        thought = [{"text": step.thinking, "thought": True}] if step.thinking else []
        said = [{"text": step.words}] if step.words else []
        yield {"role": "model", "parts": [*thought, *said, call]}
        response = {"id": step.id, "name": step.tool, "response": {"output": step.result}}
        yield {"role": "user", "parts": [{"functionResponse": response}]}
    yield {"role": "model", "parts": [{"text": turn.answer}]}


def langchain(turn: Turn) -> Iterator[Record]:
    """Yield messages as ``messages_to_dict`` writes them."""
    yield _langchain("human", turn.request)
    for step in turn.steps:
        call = {"name": step.tool, "args": step.arguments, "id": step.id, "type": "tool_call"}
        extra = {"reasoning_content": step.thinking} if step.thinking else {}
        yield _langchain("ai", step.words, tool_calls=[call], additional_kwargs=extra)
        yield _langchain("tool", step.result, tool_call_id=step.id, status="success")
    yield _langchain("ai", turn.answer)


def _langchain(kind: str, content: str, **data: Any) -> Record:
    fields = {"content": content, "additional_kwargs": {}, "response_metadata": {}, "type": kind}
    return {"type": kind, "data": {**fields, **data}}


def opencode(turn: Turn) -> Iterator[Record]:
    """Yield messages of an export; a part holds a call and its result."""
    yield _opencode("user", turn.number, {"type": "text", "text": turn.request})
    for step in turn.steps:
        state = {
            "status": "completed", "input": step.arguments, "output": step.result, "title": "",
            "metadata": {"preview": step.result[:200]}, "time": {"start": 1, "end": 2},
        }  # fmt: skip
        tool = {"type": "tool", "callID": step.id, "tool": step.tool, "state": state}
        texts = [
            {"type": kind, "text": text}
            for kind, text in (("reasoning", step.thinking), ("text", step.words))
            if text
        ]
        yield _opencode("assistant", step.id, {"type": "step-start"}, *texts, tool)
    yield _opencode("assistant", f"a{turn.number}", {"type": "text", "text": turn.answer})


def _opencode(role: str, uid: object, *parts: Record) -> Record:
    info = {"id": f"msg_{uid}", "role": role, "sessionID": "ses_1", "time": {"created": 1}}
    return {"info": info, "parts": list(parts)}


def swe_together(turn: Turn) -> Iterator[Record]:
    """Yield messages of shape A: Anthropic blocks, one a message."""
    for message in anthropic(turn):
        content = message["content"]
        for block in [content] if isinstance(content, str) else content:
            held = block if isinstance(content, str) else [block]
            yield {"role": message["role"], "content": held, "timestamp": "", "tool_uses": []}


def swe_agent(turn: Turn) -> Iterator[Record]:
    """Yield messages of a trajectory's history."""
    for message in openai(turn):
        yield {**message, "agent": "main", "message_type": "action"}


def mini_swe_agent(turn: Turn) -> Iterator[Record]:
    """Yield messages of a trajectory: commands and what they print as plain text."""
    yield {"role": "user", "content": turn.request}
    for step in turn.steps:
        command = f"{step.words}\n```bash\n{step.code}\n```"
        yield {"role": "assistant", "content": command}
        printed = f"<returncode>0</returncode>\n<output>\n{step.result}\n</output>"
        yield {"role": "user", "content": printed}
    yield {"role": "assistant", "content": turn.answer}


def openhands(turn: Turn) -> Iterator[Record]:
    """Yield events; an action holds the model's answer it comes from."""
    yield _openhands("user", turn.number, action="message", args={"content": turn.request})
    for step in turn.steps:
        metadata = {"function_name": step.tool, "tool_call_id": step.id}
        message = {"role": "assistant", "content": step.words, **_tool_calls(step)}
        response = {"id": f"chat_{step.id}", "model": "m1", "choices": [{"message": message}]}
        yield _openhands(
            "agent", step.id, action="edit", args={**step.arguments, "thought": step.words},
            tool_call_metadata={**metadata, "model_response": response},
        )  # fmt: skip
        yield _openhands(
            "agent", f"r{step.id}", observation="edit", content=step.result, cause=step.id,
            tool_call_metadata=metadata, extras={"path": step.path},
        )  # fmt: skip
    args = {"content": turn.answer}
    yield _openhands("agent", f"a{turn.number}", action="message", args=args)


def _openhands(source: str, uid: object, **fields: Any) -> Record:
    return {"id": uid, "timestamp": "2026-01-02T03:04:05", "source": source, **fields}
