"""Small sessions of every format, by hand: what the mutator begins with.

Each holds what its reader tells apart: thinking, calls and results, images, compactions, what is taken
back. Long words abound, because those are the ones the test looks for.
"""

from __future__ import annotations

import json
from typing import Any

PNG = "iVBORw0KGgoAAAANSUhEUgAAABgAAAASCAYAAABB7B6e"
DATA_URL = f"data:image/png;base64,{PNG}"
EDIT = {"file_path": "src/parse_numbers.py", "new_string": "def parse_numbers(text):\n    return 1"}
SHOWN = '1\tdef parse_numbers(text: str) -> int:\n2\t    """Naïve → \\"quoted\\"."""\n'
SUMMARY = "This session is being continued from a previous conversation that ran out."
REMINDER = "<system-reminder>Remember the conventions.</system-reminder>"
CUT = "[Request interrupted by user]"


def rows(*records: Any) -> bytes:
    """Return records as one a line."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def document(value: Any, *, indent: int | None = None) -> bytes:
    """Return a value as one document, not all of it ASCII."""
    return json.dumps(value, indent=indent, ensure_ascii=False).encode()


def said(role: str, content: Any, **more: Any) -> Any:
    return {"role": role, "content": content, **more}


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
BLOCKS = [
    said("user", f"Please mend parse_numbers in the tokenizer.\n{REMINDER}"),
    said(
        "assistant",
        [
            {"type": "thinking", "thinking": "considering alternatives", "signature": "c2lnbmVk"},
            {"type": "text", "text": "Looking at implementation."},
            {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": EDIT},
            {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"limit": 10}},
        ],
    ),
    said(
        "user",
        [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": SHOWN},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "is_error": True,
                "content": [{"type": "text", "text": "permission denied unexpectedly"}, PICTURE],
            },
            {"type": "text", "text": "afterwards documentation"},
        ],
    ),
    said("assistant", [{"type": "redacted_thinking", "data": "b3BhcXVl"}, {"type": "text", "text": "Done."}]),
    said("user", [PICTURE, {"type": "text", "text": "What about this screenshot?"}]),
    said("assistant", [{"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}]),
]  # fmt: skip

CALL = {"id": "c1", "type": "function", "function": {"name": "edit", "arguments": json.dumps(EDIT)}}
CHAT = [
    said("system", "You are a considerate assistant."),
    said("user", "Please mend parse_numbers in the tokenizer."),
    said("assistant", None, reasoning_content="considering alternatives", tool_calls=[CALL]),
    said("tool", SHOWN, tool_call_id="c1"),
    said("assistant", "Finished implementation.", function_call={"name": "test", "arguments": "{}"}),
    said("function", "seventeen passed", name="test"),
    said(
        "user",
        [
            {"type": "text", "text": "What about this screenshot?"},
            {"type": "image_url", "image_url": {"url": DATA_URL}},
        ],
    ),
    said("assistant", [{"type": "refusal", "refusal": "unfortunately impossible"}]),
]  # fmt: skip


def node(kind: str, uuid: str, parent: str | None, **more: Any) -> Any:
    return {"parentUuid": parent, "sessionId": "s1", "type": kind, "uuid": uuid, **more}


QUEUED = {"type": "queued_command", "prompt": "meanwhile documentation"}
PRESERVED = {"preservedSegment": {"headUuid": "u1", "tailUuid": "a1", "anchorUuid": "c1"}}
CLAUDE_CODE = [
    rows(
        node("user", "u1", None, message=BLOCKS[0]),
        node("assistant", "a1", "u1", message={"id": "m1", "model": "x", **BLOCKS[1]}),
        node("user", "u2", "a1", message=BLOCKS[2], toolUseResult={"stdout": SHOWN}),
        node("progress", "p1", "u2", data={"type": "hook_progress"}),
        node("assistant", "a2", "p1", message={"id": "m2", "model": "x", **BLOCKS[3]}),
        node("user", "u3", "a1", message=BLOCKS[4], isSidechain=False),
        node("assistant", "s1", None, message={"id": "m3", **BLOCKS[3]}, isSidechain=True),
        node("attachment", "q1", "a2", attachment=QUEUED),
    ),
    rows(
        node("user", "u1", None, message=said("user", "the very beginning")),
        node("assistant", "a1", "u1", message=BLOCKS[3]),
        node(
            "system",
            "b1",
            None,
            subtype="compact_boundary",
            logicalParentUuid="a1",
            compactMetadata=PRESERVED,
        ),
        node("user", "c1", "b1", message=said("user", SUMMARY), isCompactSummary=True),
        node("user", "u2", "c1", message=said("user", "<command-name>/x</command-name>"), isMeta=True),
        node("user", "u3", "u2", message=said("user", CUT)),
        {"type": "summary", "summary": "conversational", "leafUuid": "a1"},
    ),
]  # fmt: skip
LOGLINES = [{"type": m["role"], "message": m, "timestamp": "t"} for m in BLOCKS]


def payload(kind: str, **fields: Any) -> Any:
    return {"timestamp": "t", "type": kind, "payload": fields}


def item(**fields: Any) -> Any:
    return payload("response_item", **fields)


def spoken(role: str, text: str) -> Any:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


ASKED = "Please mend parse_numbers"
CODEX = rows(
    payload("session_meta", id="s1", base_instructions={"text": "considerate assistant"}),
    item(**spoken("user", "<environment_context>\n<cwd>/</cwd>\n</environment_context>")),
    payload("turn_context", model="x"),
    item(**spoken("user", ASKED)),
    payload("event_msg", type="user_message", message=ASKED),
    item(type="reasoning", summary=[{"type": "summary_text", "text": "considering alternatives"}]),
    item(type="function_call", name="shell", arguments=json.dumps(EDIT), call_id="c1"),
    item(type="function_call_output", call_id="c1", output=SHOWN),
    item(type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
    item(type="custom_tool_call_output", call_id="c2", output='{"output":"successfully"}'),
    item(**spoken("assistant", "Finished implementation.")),
    payload("event_msg", type="turn_aborted", reason="interrupted"),
    payload("compacted", message="accomplished", replacement_history=[spoken("user", ASKED)]),
    payload("event_msg", type="user_message", message="continue afterwards"),
    payload("event_msg", type="thread_rolled_back", num_turns=1),
)


def event(kind: str, **data: Any) -> Any:
    return {"type": kind, "data": data, "id": f"e_{kind}", "timestamp": "t"}


COPILOT_CLI = rows(
    event("session.start", sessionId="s1"),
    event("system.message", role="system", content="considerate assistant"),
    event(
        "user.message",
        content=ASKED,
        transformedContent="<x/>",
        attachments=[{"type": "blob", "mimeType": "image/png", "data": PNG}, {"type": "file"}],
    ),
    event(
        "assistant.message",
        messageId="m1",
        apiCallId="r1",
        content="Looking at implementation.",
        reasoningText="considering alternatives",
        reasoningOpaque="c2VhbGVk",
        toolRequests=[{"toolCallId": "c1", "name": "edit", "arguments": EDIT}],
    ),
    event("tool.execution_complete", toolCallId="c1", success=True, result={"content": SHOWN}),
    event("tool.execution_complete", toolCallId="c2", success=False, error={"message": "x"}),
    event("session.compaction_start"),
    event("session.compaction_complete", success=True, summaryContent="accomplished"),
    event("system.notification", content="<system_notification>over</system_notification>"),
    event("user.message", content="continue afterwards", agentMode="plan"),
    event("session.snapshot_rewind", upToEventId="e_user.message"),
    event("abort", reason="user"),
)


def response(output: Any) -> Any:
    return {"functionResponse": {"id": "c1", "name": "edit", "response": output}}


INLINE = {"inlineData": {"mimeType": "image/png", "data": PNG}}
GEMINI_CALLS = [
    {
        "id": "c1",
        "name": "edit",
        "args": EDIT,
        "status": "success",
        "result": [response({"output": SHOWN})],
    },
    {"id": "c2", "name": "read", "args": {}, "status": "error", "result": [{"text": "unexpectedly"}]},
]  # fmt: skip
GEMINI_ANSWER = {
    "id": "m2",
    "timestamp": "t",
    "type": "gemini",
    "content": "Looking at implementation.",
    "thoughts": [{"subject": "Next", "description": "considering alternatives"}],
    "toolCalls": GEMINI_CALLS,
}
GEMINI_HEAD = {"sessionId": "s1", "projectHash": "h"}
GEMINI_ASKED = {"id": "m1", "timestamp": "t", "type": "user", "content": ASKED}
GEMINI_CLI = [
    document({**GEMINI_HEAD, "messages": [GEMINI_ASKED, GEMINI_ANSWER]}, indent=1),
    rows(
        GEMINI_HEAD,
        GEMINI_ASKED,
        GEMINI_ANSWER,
        {"id": "m3", "type": "user", "content": [{"text": "continue afterwards"}, response({})]},
        {"id": "m4", "type": "info", "content": "informational"},
        {"$rewindTo": "m3"},
        {"$set": {"messages": [GEMINI_ASKED], "lastUpdated": "t"}},
        {"id": "m5", "type": "gemini", "content": [INLINE]},
    ),
]


def pi(uid: str, parent: str, **message: Any) -> Any:
    return {"type": "message", "id": uid, "parentId": parent, "message": message}


def pi_note(kind: str, uid: str, parent: str, **fields: Any) -> Any:
    return {"type": kind, "id": uid, "parentId": parent, **fields}


PI_SAID = [
    {"type": "thinking", "thinking": "considering alternatives", "thinkingSignature": "c2ln"},
    {"type": "text", "text": "Looking at implementation."},
    {"type": "toolCall", "id": "c1", "name": "edit", "arguments": EDIT},
]
PI_RESULT = [{"type": "text", "text": SHOWN}, {"type": "image", "data": PNG, "mimeType": "image/png"}]  # fmt: skip
PI = [
    rows(
        {"type": "session", "id": "s1", "cwd": "/", "version": 3},
        pi("e1", "", **said("user", [{"type": "text", "text": ASKED}])),
        pi("e2", "e1", **said("assistant", PI_SAID, model="x", stopReason="toolUse")),
        pi("e3", "e2", role="toolResult", toolCallId="c1", content=PI_RESULT, isError=False),
        pi("e4", "e3", role="bashExecution", command="pytest --quiet", output="seventeen passed"),
        pi_note("compaction", "e5", "e4", summary="accomplished", firstKeptEntryId="e3"),
        pi_note("branch_summary", "e6", "e5", summary="abandoned alternatives"),
        pi_note("custom_message", "e7", "e6", customType="x", content="customisation"),
        pi("e8", "e7", **said("user", "continue afterwards")),
        pi("e9", "e8", **said("assistant", [], stopReason="aborted")),
    ),
    rows({"type": "session", "id": "s", "cwd": "/"}, {"type": "message", "message": CHAT[1]}),
]

STATE = {"status": "completed", "input": EDIT, "output": SHOWN, "time": {"start": 1, "end": 2}}
FAILED = {"status": "error", "input": {}, "error": "unexpectedly", "time": {"start": 1, "end": 2}}
ATTACHED = [{"type": "file", "mime": "image/png", "url": DATA_URL}]


def oc(role: str, *parts: Any, **info: Any) -> Any:
    return {"info": {"role": role, **info}, "parts": list(parts)}


def tool(call_id: str, state: Any) -> Any:
    return {"type": "tool", "callID": call_id, "tool": "edit", "state": state}


def words(text: str, **more: Any) -> Any:
    return {"type": "text", "text": text, **more}


OPENCODE_MESSAGES = [
    oc("user", words(ASKED), *ATTACHED, id="m1"),
    oc(
        "assistant",
        {"type": "step-start"},
        {"type": "reasoning", "text": "considering alternatives", "metadata": {"x": 1}},
        words("Looking at implementation."),
        tool("c1", STATE),
        tool("c2", FAILED),
        tool("c3", {**STATE, "attachments": ATTACHED}),
        id="m2",
        parentID="m1",
        modelID="x",
        finish="tool-calls",
    ),
    oc("user", {"type": "compaction", "auto": True}, id="m3"),
    oc("assistant", words("accomplished"), summary=True, finish="stop", parentID="m3"),
    oc("assistant", words("overloaded"), error={"name": "APIError"}),
    oc("user", words("synthetically", synthetic=True), {"type": "subtask"}),
]
OPENCODE = [document({"info": {"id": "s1", "title": "x"}, "messages": OPENCODE_MESSAGES})]

HISTORY = [
    {**message, "agent": "main", "message_type": "observation", "thought": "considering"}
    for message in CHAT
]
STEP = {"action": "ls", "observation": SHOWN, "thought": "considering", "response": "alternatives"}
SWE_AGENT = [
    document({"trajectory": [STEP], "history": [{**HISTORY[1], "is_demo": True}, *HISTORY]}, indent=2),
    document({"trajectory": [{**STEP, "query": CHAT[:2]}, STEP], "info": {}}),
]  # fmt: skip
MINI = [
    CHAT[1],
    said("assistant", "THOUGHT: considering\n```mswea_bash_command\nls\n```"),
    said("user", f"<returncode>0</returncode>\n<output>\n{SHOWN}</output>"),
    said("user", "Interrupted by user: continue afterwards"),
    said("exit", "Submitted", extra={"submission": "differences"}),
]
MINI_SWE_AGENT = [
    document({"trajectory_format": "mini-swe-agent-1.1", "info": {}, "messages": [*CHAT, *MINI]}),
    document(MINI, indent=1),
]


def act(number: int, source: str, **fields: Any) -> Any:
    return {"id": number, "source": source, **fields}


METADATA = {
    "function_name": "edit",
    "tool_call_id": "c1",
    "model_response": {"id": "r1", "model": "x", "choices": [{"message": CHAT[2]}]},
}
KNOWLEDGE = {"repo_instructions": "conventions", "microagent_knowledge": [{"content": "knowledgeable"}]}  # fmt: skip
EVENTS = [
    act(0, "agent", action="system", args={"content": "considerate assistant"}),
    act(1, "user", action="message", args={"content": ASKED, "image_urls": [DATA_URL]}),
    act(2, "environment", observation="recall", content="", extras=KNOWLEDGE),
    act(3, "agent", action="edit", args={**EDIT, "thought": "x"}, tool_call_metadata=METADATA),
    act(4, "agent", observation="edit", cause=3, content=SHOWN, extras={"path": "x"}),
    act(5, "agent", action="run", args={"command": "pytest --quiet", "thought": ""}),
    act(6, "agent", observation="run", cause=5, content="seventeen passed"),
    act(7, "environment", observation="agent_state_changed", extras={"agent_state": "paused"}),
    act(8, "user", action="run", args={"command": "git status"}),
    act(9, "agent", action="finish", args={"final_thought": "accomplished"}),
    act(10, "agent", action="condensation", args={"summary": "previously"}),
]
OPENHANDS = [
    document(EVENTS),
    document({"trajectory": EVENTS}, indent=2),
    rows(*({"instance_id": f"i{n}", "history": EVENTS[n:]} for n in range(2))),
]


def lc(kind: str, content: Any, **data: Any) -> Any:
    return {"type": kind, "data": {"content": content, "type": kind, **data}}


def dumped(name: str, **fields: Any) -> Any:
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}


LC_CALL = {"name": "edit", "args": EDIT, "id": "c1", "type": "tool_call"}
INVALID = {"name": "x", "args": "{", "id": "c2", "type": "invalid_tool_call"}
SHADOWED = [{"type": "thinking", "thinking": "considering"}, *BLOCKS[1]["content"][1:3]]
KWARGS = {"tool_calls": [CALL], "reasoning_content": "considering"}
LANGCHAIN_MESSAGES = [
    lc("system", "considerate assistant"),
    lc("human", ["Please mend", {"type": "text", "text": "parse_numbers"}]),
    lc("ai", SHADOWED, tool_calls=[LC_CALL], invalid_tool_calls=[INVALID]),
    lc("tool", SHOWN, tool_call_id="c1", status="success"),
    lc("AIMessageChunk", "", additional_kwargs={"function_call": {"name": "test"}}),
    lc("function", "seventeen passed", name="test"),
    lc("chat", "continue afterwards", role="user"),
]
LANGCHAIN = [
    document({"messages": LANGCHAIN_MESSAGES}),
    document(
        [
            dumped("HumanMessage", content=ASKED),
            dumped("AIMessage", content="", additional_kwargs=KWARGS),
            dumped("ToolMessage", content=[{"type": "text", "text": SHOWN}], tool_call_id="c1"),
        ]
    ),
]


def gemini(role: str, *parts: Any) -> Any:
    return {"role": role, "parts": list(parts)}


SNAKE_RESPONSE = {"function_response": {"name": "edit", "response": {"error": "unexpectedly"}}}
STORED = {"fileData": {"fileUri": "gs://somewhere", "mimeType": "image/png"}}
CONTENTS = [
    gemini("user", {"text": ASKED}, INLINE),
    gemini(
        "model",
        {"text": "considering alternatives", "thought": True, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "edit", "args": EDIT}},
        {"functionCall": {"id": "c2", "name": "edit", "args": {}}},
    ),
    gemini("user", response({"output": SHOWN}), SNAKE_RESPONSE),
    gemini("model", {"executableCode": {"code": "implementation"}}, {"text": "accomplished"}),
    {"parts": [STORED, {"text": "continue afterwards"}]},
]
INSTRUCTED = {"parts": [{"text": "considerate assistant"}]}
GEMINI_CONTENTS = [document({"systemInstruction": INSTRUCTED, "contents": CONTENTS})]

ITEMS = [
    said("user", [words(ASKED) | {"type": "input_text"}, {"type": "input_image", "image_url": DATA_URL}]),
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "considering"}]},
    {**spoken("assistant", "Looking at implementation."), "id": "msg_1"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "edit", "arguments": json.dumps(EDIT)},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": SHOWN}]},
    {"type": "local_shell_call", "id": "ls_1", "call_id": "c2", "action": {"command": ["pytest"]}},
    {"type": "local_shell_call_output", "id": "ls_1", "output": "seventeen passed"},
    {"type": "custom_tool_call", "call_id": "c3", "name": "apply_patch", "input": "*** Begin Patch"},
    {"type": "custom_tool_call_output", "call_id": "c3", "output": "successfully"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "compaction", "encrypted_content": "c2VhbGVk"},
    said("developer", "conventions"),
]  # fmt: skip
RESPONSES = [
    document({"instructions": "considerate assistant", "input": ITEMS}),
    document({"object": "response", "output": [spoken("assistant", "accomplished")]}),
    document({"input": ASKED, "instructions": "considerate assistant"}),
]

USED = (
    '<tool_use id="t1">\n{"name": "edit", "arguments": {"path": "parse_numbers.py"}}\n</tool_use>'
)
TOOL_USES = [
    {"tool": "edit", "input": EDIT, "output": {"text": SHOWN}, "status": "success"},
    {"tool": "run", "input": "pytest", "output": "unexpectedly", "status": "error"},
    {"tool": "open", "input": {}},
]
SHAPE_B = [
    CHAT[1],
    said("assistant", "Looking at implementation.", thinking="considering", tool_uses=TOOL_USES),
    said("user", SUMMARY),
]
SHAPE_D = [
    CHAT[1],
    said("assistant", f"Looking at implementation.\n{USED}\nafterwards"),
    said("user", f'<tool_result id="t1">\n{SHOWN}</tool_result>\ncontinue afterwards'),
]
SWE_TOGETHER = [
    document({"session_id": "s1", "messages": [{**m, "tool_uses": []} for m in BLOCKS]}, indent=1),
    document({"session_id": "s2", "model": "x", "messages": SHAPE_B}),
    document({"session_id": "s3", "messages": [BLOCKS[0], BLOCKS[1], BLOCKS[4]]}),
    document({"session_id": "s4", "messages": SHAPE_D}),
]

AIDER = """\
# aider chat started at 2026-01-02 03:04:05

