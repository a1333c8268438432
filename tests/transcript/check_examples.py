"""For each rule of the validator one input that breaks it, and a legal neighbour that does not.

The inputs are written by hand, after the vendors' documents and the refusals they print; none comes
from a recorded session. A neighbour differs in the one thing the rule is about.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any, NamedTuple

MIB = 1024 * 1024


class Example(NamedTuple):
    """An input that gives exactly one code, and its neighbour that gives no finding."""

    broken: Any
    legal: Any


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(value: Any = "Go on.") -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(call_id: Any = "t1", **changes: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {}} | changes


def result(call_id: Any = "t1", **changes: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "done"} | changes


def thinking(**changes: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"} | changes


def server_call(call_id: str = "s1") -> dict[str, Any]:
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {}}


def server_result(call_id: str = "s1") -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}


def png(width: int, height: int, *, size: int = 0) -> str:
    """Return base64 data with the header of a PNG, padded to ``size`` characters."""
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\0" * 4
    data = base64.b64encode(head).decode()
    return data + "A" * max(0, size - len(data))


def image(width: int = 10, height: int = 10, *, size: int = 0, **changes: Any) -> dict[str, Any]:
    data = png(width, height, size=size)
    source = {"type": "base64", "media_type": "image/png", "data": data} | changes
    return {"type": "image", "source": source}


def asked(*answers: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a question and what follows it."""
    return [user(text()), *answers]


