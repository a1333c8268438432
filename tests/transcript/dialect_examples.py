"""Examples as in ``check_examples``, for Responses, Gemini, LangChain and OpenCode."""

from __future__ import annotations

from typing import Any

from tests.transcript.check_examples import MIB, Example, png

NAN = float("nan")


def changed(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the value with other fields; those of None are taken away."""
    return {k: v for k, v in (value | changes).items() if v is not None}


# Responses


def asked(*items: Any) -> list[Any]:
    return [{"role": "user", "content": "Go on."}, *items]


def message(*content: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def words(text: Any = "Go on.", kind: str = "input_text") -> dict[str, Any]:
    return {"type": kind, "text": text}


def answer(*content: Any) -> dict[str, Any]:
    return message(*content or [words(kind="output_text")], role="assistant")


def reasoning(**changes: Any) -> dict[str, Any]:
    return changed({"type": "reasoning", "summary": [], "encrypted_content": "eA=="}, changes)


def function(call_id: Any = "c1", **changes: Any) -> dict[str, Any]:
    item = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"}
    return changed(item, changes)


def output(call_id: Any = "c1", **changes: Any) -> dict[str, Any]:
    item = {"type": "function_call_output", "call_id": call_id, "output": "done"}
    return changed(item, changes)


def called(**changes: Any) -> list[Any]:
    return asked(function(**changes), output())


PICTURE = {"type": "input_image", "image_url": "https://example.org/a.png"}
LONG = {"role": "user", "content": "x" * (10 * MIB)}

RESPONSES: dict[str, Example] = {
    "not-a-list": Example({"input": {"a": 1}}, {"input": asked()}),
    "no-messages": Example({"input": []}, {"input": asked()}),
    "not-json": Example(asked(message(words("\ud83d"))), asked(message(words("\U0001f600")))),
    "request-bytes": Example([LONG] * 52, [LONG] * 51),
    "not-a-message": Example(asked("hello"), asked(message(words("hello")))),
    "no-type": Example(asked({"content": "x"}), asked({"type": "from_the_future"})),
    "unknown-role": Example(
        asked({"type": "message", "role": "tool", "content": "x"}),
        asked({"type": "message", "role": "developer", "content": "x"}),
    ),
    "duplicate-item-id": Example(
        asked(answer() | {"id": "m1"}, answer() | {"id": "m1"}),
        asked(answer() | {"id": "m1"}, answer() | {"id": "m2"}),
    ),
    "no-content": Example(asked({"role": "user"}), asked({"role": "user", "content": "x"})),
    "empty-content": Example(asked(message()), asked(message(words()))),
    "content-chars": Example([{"role": "user", "content": "x" * (10 * MIB + 1)}], [LONG]),
    "blank-text": Example(asked(message(words(" "))), asked(message(words(".")))),
    "malformed-part": Example(asked(message("bare")), asked(message({"type": "input_new"}))),
    "wrong-part": Example(
        asked(message({"type": "text", "text": "x"})), asked(message(words("x")))
    ),
    "malformed-reasoning": Example(
        asked(reasoning(summary=None), answer()), asked(reasoning(), answer())
    ),
    "reasoning-alone": Example(asked(reasoning(), *asked()), asked(reasoning(), answer())),
    "malformed-call": Example(called(arguments={"a": 1}), called(arguments='{"a": 1}')),
    "call-id": Example(asked(function("")), called()),
    "call-id-long": Example(
        asked(function("c" * 65), output("c" * 65)), asked(function("c" * 64), output("c" * 64))
    ),
    "call-name": Example(called(name="a.b"), called(name="a-b")),
    "call-name-doubtful": Example(called(name="n" * 65), called(name="n" * 64)),
    "arguments-not-object": Example(called(arguments="[1]"), called(arguments=' {"a": NaN}')),
    "duplicate-call-id": Example(
        asked(function("c1"), function("c1"), output("c1")),
        asked(function("c1"), function("c2"), output("c2"), output("c1")),
    ),
    "unanswered-call": Example(
        asked(function("c1"), function("c2"), output("c1")),
        asked(function("c1"), function("c2"), output("c1"), *asked(), output("c2")),
    ),
    "malformed-result": Example(asked(function(), output(output=7)), called()),
    "orphan-result": Example(asked(output()), called()),
    "duplicate-result": Example([*called(), output()], called()),
    "image-count": Example(asked(message(*[PICTURE] * 1501)), asked(message(*[PICTURE] * 1500))),
}

SHELL = {"type": "local_shell_call", "id": "s1", "call_id": "c1", "action": {"command": ["ls"]}}
APPROVAL = {"type": "mcp_approval_request", "id": "a1", "name": "x", "arguments": "{}"}
SEARCH = {"type": "tool_search_call", "call_id": "c1", "arguments": {"query": "x"}}
FOUND = {"type": "tool_search_output", "call_id": "c1", "tools": []}
CUSTOM = {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "***"}

MORE_RESPONSES: list[tuple[str, Example]] = [
    ("not-a-list", Example({"input": "text"}, {"input": [{"role": "user", "content": "text"}]})),
    ("no-type", Example(asked({"type": 7}), asked({"type": "web_search_call", "id": "w"}))),
    ("no-content", Example(asked({"role": "user", "content": {"a": 1}}), asked())),
    ("malformed-part", Example(asked(message(words(None))), asked(message(words())))),
    ("malformed-part", Example(asked(message({"type": "input_image"})), asked(message(PICTURE)))),
    (
        "wrong-part",
        Example(asked(answer(words())), asked(answer({"type": "refusal", "refusal": "no"}))),
    ),
    (
        "wrong-part",
        Example(
            asked(function(), output(output=[{"type": "text", "text": "x"}])),
            asked(function(), output(output=[words(), PICTURE])),
        ),
    ),
    ("reasoning-alone", Example(asked(reasoning()), asked(reasoning(), reasoning(), answer()))),
    (
        "reasoning-alone",
        Example(asked(function(), reasoning(), output()), asked(reasoning(), function(), output())),
    ),
    (
        "reasoning-alone",
        Example(
            asked(reasoning(), {"type": "compaction", "encrypted_content": "eA=="}),
            asked(reasoning(), {"type": "web_search_call", "id": "w1"}),
        ),
    ),
    (
        "malformed-call",
        Example(
            asked(CUSTOM | {"input": {}}, output()), asked(CUSTOM | {"input": "not JSON"}, output())
        ),
    ),
    (
        "malformed-call",
        Example(
            asked(SHELL | {"action": None}, output()),
            asked({"type": "computer_call", "call_id": "c1", "actions": []}, output()),
        ),
    ),
    (
        "orphan-result",
        Example(
            asked({"type": "local_shell_call_output", "id": "s2", "output": "x"}),
            asked(SHELL, {"type": "local_shell_call_output", "id": "s1", "output": "x"}),
        ),
    ),
    (
        "unanswered-call",
        Example(
            asked(SHELL),
            asked(
                SHELL,
                {"type": "local_shell_call_output", "call_id": "c1", "id": "s1", "output": "x"},
            ),
        ),
    ),
    (
        "unanswered-call",
        Example(
            asked(APPROVAL),
            asked(
                APPROVAL,
                {"type": "mcp_approval_response", "approval_request_id": "a1", "approve": True},
            ),
        ),
    ),
    (
        "call-id",
        Example(
            asked(CUSTOM | {"call_id": None}),
            asked({"type": "tool_search_call", "call_id": None, "arguments": {}}),
        ),
    ),
    (
        "orphan-result",
        Example(
            [output(), *called(call_id="c1")[:-1], output("c1")],
            asked(
                {"type": "apply_patch_call", "call_id": "c1", "operation": {}},
                {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed"},
            ),
        ),
    ),
    ("arguments-not-object", Example(called(arguments=""), called(arguments="{}"))),
    ("unanswered-call", Example(asked(SEARCH), asked(SEARCH, FOUND))),
    ("orphan-result", Example(asked(FOUND), asked(FOUND | {"call_id": None}))),
]


# Gemini


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def told(*contents: Any) -> list[Any]:
    return [user({"text": "Go on."}), *contents]


def call(**changes: Any) -> dict[str, Any]:
    return {"functionCall": changed({"name": "read", "args": {}}, changes)}


def response(**changes: Any) -> dict[str, Any]:
    return {"functionResponse": changed({"name": "read", "response": {"output": "x"}}, changes)}


def exchanged(**changes: Any) -> list[Any]:
    return told(model(call(**changes)), user(response()))


SAID = {"text": "x"}
INLINE = {"inlineData": {"mimeType": "image/png", "data": png(10, 10)}}

GEMINI: dict[str, Example] = {
    "not-a-list": Example({"contents": "text"}, {"contents": told()}),
    "no-messages": Example({"contents": []}, {"contents": told()}),
    "not-json": Example(told(model({"text": "\ud83d"})), told(model({"text": "x"}))),
    "not-a-message": Example(told("hello"), told(user(SAID))),
    "unknown-role": Example(told({"role": "assistant", "parts": [SAID]}), told({"parts": [SAID]})),
    "first-not-user": Example([model(SAID), user(SAID)], told(model(SAID))),
    "no-content": Example(told({"role": "user"}), told(user(SAID))),
    "empty-content": Example(told(user()), told(user(SAID))),
    "malformed-part": Example(told(user({})), told(user({"from_the_future": {}}))),
    "blank-text": Example(
        told(user({"text": ""})), told(model({"text": "", "thoughtSignature": "c2ln"}))
    ),
    "wrong-role": Example(told(user(call())), exchanged()),
    "call-input": Example(exchanged(args="{}"), exchanged(args=None)),
    "call-name": Example(exchanged(name="a b"), exchanged(name="a.b:c-d")),
    "call-name-doubtful": Example(exchanged(name="n" * 65), exchanged(name="n" * 64)),
    "misplaced-call": Example(
        told(model(SAID), model(call()), user(response())),
        told(model(SAID, call()), user(response())),
    ),
    "unanswered-call": Example(told(model(call()), user(SAID)), exchanged()),
    "response-count": Example(
        told(model(call(), call()), user(response())),
        told(model(call(), call()), user(response(), response(), SAID)),
    ),
    "malformed-result": Example(
        told(model(call()), user(response(name=""))), told(model(call()), user(response(id="x")))
    ),
    "orphan-result": Example(told(user(response())), exchanged()),
    "image-count": Example([user(*[INLINE] * 3601)], [user(*[INLINE] * 3600)]),
}

SNAKE_CALL = {"function_call": {"name": "read", "args": {}}}
SNAKE_RESPONSE = {"function_response": {"name": "read", "response": {}}}

MORE_GEMINI: list[tuple[str, Example]] = [
    ("no-content", Example(told({"role": "user", "parts": "x"}), told())),
    ("malformed-part", Example(told(user("bare")), told())),
    ("malformed-part", Example(told(user({"text": 5})), told())),
    ("malformed-part", Example(told(user({"inlineData": {"data": "x"}})), told(user(INLINE)))),
    ("malformed-part", Example(told(model({"functionCall": 5}), user(response())), told())),
    ("wrong-role", Example(told(model(response())), told())),
    (
        "unanswered-call",
        Example(
            told(model(SNAKE_CALL)),
            told(model(SNAKE_CALL), {"role": "function", "parts": [SNAKE_RESPONSE]}),
        ),
    ),
    (
        "malformed-result",
        Example(told(model(call()), user(response(response="x"))), exchanged()),
    ),
    (
        "orphan-result",
        Example(
            [*exchanged(), user(response())],
            told(model(call()), user(response()), model(call()), user(response())),
        ),
    ),
    ("blank-text", Example(told(user({"text": ""})), told(user({"text": " "})))),
]


# LangChain


def lc(kind: str, content: Any = "Go on.", **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": {"content": content, **data}}


def talk(*messages: Any) -> list[Any]:
    return [lc("human"), *messages]


def use(call_id: Any = "c1", **changes: Any) -> dict[str, Any]:
    return changed({"name": "read", "args": {}, "id": call_id, "type": "tool_call"}, changes)


def using(*calls: Any, content: Any = "") -> dict[str, Any]:
    return lc("ai", content, tool_calls=list(calls))


def tool(call_id: Any = "c1", content: Any = "done") -> dict[str, Any]:
    return lc("tool", content, tool_call_id=call_id)


def used(**changes: Any) -> list[Any]:
    return talk(using(use(**changes)), tool())


INVALID = {"name": "read", "args": "{", "id": "c1", "error": "x", "type": "invalid_tool_call"}
DUMPED = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "schema", "messages", "AIMessage"],
    "kwargs": {"content": "x", "type": "ai"},
}

LANGCHAIN: dict[str, Example] = {
    "not-a-list": Example({"messages": 5}, {"messages": talk()}),
    "no-messages": Example([], talk()),
    "not-json": Example(talk(lc("ai", "\udc00")), talk(lc("ai", "x"))),
    "mixed-forms": Example(talk(DUMPED), [DUMPED, DUMPED]),
    "not-a-message": Example(talk({"type": "human", "data": 5}), talk(lc("human"))),
    "unknown-role": Example(talk(lc("remove")), talk(lc("AIMessageChunk"))),
    "no-content": Example(talk(lc("ai", None)), talk(using(use(), content=""), tool())),
    "blank-text": Example(talk(lc("human", " ")), talk(using(use()), tool(content=""))),
    "malformed-block": Example(talk(lc("ai", [5])), talk(lc("ai", ["x", {"type": "new"}]))),
    "malformed-call": Example(used(args="{}"), used(args={"a": 1})),
    "call-id": Example(talk(using(use(""))), used()),
    "duplicate-call-id": Example(
        talk(using(use("c1"), use("c1")), tool("c1")),
        talk(using(use("c1"), use("c2")), tool("c2"), tool("c1")),
    ),
    "repeated-call-id": Example([*used(), *used()], [*used(), *talk(using(use("c2")), tool("c2"))]),
    "unanswered-call": Example(
        talk(using(use("c1"), use("c2")), tool("c1"), *talk(), lc("ai")),
        talk(using(use("c1"), use("c2")), tool("c1"), tool("c2"), *talk()),
    ),
    "orphan-result": Example(talk(tool()), used()),
    "duplicate-result": Example([*used(), tool()], used()),
}

SHADOW = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}

MORE_LANGCHAIN: list[tuple[str, Example]] = [
    (
        "unanswered-call",
        Example(
            talk(lc("ai", "", invalid_tool_calls=[INVALID])),
            talk(lc("ai", "", tool_calls=[], invalid_tool_calls=[INVALID]), tool()),
        ),
    ),
    (
        "unanswered-call",
        Example(talk(lc("ai", [SHADOW])), talk(using(use(), content=[SHADOW]), tool())),
    ),
    (
        "unanswered-call",
        Example(
            talk(
                lc("ai", "", additional_kwargs={"function_call": {"name": "f", "arguments": "{}"}})
            ),
            talk(
                lc("ai", "", additional_kwargs={"function_call": {"name": "f", "arguments": "{}"}}),
                lc("function", "done", name="f"),
            ),
        ),
    ),
    (
        "orphan-result",
        Example(
            talk(using(use()), tool(), lc("ai", "x"), tool()),
            talk(
                lc(
                    "ai",
                    "",
                    additional_kwargs={"tool_calls": [{"id": "c1", "function": {"name": "f"}}]},
                ),
                tool(),
            ),
        ),
    ),
    ("blank-text", Example(talk(lc("ai", [])), talk(using(use(), content=[]), tool()))),
    ("blank-text", Example(talk(lc("human", [{"type": "text", "text": ""}])), talk())),
    ("blank-text", Example(talk(lc("human", [""])), talk())),
    ("malformed-block", Example(talk(lc("human", [{"type": "text"}])), talk())),
    ("malformed-call", Example(talk(using(use(name=None)), tool()), used())),
    ("malformed-call", Example(talk(using(use(name="")), tool()), used())),
    ("not-a-message", Example(talk({"lc": 1}), [DUMPED])),
    ("not-a-message", Example(talk("text"), talk())),
    (
        "unknown-role",
        Example([DUMPED | {"id": ["x", "Prompt"]}], [DUMPED | {"id": None}]),
    ),
    ("unknown-role", Example(talk({"type": 5, "data": {}}), talk(lc("chat", role="user")))),
]


# OpenCode


def opened(*messages: Any) -> list[Any]:
    return [oc("user", text()), *messages]


def oc(role: str, *parts: Any, **info: Any) -> dict[str, Any]:
    return {"info": {"role": role, **info}, "parts": list(parts)}


def text(value: Any = "Go on.", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **more}


def ran(call_id: Any = "c1", part: dict[str, Any] | None = None, **state: Any) -> dict[str, Any]:
    whole = {"status": "completed", "input": {}, "output": "x", "time": {"start": 1, "end": 2}}
    made = {"type": "tool", "callID": call_id, "tool": "read", "state": changed(whole, state)}
    return changed(made, part or {})


def step(*args: Any, **state: Any) -> list[Any]:
    return opened(oc("assistant", ran(*args, **state)))


OPENCODE: dict[str, Example] = {
    "not-a-list": Example({"info": {}, "messages": 5}, {"info": {}, "messages": opened()}),
    "no-messages": Example({"info": {}, "messages": []}, {"info": {}, "messages": opened()}),
    "not-json": Example(opened(oc("assistant", text("\ud83d"))), opened()),
    "not-a-message": Example(opened({"info": {"role": "user"}}), opened(oc("user", text()))),
    "unknown-role": Example(opened(oc("system", text())), opened(oc("assistant", text()))),
    "empty-content": Example(opened(oc("assistant")), opened(oc("assistant", {"type": "patch"}))),
    "duplicate-message-id": Example(
        opened(oc("user", text(), id="m1"), oc("user", text(), id="m1")),
        opened(oc("user", text(), id="m1"), oc("user", text(), id="m2")),
    ),
    "malformed-part": Example(opened(oc("user", text(None))), opened(oc("user", text()))),
    "duplicate-part-id": Example(
        opened(oc("user", text(id="p1"), text(id="p1"))),
        opened(oc("user", text(id="p1"), text(id="p2"))),
    ),
    "wrong-role": Example(
        opened(oc("user", {"type": "reasoning", "text": "x"})),
        opened(oc("assistant", {"type": "reasoning", "text": "x"})),
    ),
    "blank-text": Example(opened(oc("user", text(""))), opened(oc("user", text("", ignored=True)))),
    "call-id": Example(step(""), step("REDACTED")),
    "call-name": Example(step(part={"tool": ""}), step()),
    "call-input": Example(step(input="{}"), step(input={"a": 1})),
    "tool-status": Example(step(status="done"), step(status="completed")),
    "no-output": Example(step(output=None), step(output="")),
    "no-error": Example(step(status="error", output=None), step(status="error", error="x")),
    "no-time": Example(step(time=None), step(time={})),
    "unanswered-call": Example(step(status="running"), step()),
    "duplicate-call-id": Example(
        opened(oc("assistant", ran("c1"), ran("c1"))), [*step("c1"), *step("c1")]
    ),
}

MORE_OPENCODE: list[tuple[str, Example]] = [
    ("not-a-message", Example(opened("text"), opened())),
    ("not-a-message", Example(opened({"info": {"role": "user"}, "parts": "x"}), opened())),
    ("malformed-part", Example(opened(oc("user", "bare")), opened(oc("user", {"type": "new"})))),
    (
        "malformed-part",
        Example(
            opened(oc("user", {"type": "file", "mime": "image/png"})),
            opened(oc("user", {"type": "file", "mime": "image/png", "url": "data:"})),
        ),
    ),
    ("malformed-part", Example(step(part={"state": 5}), step())),
    ("wrong-role", Example(opened(oc("user", ran())), step())),
    ("wrong-role", Example(opened(oc("assistant", {"type": "subtask"})), opened())),
    ("call-id", Example(step(part={"callID": 5}), step())),
    ("unanswered-call", Example(step(status="pending", output=None), step())),
]