> Aider v1.0\x20\x20
> Model: x\x20\x20

#### Please mend parse_numbers\x20\x20
#### in the tokenizer\x20\x20

Looking at implementation.

src/parse_numbers.py
```
<<<<<<< SEARCH
>>>>>>> REPLACE
```

> Applied edit to src/parse_numbers.py\x20\x20

#### /run pytest --quiet\x20\x20

> seventeen passed\x20\x20

#### <blank>\x20\x20

#### /undo\x20\x20

# aider chat started at 2026-01-02 04:05:06

#### continue afterwards

#### Heading of an assistant
> quotation

Accomplished.
"""

SEEDS: dict[str, list[bytes]] = {
    "claude-web": [document({"loglines": LOGLINES})],
    "swe-together": SWE_TOGETHER,
    "codex": [CODEX],
    "copilot-cli": [COPILOT_CLI],
    "gemini-cli": GEMINI_CLI,
    "pi": PI,
    "opencode": OPENCODE,
    "swe-agent": SWE_AGENT,
    "mini-swe-agent": MINI_SWE_AGENT,
    "openhands": OPENHANDS,
    "langchain": LANGCHAIN,
    "gemini-contents": GEMINI_CONTENTS,
    "openai-responses": RESPONSES,
    "aider": [AIDER.encode()],
    "claude-code": CLAUDE_CODE,
    "anthropic-messages": [
        document({"system": "considerate assistant", "messages": BLOCKS}),
        rows(*BLOCKS),
    ],
    "openai-chat": [document(CHAT), document({"messages": CHAT, "tools": []}, indent=2)],
}
"""Format -> sessions."""