def answered(block: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a list in which the call ``block`` has its result."""
    return asked(assistant(block), user(result(block["id"])))


def resulted(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a list in which the user turn that answers call t1 holds ``blocks``."""
    return asked(assistant(call()), user(*blocks))


PLAIN = {"role": "user", "content": "x"}
SYSTEM = {"role": "system", "content": "Be brief."}
DIRECTIVE = {"role": "system", "content": [], "output_config": {"effort": "low"}}
CACHED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
NESTED: list[Any] = [float("nan")]

ANTHROPIC: dict[str, Example] = {
    "not-a-list": Example({"system": "s"}, {"system": "s", "messages": asked()}),
    "no-messages": Example([], asked()),
    "not-json": Example(asked(user(text("\ud83d"))), asked(user(text("\U0001f600")))),
    "request-bytes": Example(
        asked(user(text('"' * (16 * MIB)))), asked(user(text("n" * (16 * MIB))))
    ),
    "message-count": Example([PLAIN] * 100_001, [PLAIN] * 100_000),
    "cache-markers": Example(
        {"system": [CACHED], "tools": [CACHED], "messages": [user(CACHED, CACHED, CACHED)]},
        {"system": [CACHED], "tools": [CACHED], "messages": [user(CACHED, CACHED, text())]},
    ),
    "not-a-message": Example(asked("hello"), asked(user(text("hello")))),
    "unknown-role": Example(
        asked({"role": "tool", "content": "x"}), asked({"role": "user", "content": "x"})
    ),
    "first-not-user": Example([assistant(text()), user(text())], asked(assistant(text()))),
    "misplaced-system": Example(asked(SYSTEM, user(text())), asked(SYSTEM, assistant(text()))),
    "no-content": Example(asked({"role": "user"}), asked({"role": "user", "content": "x"})),
    "empty-content": Example(asked(user()), asked(user(text()))),
    "empty-assistant": Example(asked(assistant()), asked(assistant(text()))),
    "malformed-block": Example(asked(user("bare")), asked(user({"type": "from_the_future"}))),
    "blank-text": Example(asked(user(text(" \n"))), asked(user(text(" .\n")))),
    "wrong-role": Example(asked(user(thinking())), asked(assistant(thinking(), text()))),
    "unsigned-thinking": Example(
        asked(assistant(thinking(signature=""), text())),
        asked(assistant(thinking(thinking=""), text())),
    ),
    "empty-redacted-thinking": Example(
        asked(assistant({"type": "redacted_thinking"}, text())),
        asked(assistant({"type": "redacted_thinking", "data": "x"}, text())),
    ),
    "thinking-last": Example(
        asked(assistant(text(), thinking())), asked(assistant(thinking(), text()))
    ),
    "thinking-only": Example(asked(assistant(thinking())), asked(assistant(thinking(), text()))),
    "call-id": Example(answered(call("functions.Read:0")), answered(call("functions_Read-0"))),
    "call-id-long": Example(answered(call("t" * 65)), answered(call("t" * 64))),
    "call-input": Example(answered(call(input="{}")), answered(call(input={}))),
    "call-name": Example(answered(call(name="n" * 201)), answered(call(name="n" * 128))),
    "call-name-doubtful": Example(answered(call(name="a.b")), answered(call(name="a_b"))),
    "duplicate-call-id": Example(
        asked(assistant(call("t1"), call("t1")), user(result("t1"))),
        asked(assistant(call("t1"), call("t2")), user(result("t2"), result("t1"))),
    ),
    "unanswered-call": Example(
        asked(assistant(call("t1"), call("t2")), user(result("t1"))),
        asked(assistant(call("t1"), call("t2")), user(result("t1"), result("t2"))),
    ),
    "orphan-result": Example(resulted(result("t1"), result("t0")), resulted(result("t1"))),
    "duplicate-result": Example(
        resulted(result("t1"), result("t1")), resulted(result("t1"), text())
    ),
    "result-not-first": Example(resulted(text(), result()), resulted(result(), text())),
    "split-results": Example(
        asked(assistant(call("t1"), call("t2")), user(result("t1")), user(result("t2"))),
        asked(assistant(call("t1"), call("t2")), user(result("t1"), result("t2")), user(text())),
    ),
    "empty-error-result": Example(
        resulted(result(content="", is_error=True)), resulted(result(content=""))
    ),
    "blank-result-text": Example(
        resulted(result(content=[text("")])), resulted(result(content=[]))
    ),
    "open-server-call": Example(
        asked(assistant(server_call()), user(text())),
        asked(assistant(server_call(), call()), user(result()), assistant(server_result(), text())),
    ),
    "orphan-server-result": Example(
        asked(assistant(server_result(), text())),
        asked(assistant(server_call(), server_result(), text())),
    ),
    "image-count": Example([user(*[image()] * 601)], [user(*[image()] * 100)]),
    "image-count-small-window": Example([user(*[image()] * 101)], [user(*[image()] * 100)]),
    "image-pixels": Example([user(image(10, 8001))], [user(image(8000, 8000))]),
    "image-pixels-many": Example(
        [user(*[image()] * 20, image(2001, 10))], [user(*[image()] * 19, image(2001, 10))]
    ),
    "image-bytes": Example([user(image(size=10 * MIB + 4))], [user(image(size=5 * MIB))]),
    "image-bytes-hosted": Example([user(image(size=5 * MIB + 4))], [user(image(size=5 * MIB))]),
    "image-type": Example(
        [user(image(media_type="image/jpg"))], [user(image(media_type="image/jpeg"))]
    ),
}

MORE_ANTHROPIC: list[tuple[str, Example]] = [
    ("not-json", Example(answered(call(input={"n": NESTED})), answered(call(input={"n": [1.5]})))),
    ("not-json", Example(asked({"role": "user", "content": "x", "extra": {1: 2}}), asked())),
    ("not-json", Example({"messages": asked(), "system": "\udc00"}, asked())),
    ("misplaced-system", Example([SYSTEM, user(text())], [user(text()), SYSTEM])),
    (
        "misplaced-system",
        Example(
            asked(assistant(text()), SYSTEM), asked(assistant(text()), DIRECTIVE, user(text()))
        ),
    ),
    (
        "misplaced-system",
        Example(
            asked(SYSTEM, SYSTEM, user(text())),
            asked(assistant(server_call(), server_result()), SYSTEM, SYSTEM, assistant(text())),
        ),
    ),
    ("no-content", Example(asked(user(text()) | {"content": 7}), asked())),
    ("empty-content", Example([{"role": "user", "content": ""}], asked())),
    ("empty-content", Example(asked(SYSTEM | {"content": []}), asked(DIRECTIVE))),
    ("malformed-block", Example(asked(user(text(None))), asked())),
    ("malformed-block", Example(asked(assistant(thinking(thinking=None), text())), asked())),
    ("malformed-block", Example(resulted(result(content=3)), resulted(result()))),
    (
        "malformed-block",
        Example(resulted(result(content=["bare"])), resulted(result(content=None))),
    ),
    ("malformed-block", Example(resulted(result(content=[text(1)])), resulted(result()))),
    ("malformed-block", Example([user({"type": "image"})], [user(image())])),
    (
        "malformed-block",
        Example([user(image(data=None))], [user(image(type="url", url="https://example.org/a"))]),
    ),
    ("blank-text", Example([{"role": "user", "content": "\n"}], asked())),
    (
        "blank-text",
        Example({"messages": asked(), "system": [text("")]}, {"messages": asked(), "system": ""}),
    ),
    ("wrong-role", Example(asked(assistant(result(), text())), asked())),
    ("call-id", Example(answered(call("")), answered(call("_")))),
    ("call-id", Example(asked(assistant(call(None))), asked(assistant(text())))),
    ("call-name", Example(answered(call(name="")), answered(call(name="x")))),
    ("call-name-doubtful", Example(answered(call(name="n" * 129)), answered(call()))),
    (
        "duplicate-call-id",
        Example(
            [*answered(call("t1")), *answered(call("t1"))],
            [*answered(call("t1")), *answered(call("t2"))],
        ),
    ),
    ("unanswered-call", Example(asked(assistant(call())), asked(assistant(text())))),
    ("image-pixels", Example(resulted(result(content=[image(9000, 1)])), resulted(result()))),
]
"""Further ways to break a rule; a bare ``asked()`` as the neighbour says nothing more."""


def chat(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "Go on."}, *messages]


