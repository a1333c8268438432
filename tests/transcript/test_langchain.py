from __future__ import annotations

from typing import Any

import pytest

import recap
from recap.config import Settings
from recap.transcript import langchain, openai
from recap.transcript.formats import read_bytes
from recap.transcript.lists import read_messages
from recap.transcript.tree import to_bytes
from tests.transcript.dialect_examples import INVALID, lc, talk, tool, use, using
from tests.transcript.handles import PNG, file, held, in_file

KEEP_ALL = Settings(retention="1", markers=False)
CLASSES = {"human": "Human", "ai": "AI", "system": "System", "tool": "Tool"}


def read(*messages: Any) -> Any:
    return langchain.read(held(list(messages)))


def kinds(messages: Any) -> list[tuple[str, list[str]]]:
    return [(m.role, [part.kind for part in m.parts]) for m in messages]


def dumped(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as ``dumpd`` writes it."""
    kind = message["type"]
    path = ["langchain", "schema", "messages", f"{CLASSES[kind]}Message"]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {**message["data"], "type": kind}}


CHAT = [
    lc("system", "Be brief."),
    *talk(using(use(), content="Looking."), tool(), lc("ai", "Done.")),
    *talk(),
]


@pytest.mark.parametrize("messages", [CHAT, [dumped(message) for message in CHAT]])
def test_both_forms_are_read_alike_and_go_out_as_they_came(messages: Any):
    found = read(*messages).messages
    assert kinds(found) == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["text", "call"]),
        ("tool", ["result"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]
    done = recap.compact(messages, settings=KEEP_ALL)
    assert all(out is given for out, given in zip(done.messages, messages, strict=True))


def test_what_is_added_takes_the_form_of_the_list():
    long = lc("ai", "x" * 5000)
    messages = [dumped(each) for each in [*talk(long), *talk()]]
    done = recap.compact(messages, "and now?", retention="0.4", policy="recency")
    assert {each["lc"] for each in done.messages} == {1}
    assert done.messages[-1] == {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "and now?", "type": "human"},
    }
    assert done.report.markers == 1
    assert recap.check(done.messages, "langchain") == []
    plain = recap.compact([*talk(long), *talk()], "and now?", retention="0.4", policy="recency")
    assert [each["data"]["content"] for each in plain.messages] == [
        each["kwargs"]["content"] for each in done.messages
    ]


def test_invalid_calls_are_calls_and_need_a_result():
    answered = talk(lc("ai", "", tool_calls=[], invalid_tool_calls=[INVALID]), tool(), *talk())
    call = read(*answered).messages[1].parts[0]
    assert (call.kind, call.call_id, call.payload()) == ("call", "c1", "{")
    assert recap.compact(answered, settings=KEEP_ALL).messages == answered
    open_call = talk(
        using(use("c0")), tool("c0"), lc("ai", "", invalid_tool_calls=[INVALID]), *talk()
    )
    assert recap.compact(open_call, settings=KEEP_ALL).messages == [*open_call[:3], *talk()]


@pytest.mark.parametrize(
    "calls",
    [
        {"tool_calls": [INVALID]},
        {"tool_calls": [use(args="{")]},
        {"invalid_tool_calls": [use(args={})]},
        {"invalid_tool_calls": [use(args=None, type=None)]},
    ],
)
def test_a_call_in_the_wrong_list_goes_out_in_the_right_one(calls: Any):
    done = recap.compact(talk(lc("ai", "", **calls), tool(), *talk()), settings=KEEP_ALL)
    assert len(done.messages) == 4
    assert recap.check(done.messages, "langchain") == []


def test_a_part_of_a_message_goes_out_in_a_message_of_its_own():
    both = lc("ai", "Hm.", tool_calls=[use("c1")], invalid_tool_calls=[INVALID | {"id": "c2"}])
    kept = lc("ai", "Hm.", tool_calls=[use("c1")], invalid_tool_calls=[], type="ai")
    done = recap.compact(talk(both, tool("c1"), *talk()), settings=KEEP_ALL)
    assert done.messages == talk(kept, tool("c1"), *talk())
    only_invalid = recap.compact(talk(both, tool("c2"), *talk()), settings=KEEP_ALL)
    assert only_invalid.messages[1]["data"]["invalid_tool_calls"] == [INVALID | {"id": "c2"}]


def test_a_call_that_the_content_repeats_is_one_call():
    block = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
    message = using(use(), content=[{"type": "text", "text": "Hm."}, block])
    messages = talk(message, tool(), *talk())
    assert kinds(read(*messages).messages)[1] == ("assistant", ["text", "call"])
    assert recap.compact(messages, settings=KEEP_ALL).messages[1] is message
    alone = talk(lc("ai", [block]), tool(), *talk())
    assert kinds(read(*alone).messages)[1] == ("assistant", ["call"])
    assert recap.check(recap.compact(alone, settings=KEEP_ALL).messages, "langchain") == []


def test_calls_that_older_versions_kept_beside_the_message():
    function = {"name": "read", "arguments": '{"path": "a"}'}
    older = lc("ai", "", additional_kwargs={"tool_calls": [{"id": "c1", "function": function}]})
    legacy = lc("ai", "", additional_kwargs={"function_call": function})
    messages = talk(older, tool(), legacy, lc("function", "done", name="read"), *talk())
    found = read(*messages).messages
    calls = [m.parts[0] for m in found if m.role == "assistant"]
    assert [call.payload() for call in calls] == ['{"path": "a"}'] * 2
    done = recap.compact(messages, settings=KEEP_ALL)
    assert done.messages[:3] == messages[:3]
    assert done.messages[3]["data"]["tool_calls"][0]["id"] == "function_call_1"
    assert done.messages[4]["data"]["tool_call_id"] == "function_call_1"
    assert recap.check(done.messages, "langchain") == []


@pytest.mark.parametrize("call", [None, 5, "text", []])
def test_what_is_no_call_among_those_kept_beside_the_message_is_left_out(call: Any):
    """It ended the read with an AttributeError."""
    older = lc("ai", "words", additional_kwargs={"tool_calls": [call]})
    transcript = read(*talk(older))
    assert [finding.code for finding in transcript.findings] == ["malformed-call"]
    assert kinds(transcript.messages)[1] == ("assistant", ["text"])


def test_thinking_of_every_vendor_is_thinking():
    blocks = [
        {"type": "thinking", "thinking": "a", "signature": "s"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "b"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "text", "text": "Hi."},
    ]
    message = lc("ai", blocks, additional_kwargs={"reasoning_content": "c"})
    parts = read(message).messages[0].parts
    assert [(p.kind, p.cost_chars) for p in parts] == [
        ("thinking", 1), ("thinking", 1), ("thinking", 4), ("thinking", 1), ("thinking", 0), ("text", 3),
    ]  # fmt: skip
    assert not any(part.is_blank for part in parts)
    assert recap.compact(talk(message, *talk()), settings=KEEP_ALL).messages[1] is message
    assert recap.compact(talk(message, *talk()), settings=KEEP_ALL, to="openai").messages[1] == {
        "role": "assistant",
        "content": "Hi.",
    }


def test_strings_stand_for_text_blocks_in_a_list():
    message = lc(
        "human",
        ["look", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}],
    )
    parts = read(message).messages[0].parts
    assert [(p.kind, p.author) for p in parts] == [("text", "human"), ("image", "human")]
    assert recap.compact([message]).messages[0] is message


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"},
        {"type": "image", "base64": PNG, "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
    ],
)
def test_images_of_every_generation_are_converted(block: Any):
    done = recap.compact([lc("human", [block, {"type": "text", "text": "look"}])], to="anthropic")
    assert done.messages[0]["content"][0]["source"]["data"] == PNG
    assert read(lc("human", [block])).messages[0].parts[0].images == ((24, 18, len(PNG)),)


def test_chunks_and_chat_messages_have_their_roles():
    found = read(
        lc("AIMessageChunk", "a"), lc("chat", "b", role="user"), lc("developer", "c")
    ).messages
    assert [m.role for m in found] == ["assistant", "user", "system"]


def test_a_failed_tool_message_is_an_error():
    failed = lc("tool", "no", tool_call_id="c1", status="error")
    assert read(failed).messages[0].parts[0].is_error
    done = recap.compact(talk(using(use()), failed, *talk()), settings=KEEP_ALL, to="anthropic")
    assert done.messages[2]["content"][0]["is_error"] is True


def test_the_model_of_a_message_is_known():
    message = lc("ai", "x", response_metadata={"model_name": "gpt-x"}, id="run-1")
    assert [(m.model, m.uid) for m in read(message).messages] == [("gpt-x", "run-1")]


def test_call_ids_are_replaced_in_both_forms():
    for form in (lambda each: each, dumped):
        messages = [
            form(each) for each in talk(using(use("c"), use("c")), tool("c"), tool("c"), *talk())
        ]
        done = recap.compact(messages, settings=KEEP_ALL)
        assert recap.check(done.messages, "langchain") == []
        key = "data" if "data" in messages[0] else "kwargs"
        assert [m[key]["tool_call_id"] for m in done.messages if "tool_call_id" in m[key]] == [
            "c",
            "c_2",
        ]


def test_foreign_messages_become_messages_to_dict():
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "no JSON"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "user", "content": "next"},
    ]
    done = recap.compact(chat, settings=KEEP_ALL, to="langchain")
    assert done.messages == [
        lc("system", "Be brief.", type="system"),
        lc("human", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], type="human"),
        lc(
            "ai",
            "",
            tool_calls=[
                {"name": "f", "args": {"input": "no JSON"}, "id": "c1", "type": "tool_call"}
            ],
            invalid_tool_calls=[],
            type="ai",
        ),
        lc("tool", "done", tool_call_id="c1", status="success", type="tool"),
        lc("human", "next", type="human"),
    ]
    assert openai.detect(done.messages) is None


def test_kept_messages_leave_a_file_byte_for_byte():
    texts = [
        b'{ "type":"human","data":{"content" : "caf\\u00e9","x":1.50} }',
        b'{"data":{"tool_calls":[{"id":"c","args":{ },"name":"f"}],"content":""},"type":"ai"}',
        b'{"type":"tool","data":{"tool_call_id":"c","content":"\xe2\x80\xa8"}}',
        b'{"type":"human","data":{"content":"next"}}',
    ]
    data = b'{"messages": [\n' + b" ,\n".join(texts) + b"]}"
    transcript = langchain.read(in_file(data))
    done = recap.session.compact_transcript(transcript, settings=KEEP_ALL)
    assert [to_bytes(tree) for tree in done.rendering.messages] == texts


def test_lists_and_states_are_recognised():
    for document in (CHAT, {"messages": CHAT}, [dumped(each) for each in CHAT]):
        assert read_bytes(file(document).dump()).format == "langchain"
        assert read_messages(document).dialect == "langchain"
    assert langchain.detect([{"type": "human", "data": {"x": 1}}]) is None


def test_faults_are_reported_and_left_out():
    faults = [
        5,
        lc("remove"),
        {"type": "human"},
        {"type": 5, "data": {}},
        lc("ai", None),
        lc("human", [5]),
    ]
    found = read(*faults, using(use(name="")))
    assert [f.code for f in found.findings] == [
        "not-a-message", *["unknown-role"] * 3, "no-content", "malformed-block", "malformed-call",
    ]  # fmt: skip


@pytest.mark.parametrize("content", [None, [[{}]], [{"type": "text", "text": {"a": 1}}], 7])
def test_a_result_without_legal_content_is_written_anew(content: Any) -> None:
    call = {"name": "ls", "args": {}, "id": "c1", "type": "tool_call"}
    messages = [
        {"type": "human", "data": {"content": "look"}},
        {"type": "ai", "data": {"content": "", "tool_calls": [call]}},
        {"type": "tool", "data": {"content": content, "tool_call_id": "c1"}},
        {"type": "human", "data": {"content": "next"}},
    ]
    done = recap.compact(messages, settings=KEEP_ALL)
    assert recap.check(done.messages, "langchain") == []
    assert done.messages[3] is messages[3]


def test_a_constructor_without_its_mark_is_written_anew() -> None:
    path = ["langchain", "schema", "messages", "HumanMessage"]
    bare = {"type": "constructor", "id": path, "kwargs": {"content": "look"}}
    done = recap.compact([bare, {**bare, "lc": 1}], "next", dialect="langchain", settings=KEEP_ALL)
    assert recap.check(done.messages, "langchain") == []


def test_a_result_without_its_mark_is_written_anew() -> None:
    call = {"name": "ls", "args": {}, "id": "c1", "type": "tool_call"}
    messages = [
        dumped(lc("human", "look")),
        dumped(lc("ai", "", tool_calls=[call])),
        dumped(lc("tool", "a.py", tool_call_id="c1")),
    ]
    del messages[2]["lc"]
    done = recap.compact(messages, dialect="langchain", settings=KEEP_ALL)
    assert recap.check(done.messages, "langchain") == []
    assert done.messages[2]["kwargs"]["content"] == "a.py"


@pytest.mark.parametrize("body", [{}, {"content": None}, {"content": {}}])
def test_calls_beside_no_content_are_written_anew(body: dict[str, Any]) -> None:
    call = {"name": "ls", "args": {}, "id": "c1", "type": "tool_call"}
    messages = [
        {"type": "human", "data": {"content": "look"}},
        {"type": "ai", "data": {**body, "tool_calls": [call]}},
        {"type": "tool", "data": {"content": "a.py", "tool_call_id": "c1"}},
    ]
    done = recap.compact(messages, settings=KEEP_ALL)
    assert recap.check(done.messages, "langchain") == []
    assert done.messages[1]["data"]["tool_calls"] == [call]
