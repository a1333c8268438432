"""Turns as agents' logs write them: with one record a line, and Aider's markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bench.ingest.documents import Record, anthropic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.ingest.turns import Turn

TIME = "2026-01-02T03:04:05.678Z"


def claude_code(turn: Turn) -> Iterator[bytes]:
    """Yield the lines of a turn: a line a block, and what the client notes in between.

    As in real logs, two thirds of the bytes repeat a result for the screen or are no conversation.
    """
    parent = f"a{turn.number - 1}" if turn.number else None
    for kind, uuid, content, more in _spoken(turn):
        message: Record = {"role": kind, "content": content}
        if kind == "assistant":
            message |= {"id": f"msg{uuid[1:]}", "model": "m1", "type": "message", "usage": _USAGE}
        yield _line(**_frame(parent, uuid), type=kind, message=message, **more)
        parent = uuid
        if "toolUseResult" in more:
            progress = {"type": "hook_progress", "hookEvent": "PostToolUse", "command": "x" * 700}
            yield _line(**_frame(parent, f"p{uuid}"), type="progress", data=progress)
            parent = f"p{uuid}"
    noted = {"type": "task_reminder", "content": [{"subject": "x" * 200}] * 8}
    yield _line(**_frame(parent, f"n{turn.number}"), type="attachment", attachment=noted)
    yield _line(**_frame(parent, f"s{turn.number}"), type="system", subtype="turn_duration")
    yield _line(type="file-history-snapshot", messageId=parent, snapshot={"x": "y" * 500})


_USAGE = {"input_tokens": 4, "cache_read_input_tokens": 40_000, "output_tokens": 300}


def _frame(parent: str | None, uuid: str) -> Record:
    return {
        "parentUuid": parent, "isSidechain": False, "userType": "external",
        "cwd": "/home/me/work/repositories/service/worktrees/feature-of-the-week",
        "sessionId": "5b6c1f0e-5a0f-4d56-9f59-000000000001", "version": "2.1.30",
        "gitBranch": "feature-of-the-week", "slug": "three-words-together", "uuid": uuid,
        "requestId": "req_011CW0000000000000000000", "timestamp": TIME, "entrypoint": "cli",
    }  # fmt: skip


def _spoken(turn: Turn) -> Iterator[tuple[str, str, Any, Record]]:
    """Yield type, uuid, content and further fields of each line of the conversation."""
    yield "user", f"u{turn.number}", turn.request, {}
    for step in turn.steps:
        if step.thinking:
            block = {"type": "thinking", "thinking": step.thinking, "signature": "s" * 1000}
            yield "assistant", f"t{step.id}", [block], {}
        if step.words:
            yield "assistant", f"w{step.id}", [{"type": "text", "text": step.words}], {}
        call = {"type": "tool_use", "id": step.id, "name": step.tool, "input": step.arguments}
        yield "assistant", f"c{step.id}", [call], {}
        result = {"type": "tool_result", "tool_use_id": step.id, "content": step.result}
        shown = {"filePath": step.path, "originalFile": step.result, "structuredPatch": step.result}
        yield "user", f"r{step.id}", [result], {"toolUseResult": shown}
    yield "assistant", f"a{turn.number}", [{"type": "text", "text": turn.answer}], {}


def claude_web(turn: Turn) -> Iterator[bytes]:
    """Yield the elements of an export."""
    for message in anthropic(turn):
        yield _line(type=message["role"], timestamp=TIME, message=message)


def codex(turn: Turn) -> Iterator[bytes]:
    """Yield the lines of a turn; events repeat what is said."""
    yield _payload("turn_context", cwd="/home/me/work", model="m1")
    yield _payload("event_msg", type="user_message", message=turn.request)
    yield _payload("response_item", **_codex_message("user", "input_text", turn.request))
    for step in turn.steps:
        if step.thinking:
            summary = [{"type": "summary_text", "text": step.thinking}]
            yield _payload("response_item", type="reasoning", summary=summary)
        if step.words:
            yield _payload(
                "response_item", **_codex_message("assistant", "output_text", step.words)
            )
        arguments = json.dumps(step.arguments)
        yield _payload(
            "response_item",
            type="function_call",
            name=step.tool,
            arguments=arguments,
            call_id=step.id,
        )
        yield _payload(
            "response_item", type="function_call_output", call_id=step.id, output=step.result
        )
        yield _payload("event_msg", type="token_count", info={"total": _USAGE})
    yield _payload("event_msg", type="agent_message", message=turn.answer)
    yield _payload("response_item", **_codex_message("assistant", "output_text", turn.answer))


def _codex_message(role: str, kind: str, text: str) -> Record:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _payload(line: str, **payload: Any) -> bytes:
    return _line(timestamp=TIME, type=line, payload=payload)


def copilot_cli(turn: Turn) -> Iterator[bytes]:
    """Yield the events of a turn."""
    transformed = f"<current_datetime>{TIME}</current_datetime>\n\n{turn.request}"
    yield _event("user.message", content=turn.request, transformedContent=transformed)
    for step in turn.steps:
        request = {"toolCallId": step.id, "name": step.tool, "arguments": step.arguments}
        yield _event(
            "assistant.message", messageId=step.id, model="m1", content=step.words,
            reasoningText=step.thinking, toolRequests=[request],
        )  # fmt: skip
        yield _event("tool.execution_start", toolCallId=step.id, arguments=step.arguments)
        result = {"content": step.result, "detailedContent": step.result}
        yield _event("tool.execution_complete", toolCallId=step.id, success=True, result=result)
    yield _event("assistant.message", messageId=f"m{turn.number}", content=turn.answer)


def _event(kind: str, **data: Any) -> bytes:
    return _line(type=kind, data=data, id="5b6c1f0e", timestamp=TIME, parentId="5b6c1f0d")


def gemini_cli(turn: Turn) -> Iterator[bytes]:
    """Yield the records of a turn; a call holds its result."""
    yield _line(id=f"u{turn.number}", timestamp=TIME, type="user", content=turn.request)
    for step in turn.steps:
        response = {"id": step.id, "name": step.tool, "response": {"output": step.result}}
        call = {
            "id": step.id, "name": step.tool, "args": step.arguments, "status": "success",
            "result": [{"functionResponse": response}], "resultDisplay": step.result,
        }  # fmt: skip
        thoughts = [{"subject": "Next", "description": step.thinking}] if step.thinking else []
        yield _line(
            id=step.id, timestamp=TIME, type="gemini", content=step.words, model="m1",
            thoughts=thoughts, toolCalls=[call], tokens=_USAGE,
        )  # fmt: skip
    yield _line(id=f"a{turn.number}", timestamp=TIME, type="gemini", content=turn.answer)


def pi(turn: Turn) -> Iterator[bytes]:
    """Yield the lines of a turn."""
    yield _pi(role="user", content=[{"type": "text", "text": turn.request}])
    for step in turn.steps:
        content: list[Record] = [
            {"type": "toolCall", "id": step.id, "name": step.tool, "arguments": step.arguments}
        ]
        if step.words:
            content.insert(0, {"type": "text", "text": step.words})
        if step.thinking:
            content.insert(0, {"type": "thinking", "thinking": step.thinking})
        yield _pi(role="assistant", content=content, model="m1", usage=_USAGE, stopReason="toolUse")
        result = [{"type": "text", "text": step.result}]
        yield _pi(role="toolResult", toolCallId=step.id, content=result, isError=False)
    yield _pi(role="assistant", content=[{"type": "text", "text": turn.answer}], stopReason="stop")


def _pi(**message: Any) -> bytes:
    return _line(type="message", timestamp=TIME, message=message)


def aider(turn: Turn) -> Iterator[bytes]:
    """Yield a turn of a chat history: no calls, what tools say is quoted."""
    yield _marked("#### ", turn.request)
    for step in turn.steps:
        yield f"\n{step.words or 'Go on.'}\n\n{step.path}\n```\n{step.code}\n```\n".encode()
        yield _marked("> ", step.result)
    yield f"\n{turn.answer}\n".encode()


def _marked(mark: str, text: str) -> bytes:
    return "".join(f"{mark}{line}  \n" for line in text.split("\n")).encode()


def _line(**fields: Any) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