def tool_call(call_id: Any = "c1", **changes: Any) -> dict[str, Any]:
    function = {"name": "read", "arguments": '{"path": "a"}'} | changes
    return {"id": call_id, "type": "function", "function": function}


def calling(*calls: Any, **changes: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)} | changes


def tool(call_id: Any = "c1", content: Any = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def called(**changes: Any) -> list[dict[str, Any]]:
    return chat(calling(tool_call(**changes)), tool())


def parts(*content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(content)}]


PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
LONG = {"role": "user", "content": "x" * (10 * MIB)}

OPENAI: dict[str, Example] = {
    "not-a-list": Example("hello", chat()),
    "no-messages": Example({"messages": []}, {"messages": chat()}),
    "not-json": Example(chat({"role": "user", "content": "\udfff"}), chat()),
    "request-bytes": Example([LONG] * 52, [LONG] * 51),
    "not-a-message": Example(chat(None), chat()),  # type: ignore[arg-type]
    "unknown-role": Example(chat({"role": "human", "content": "x"}), chat()),
    "no-content": Example(chat({"role": "assistant", "content": None}), called()),
    "empty-content": Example(parts(), parts(text())),
    "content-chars": Example([{"role": "user", "content": "x" * (10 * MIB + 1)}], [LONG]),
    "blank-text": Example(
        chat({"role": "user", "content": " "}), chat(calling(tool_call(), content=""), tool())
    ),
    "malformed-part": Example(parts("bare"), parts({"type": "from_the_future"})),
    "foreign-part": Example(parts({"type": "tool_use"}), parts({"type": "from_the_future"})),
    "empty-calls": Example(chat(calling(content="x")), chat(calling(content="x", tool_calls=None))),
    "call-count": Example(
        chat(
            calling(*[tool_call(f"c{i}") for i in range(129)]), *[tool(f"c{i}") for i in range(129)]
        ),
        chat(
            calling(*[tool_call(f"c{i}") for i in range(128)]), *[tool(f"c{i}") for i in range(128)]
        ),
    ),
    "malformed-call": Example(called(arguments={"path": "a"}), called(arguments='{"path": "a"}')),
    "call-id": Example(chat(calling(tool_call(""))), called()),
    "call-id-long": Example(
        chat(calling(tool_call("c" * 65)), tool("c" * 65)),
        chat(calling(tool_call("c" * 64)), tool("c" * 64)),
    ),
    "call-name": Example(called(name="a.b"), called(name="a-b")),
    "call-name-doubtful": Example(called(name="n" * 65), called(name="n" * 64)),
    "arguments-not-object": Example(
        called(arguments='{"a": 1}{"b": 2}'), called(arguments='{"a": NaN}')
    ),
    "duplicate-call-id": Example(
        chat(calling(tool_call("c1"), tool_call("c1")), tool("c1")),
        chat(calling(tool_call("c1"), tool_call("c2")), tool("c2"), tool("c1")),
    ),
    "repeated-call-id": Example(
        [*called(), *called()], [*called(), *chat(calling(tool_call("c2")), tool("c2"))]
    ),
    "unanswered-call": Example(
        chat(calling(tool_call("c1"), tool_call("c2")), tool("c1"), *chat()),
        chat(calling(tool_call("c1"), tool_call("c2")), tool("c1"), tool("c2"), *chat()),
    ),
    "orphan-result": Example(chat(tool()), called()),
    "duplicate-result": Example([*called(), tool()], called()),
    "image-count": Example(parts(*[PICTURE] * 1501), parts(*[PICTURE] * 1500)),
}

