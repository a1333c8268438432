from __future__ import annotations

from typing import Any

import pytest

import recap
from recap.config import Settings
from recap.transcript import gemini_contents
from recap.transcript.formats import read_bytes
from recap.transcript.lists import read_messages
from recap.transcript.tree import to_bytes
from tests.transcript.dialect_examples import call, model, response, told, user
from tests.transcript.handles import PNG, file, held, in_file

KEEP_ALL = Settings(retention="1", markers=False)
IMAGE = {"inlineData": {"mimeType": "image/png", "data": PNG}}


def read(*contents: Any, **beside: Any) -> Any:
    return gemini_contents.read(held({"contents": list(contents), **beside}))


def kinds(messages: Any) -> list[tuple[str, list[str]]]:
    return [(m.role, [part.kind for part in m.parts]) for m in messages]


def ids(messages: Any) -> list[str]:
    return [part.call_id for m in messages for part in m.parts if part.call_id]


def test_responses_sit_in_a_message_of_their_own():
    found = read(
        *told(model({"text": "Hm."}, call()), user(response(), {"text": "and b"}))
    ).messages
    assert kinds(found) == [
        ("user", ["text"]),
        ("assistant", ["text", "call"]),
        ("tool", ["result"]),
        ("user", ["text"]),
    ]
    assert found[2].envelope is found[3].envelope
    assert found[3].parts[0].author == "steering"


def test_calls_without_ids_pair_by_name_then_by_order():
    calls = model(call(name="a"), call(name="b"), call(name="a"))
    answers = user(response(name="b"), response(name="a"), response(name="z"))
    assert ids(read(*told(calls, answers)).messages) == [
        "call_1",
        "call_2",
        "call_3",
        "call_2",
        "call_1",
        "call_3",
    ]


def test_an_answered_id_is_not_taken_again():
    calls = model(call(id="x"), call())
    assert ids(read(*told(calls, user(response(id="x"), response()))).messages) == [
        "x",
        "call_1",
        "x",
        "call_1",
    ]


def test_only_the_last_content_can_be_answered():
    late = told(model(call()), user({"text": "stop"}), model({"text": "ok"}), user(response()))
    assert ids(read(*late).messages) == ["call_1"]
    done = recap.compact({"contents": [*late, user({"text": "next"})]}, settings=KEEP_ALL)
    assert done.report.excluded == {"open-call": 1, "orphan-result": 1}
    assert recap.check(done.messages, "gemini") == []


def test_a_response_that_comes_twice_goes_out_once():
    twice = told(model(call(id="c")), user(response(id="c"), response(id="c")), *told())
    done = recap.compact({"contents": twice}, settings=KEEP_ALL)
    assert done.messages == told(model(call(id="c")), user(response(id="c")), *told())


@pytest.mark.parametrize(
    ("answer", "text", "is_error"),
    [
        ({"output": "x"}, "x", False),
        ({"error": "no"}, "no", True),
        ({"result": "x"}, "x", False),
        ({"output": "x", "code": 1}, '{"output":"x","code":1}', False),
        ({}, "{}", False),
    ],
)
def test_a_response_is_its_text_where_it_holds_nothing_else(answer: Any, text: str, is_error: bool):
    part = read(*told(model(call()), user(response(response=answer)))).messages[2].parts[0]
    assert (part.text(), part.is_error) == (text, is_error)


def test_thoughts_and_signatures_are_thinking():
    parts = [
        {"text": "Let me see", "thought": True},
        {"text": "Hi.", "thoughtSignature": "c2ln"},
        {"text": "", "thoughtSignature": "c2ln"},
    ]
    found = read(*told(model(*parts))).messages[1].parts
    assert [(p.kind, p.has_signature, p.is_blank) for p in found] == [
        ("thinking", False, False),
        ("text", False, False),
        ("thinking", True, False),
    ]


def test_the_seal_beside_a_call_costs_nothing_and_is_kept():
    plain, sealed = call(), {**call(), "thoughtSignature": "c2ln" * 100}
    costs = [read(*told(model(each))).messages[1].parts[0].cost_chars for each in (plain, sealed)]
    assert costs == [len('{"name":"read","args":{}}')] * 2
    contents = told(model(sealed), user(response()), *told())
    assert recap.compact(contents, settings=KEEP_ALL).messages == contents