MORE_OPENAI: list[tuple[str, Example]] = [
    ("not-json", Example(chat({"role": "user", "content": "x", "n": float("inf")}), chat())),
    (
        "no-content",
        Example(
            chat({"role": "user", "content": {"a": 1}}),
            chat({"role": "assistant", "content": None, "refusal": "no"}),
        ),
    ),
    ("blank-text", Example(parts(text("")), chat(calling(tool_call()), tool(content="")))),
    ("malformed-part", Example(parts(text(None)), parts(text()))),
    ("malformed-part", Example(parts({"type": "image_url", "image_url": None}), parts(PICTURE))),
    ("empty-calls", Example(chat(calling(content="x", tool_calls={})), chat())),
    ("malformed-call", Example(chat(calling("bare", content="x")), chat())),
    (
        "malformed-call",
        Example(
            chat(calling({"id": "c1", "type": "function"}), tool()),
            chat(
                calling({"id": "c1", "type": "custom", "custom": {"name": "x", "input": "y"}}),
                tool(),
            ),
        ),
    ),
    (
        "call-name",
        Example(called(name=""), chat(calling({"id": "c1", "type": "from_the_future"}), tool())),
    ),
    ("arguments-not-object", Example(called(arguments=""), called(arguments="{}"))),
    ("arguments-not-object", Example(called(arguments="[" * 100_000), called(arguments=" {}\n"))),
    ("orphan-result", Example(chat({"role": "tool", "content": "x"}), chat())),
    ("unanswered-call", Example(chat(calling(tool_call())), called())),
]


def record(kind: str, uuid: str, parent: str | None, **changes: Any) -> dict[str, Any]:
    """Return a line of a log; ``changes`` of None take a field away."""
    message: dict[str, Any] = {"role": kind, "content": "Go on."}
    if kind == "assistant":
        message["model"] = "claude-x"
    line = {
        "type": kind,
        "uuid": uuid,
        "parentUuid": parent,
        "sessionId": "s",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": message,
    }
    return {key: value for key, value in (line | changes).items() if value is not ABSENT}


ABSENT: Any = object()


def said(kind: str, content: Any) -> dict[str, Any]:
    return {"message": {"role": kind, "content": content, "model": "claude-x"}}


def log(*lines: Any) -> bytes:
    return b"".join(line if isinstance(line, bytes) else dumped(line) for line in lines)


def dumped(line: Any) -> bytes:
    return json.dumps(line).encode() + b"\n"


FIRST = record("user", "u1", None)
REPLY = record("assistant", "a1", "u1")
NEXT = record("user", "u2", "a1")
CALLING = record("assistant", "a1", "u1", **said("assistant", [call()]))
BOUNDARY = record("system", "b1", None, subtype="compact_boundary", message=ABSENT)
AFTER = record("user", "u3", "b1", isCompactSummary=True)

CLAUDE_CODE: dict[str, Example] = {
    "bad-line": Example(log(FIRST, b"oops\n", REPLY), log(FIRST, b"\n", REPLY)),
    "cut-line": Example(
        log(
            FIRST,
            b'{"type":"assistant","message":{"content":"abc' + dumped({"type": "summary"}),
            REPLY,
        ),
        log(FIRST, {"type": "summary"}, REPLY),
    ),
    "glued-lines": Example(
        log(FIRST, REPLY, b'{"type":"summary"}{"type":"summary"}\n'),
        log(FIRST, REPLY, b'{"type":"summary"}\n{"type":"summary"}\n'),
    ),
    "nul-bytes": Example(log(FIRST, b"\0" * 500 + b"\n", REPLY), log(FIRST, REPLY)),
    "too-deep": Example(
        log(FIRST, b'{"type":"x","a":' + b"[" * 2000 + b"]" * 2000 + b"}\n"),
        log(FIRST, b'{"type":"x","a":' + b"[" * 20 + b"]" * 20 + b"}\n"),
    ),
    "unfinished-line": Example(log(FIRST, b'{"type":"assis'), log(FIRST, dumped(REPLY)[:-1])),
    "null-line": Example(log(FIRST, None, REPLY), log(FIRST, REPLY)),
    "not-a-record": Example(log(FIRST, [1], REPLY), log(FIRST, {"type": "new-kind"}, REPLY)),
    "no-timestamp": Example(
        log(FIRST, record("assistant", "a1", "u1", timestamp=ABSENT)),
        log(FIRST, record("assistant", "a1", "u1", version=ABSENT)),
    ),
    "no-uuid": Example(log(FIRST, record("assistant", ABSENT, "u1")), log(FIRST, REPLY)),
    "no-model": Example(
        log(FIRST, record("assistant", "a1", "u1", message={"content": "x"})), log(FIRST, REPLY)
    ),
    "no-message": Example(log(FIRST, record("user", "u2", "u1", message=None)), log(FIRST, REPLY)),
    "no-content": Example(
        log(FIRST, record("user", "u2", "u1", message={"content": None})), log(FIRST, REPLY)
    ),
    "empty-content": Example(
        log(FIRST, record("assistant", "a1", "u1", **said("assistant", []))),
        log(FIRST, record("assistant", "a1", "u1", **said("assistant", [text()]))),
    ),
    "null-block": Example(
        log(FIRST, record("user", "u2", "u1", **said("user", [None]))),
        log(FIRST, record("user", "u2", "u1", **said("user", [{"type": "new"}]))),
    ),
    "bare-block": Example(
        log(FIRST, record("user", "u2", "u1", **said("user", ["bare"]))),
        log(FIRST, record("user", "u2", "u1", **said("user", [text()]))),
    ),
    "duplicate-uuid": Example(log(FIRST, REPLY, REPLY), log(FIRST, REPLY, NEXT)),
    "dangling-parent": Example(
        log(FIRST, REPLY, record("user", "u2", "ghost")), log(FIRST, REPLY, NEXT)
    ),
    "parent-cycle": Example(log(record("user", "u1", "a1"), REPLY), log(FIRST, REPLY)),
    "no-chain": Example(log(FIRST, record("assistant", "a1", None)), log(FIRST, REPLY)),
    "cut-chain": Example(
        log(FIRST, REPLY, record("user", "u2", None), record("assistant", "a2", "u2")),
        log(FIRST, REPLY, BOUNDARY, AFTER),
    ),
    "no-conversation": Example(log({"type": "summary", "summary": "x"}), log(FIRST)),
    "several-sessions": Example(
        log(FIRST, record("assistant", "a1", "u1", sessionId="t")), log(FIRST, REPLY)
    ),
    "unanswered-call": Example(
        log(FIRST, CALLING, NEXT),
        log(FIRST, CALLING, record("user", "u2", "a1", **said("user", [result()]))),
    ),
    "orphan-result": Example(
        log(FIRST, REPLY, record("user", "u2", "a1", **said("user", [result()]))),
        log(FIRST, record("user", "u2", "a1", **said("user", [result()])), CALLING),
    ),
}

MORE_CLAUDE_CODE: list[tuple[str, Example]] = [
    ("bad-line", Example(b'{"loglines": [\n', b'{"loglines": []}\n')),
    ("not-a-record", Example(log(FIRST, {}), log(FIRST))),
    ("not-a-record", Example(log(FIRST, "text"), log(FIRST))),
    ("no-message", Example(log(FIRST, record("user", "u2", "u1", message=ABSENT)), log(FIRST))),
    (
        "no-timestamp",
        Example(
            json.dumps({"loglines": [record("user", "u1", None, timestamp=ABSENT)]}).encode(),
            json.dumps({"loglines": [FIRST]}, indent=1).encode(),
        ),
    ),
    ("empty-content", Example(log(FIRST, record("user", "u2", "u1", **said("user", "\n"))), log())),
    (
        "orphan-result",
        Example(
            log(FIRST, record("assistant", "a1", "u1", **said("assistant", [server_result()]))),
            log(
                FIRST,
                record(
                    "assistant", "a1", "u1", **said("assistant", [server_call(), server_result()])
                ),
            ),
        ),
    ),
]