def test_images_and_files():
    pdf = {"inlineData": {"mimeType": "application/pdf", "data": "eA=="}}
    part, other = read(user({"text": "look"}, IMAGE, pdf)).messages[0].parts[1:]
    assert (part.kind, part.images, other.kind) == ("image", ((24, 18, len(PNG)),), "other")
    done = recap.compact([user({"text": "look"}, IMAGE)], to="anthropic")
    assert done.messages[0]["content"][1] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
    }


def test_both_spellings_are_read():
    snake = told(
        model({"function_call": {"name": "read", "args": {}, "id": "c"}}),
        user({"function_response": {"name": "read", "id": "c", "response": {"output": "x"}}}),
        *told(),
    )
    assert kinds(read(*snake).messages)[1:3] == [("assistant", ["call"]), ("tool", ["result"])]
    assert recap.compact(snake, settings=KEEP_ALL).messages == snake


@pytest.mark.parametrize("instruction", ["Be brief.", {"parts": [{"text": "Be brief."}]}])
def test_the_system_instruction_stays_beside_the_list(instruction: Any):
    document = {"systemInstruction": instruction, "contents": told()}
    done = recap.compact(document)
    assert done.system == [{"text": "Be brief."}]
    assert done.to_json().startswith(b'{"systemInstruction": {"parts": [{"text":')
    assert recap.compact(document, to="anthropic").system == [{"type": "text", "text": "Be brief."}]


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "fix it"},
    {"role": "assistant", "content": "Looking."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"p": 1}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
    {"role": "user", "content": "next"},
]


def test_a_foreign_list_begins_with_the_person_and_calls_follow_the_person():
    done = recap.compact(CHAT, settings=KEEP_ALL, to="gemini")
    assert done.messages == [
        user({"text": "fix it"}),
        model(
            {"text": "Looking."}, {"functionCall": {"id": "c1", "name": "read", "args": {"p": 1}}}
        ),
        user({"functionResponse": {"id": "c1", "name": "read", "response": {"output": "done"}}}),
        user({"text": "next"}),
    ]
    assert done.system == [{"text": "Be brief."}]


def test_images_of_foreign_results_stand_beside_the_response():
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    content = [{"type": "text", "text": "shot"}, {"type": "image", "source": source}]
    anthropic = [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "shoot", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}],
        },
        {"role": "user", "content": "next"},
    ]
    done = recap.compact(anthropic, settings=KEEP_ALL, to="gemini")
    answer = {"functionResponse": {"id": "t", "name": "shoot", "response": {"output": "shot"}}}
    assert done.messages[2] == user(answer, IMAGE)


def test_kept_contents_leave_a_file_byte_for_byte():
    texts = [
        b'{ "role":"user","parts":[{"text" : "caf\\u00e9"}] }',
        b'{"parts":[{"functionCall":{"args":{"n":1.50},"name":"f"},"thoughtSignature":"c2ln"}],"role":"model"}',
        b'{"parts":[{"functionResponse":{"name":"f","response":{"output":"\xe2\x80\xa8"}}}],"role":"user"}',
        b'{"parts":[{"text":"next"}]}',
    ]
    data = b'{"contents": [\n' + b" ,\n".join(texts) + b"]}"
    transcript = gemini_contents.read(in_file(data))
    done = recap.session.compact_transcript(transcript, settings=KEEP_ALL)
    assert [to_bytes(tree) for tree in done.rendering.messages] == texts


def test_lists_and_requests_are_recognised():
    for document in (told(), {"contents": told()}):
        assert read_bytes(file(document).dump()).format == "gemini-contents"
        assert read_messages(document).dialect == "gemini"
    parts_with_types = [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]
    assert gemini_contents.detect(parts_with_types) is None


def test_faults_are_reported_and_left_out():
    faults = [
        5,
        {"role": "x", "parts": []},
        {"role": "user"},
        user("bare", {}, {"text": 5}, call()),
    ]
    found = read(*faults, model(response(), call(name="")))
    codes = [f.code for f in found.findings]
    assert codes == ["not-a-message", "unknown-role", "no-content", *["malformed-block"] * 6]
    assert not any(m.parts for m in found.messages)


def test_a_content_of_role_tool_goes_out_as_the_users() -> None:
    words = {"role": "tool", "parts": [{"text": "Please mend it"}]}
    transcript = read_messages([words, {"role": "model", "parts": [{"text": "done"}]}], "gemini")
    done = recap.session.compact_transcript(transcript, "next", settings=KEEP_ALL)
    assert done.messages[0] == {"role": "user", "parts": [{"text": "Please mend it"}]}
