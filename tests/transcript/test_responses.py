from __future__ import annotations

from typing import Any

import pytest

import recap
from recap.config import Settings
from recap.transcript import anthropic, openai, responses
from recap.transcript.formats import read_bytes
from recap.transcript.lists import read_messages
from recap.transcript.tree import to_bytes, to_object
from recap.transcript.write_responses import write_message
from tests.transcript.dialect_examples import (
    answer,
    asked,
    function,
    message,
    output,
    reasoning,
    words,
)
from tests.transcript.handles import PNG, file, held, in_file

KEEP_ALL = Settings(retention="1", markers=False)


def read(*items: Any, **beside: Any) -> Any:
    return responses.read(held({"input": list(items), **beside}))


def kinds(messages: Any) -> list[tuple[str, list[str]]]:
    return [(m.role, [part.kind for part in m.parts]) for m in messages]


def test_items_of_the_model_up_to_the_next_output_are_one_message():
    found = read(
        *asked(),
        reasoning(), answer(), function("c1"), function("c2"),
        output("c1"), output("c2"),
        reasoning(), answer(),
        *asked(),
    ).messages  # fmt: skip
    assert kinds(found) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "call", "call"]),
        ("tool", ["result"]),
        ("tool", ["result"]),
        ("assistant", ["thinking", "text"]),
        ("user", ["text"]),
    ]
    assert found[1].envelope.raw is None


def test_reasoning_leaves_with_the_block_it_belongs_to():
    items = asked(
        reasoning(id="r1"), function("c1"), output("c1", output="x" * 999), answer(), *asked()
    )
    done = recap.compact(items, retention="0.001", dialect="responses")
    assert not [item for item in done.messages if item.get("type")]


def test_item_ids_are_no_part_of_identity():
    with_ids = [
        each | {"id": f"i{n}"} for n, each in enumerate(asked(answer(), function(), output()))
    ]
    plain = asked(answer(), function(), output())
    digests = [
        [part.digest for m in read(*items).messages for part in m.parts]
        for items in (with_ids, plain)
    ]
    assert digests[0] == digests[1]


def test_equal_content_is_equal_in_every_dialect():
    ours = read(*asked(answer(words("Hi.", "output_text")), function("c1"), output("c1"))).messages
    chat = openai.read(
        held(
            [
                {"role": "user", "content": "Go on."},
                {
                    "role": "assistant",
                    "content": "Hi.",
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "read", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "done"},
            ]
        )
    ).messages
    assert [[p.digest for p in m.parts] for m in ours] == [
        [p.digest for p in m.parts] for m in chat
    ]


def test_a_string_is_one_message_of_the_person():
    transcript = responses.read(held({"model": "x", "input": "fix it"}))
    assert [(m.role, m.parts[0].author, m.parts[0].text()) for m in transcript.messages] == [
        ("user", "human", "fix it")
    ]
    assert recap.compact({"input": "fix it"}).messages == [{"role": "user", "content": "fix it"}]


def test_instructions_go_beside_the_list():
    done = recap.compact({"instructions": "Be brief.", "input": asked(answer())})
    assert done.system == ["Be brief."]
    assert done.to_json().startswith(b'{"instructions": "Be brief.",\n"input": [')
    assert recap.compact({"instructions": "Be brief.", "input": asked()}, to="openai").messages[
        0
    ] == {
        "role": "system",
        "content": "Be brief.",
    }


def test_developer_messages_stay_in_the_list():
    items = [message(words("Rules"), role="developer"), *asked(answer(), *asked())]
    assert recap.compact(items, settings=KEEP_ALL).messages == items


def test_an_answer_of_the_vendor_is_read():
    document = {
        "object": "response",
        "id": "r",
        "output": [reasoning(), answer(words("Hi.", "output_text"))],
    }
    assert responses.detect(document) == "object response"
    assert kinds(responses.read(held(document)).messages) == [("assistant", ["thinking", "text"])]


@pytest.mark.parametrize(
    ("call", "result", "name"),
    [
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** x"},
            {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"},
            "apply_patch",
        ),
        (
            {"type": "local_shell_call", "id": "i", "call_id": "c", "action": {"command": ["ls"]}},
            {"type": "local_shell_call_output", "id": "i", "output": "ok"},
            "local_shell",
        ),
        (
            {"type": "computer_call", "call_id": "c", "action": {"type": "click"}},
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {
                    "type": "computer_screenshot",
                    "image_url": f"data:image/png;base64,{PNG}",
                },
            },
            "computer",
        ),
        (
            {"type": "mcp_approval_request", "id": "c", "name": "rm", "arguments": "{}"},
            {"type": "mcp_approval_response", "approval_request_id": "c", "approve": True},
            "rm",
        ),
        (
            {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file"}},
            {"type": "apply_patch_call_output", "call_id": "c", "status": "failed"},
            "apply_patch",
        ),
    ],
)
def test_every_kind_of_call_pairs_with_its_output(call: Any, result: Any, name: str):
    items = asked(call, result, *asked())
    found = read(*items).messages
    assert kinds(found) == [
        ("user", ["text"]),
        ("assistant", ["call"]),
        ("tool", ["result"]),
        ("user", ["text"]),
    ]
    assert (found[1].parts[0].name, found[1].parts[0].call_id) == (name, "c")
    assert found[2].parts[0].call_id == "c"
    assert recap.compact(items, settings=KEEP_ALL).messages == items
    assert (
        recap.check(recap.compact(items, settings=KEEP_ALL, to="anthropic").messages, "anthropic")
        == []
    )


def test_a_screenshot_costs_as_an_image():
    screenshot = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PNG}"}
    part = (
        read({"type": "computer_call_output", "call_id": "c", "output": screenshot})
        .messages[0]
        .parts[0]
    )
    assert part.images == ((24, 18, len(PNG)),)
    assert part.cost_chars == 4


def test_a_tool_the_vendor_runs_is_part_of_the_answer():
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    server_search = {"type": "tool_search_call", "call_id": None, "arguments": {}}
    found = read(*asked(search, server_search, answer())).messages
    assert kinds(found) == [("user", ["text"]), ("assistant", ["other", "other", "text"])]
    assert (
        recap.compact(asked(search, server_search, answer(), *asked()), settings=KEEP_ALL).messages[
            1
        ]
        is search
    )


def test_an_unanswered_call_takes_its_reasoning_with_it():
    items = asked(reasoning(), function("c1"), reasoning(), answer(), *asked())
    done = recap.compact(items, settings=KEEP_ALL)
    assert done.messages == asked(items[3], items[4], *asked())
    assert done.report.excluded == {"open-call": 1}
    assert done.report.notes == {"thinking-at-end": 1}


def test_a_sealed_summary_goes_to_its_vendor_alone():
    summary = {"type": "compaction", "encrypted_content": "eA=="}
    items = [summary, *asked(answer(), *asked())]
    assert recap.compact(items, settings=KEEP_ALL).messages == items
    chat = recap.compact(items, settings=KEEP_ALL, to="openai")
    assert "eA==" not in chat.to_json().decode()
    assert chat.report.notes == {"thinking-of-another-dialect": 1}


def test_an_item_that_comes_twice_goes_out_without_its_id():
    items = asked(answer() | {"id": "m1"}, answer() | {"id": "m1"}, *asked())
    done = recap.compact(items, settings=KEEP_ALL)
    assert done.messages == asked(items[1], {"role": "assistant", "content": "Go on."}, *asked())


def test_call_ids_are_made_unique_on_calls_and_outputs():
    items = asked(*[function("c"), output("c")] * 2, *asked())
    done = recap.compact(items, settings=KEEP_ALL)
    assert [item["call_id"] for item in done.messages if "call_id" in item] == [
        "c",
        "c",
        "c_2",
        "c_2",
    ]
    assert recap.check(done.messages, "responses") == []


def test_content_of_another_api_is_rewritten():
    chat = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
    ]
    done = recap.compact([message(*chat), function(), output()], "go", dialect="responses")
    assert done.messages[0]["content"] == [
        words("look"),
        {"type": "input_image", "image_url": "https://x/a.png", "detail": "auto"},
    ]


def write(role: Any, message: Any, reader: Any = anthropic) -> Any:
    parts = [part for m in reader.read(held([message])).messages for part in m.parts]
    return [to_object(tree) for tree in write_message(role, parts)]


def test_foreign_answers_become_one_item_a_part():
    blocks = [
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "t1", "name": "fs.read", "input": {"path": "a"}},
    ]
    assert write("assistant", {"role": "assistant", "content": blocks}) == [
        {"role": "assistant", "content": "Looking."},
        {"type": "function_call", "call_id": "t1", "name": "fs_read", "arguments": '{"path":"a"}'},
    ]


def test_foreign_results_keep_their_images():
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    content = [{"type": "text", "text": "shot"}, {"type": "image", "source": source}]
    block = {"type": "tool_result", "tool_use_id": "t1", "content": content}
    assert write("tool", {"role": "user", "content": [block]}) == [
        {
            "type": "function_call_output",
            "call_id": "t1",
            "output": [
                words("shot"),
                {
                    "type": "input_image",
                    "image_url": f"data:image/png;base64,{PNG}",
                    "detail": "auto",
                },
            ],
        }
    ]


def test_foreign_text_of_the_person_and_the_system_becomes_messages():
    assert write("user", {"role": "user", "content": "fix it"}) == [
        {"role": "user", "content": "fix it"}
    ]
    assert write("system", {"role": "system", "content": "Be brief."}, openai) == [
        {"role": "developer", "content": "Be brief."}
    ]


def test_kept_items_leave_a_file_byte_for_byte():
    texts = [
        b'{ "role":"user","content" : "caf\\u00e9" }',
        b'{"type":"reasoning","summary":[ ],"encrypted_content":"eA==","id":"r1"}',
        b'{"call_id":"c","type":"function_call","arguments":"{ }","name":"f","x":1.50}',
        b'{"type":"function_call_output","call_id":"c","output":"\xe2\x80\xa8"}',
        b'{"role":"user","content":[{"type":"input_text","text":"next"}]}',
    ]
    data = b'{"model": "m", "input": [\n  ' + b",\n  ".join(texts) + b"\n]}"
    transcript = responses.read(in_file(data))
    done = recap.session.compact_transcript(transcript, settings=KEEP_ALL)
    assert [to_bytes(tree) for tree in done.rendering.messages] == texts


@pytest.mark.parametrize(
    "document",
    [
        asked(function(), output()),
        {"input": asked(function(), output()), "model": "m"},
        [message(words())],
        {"object": "response", "output": [answer()]},
    ],
)
def test_lists_and_requests_are_recognised(document: Any):
    assert responses.detect(document)
    assert read_bytes(file(document).dump()).format == "openai-responses"


@pytest.mark.parametrize(
    "document", [[], {}, [{"role": "user", "content": "x"}], {"messages": []}, "x", None]
)
def test_other_lists_are_not(document: Any):
    assert responses.detect(document) is None


def test_one_item_a_line_is_a_list_too():
    lines = b"\n".join(file(item).dump() for item in asked(function(), output()))
    transcript = read_bytes(lines)
    assert (transcript.format, len(transcript.messages)) == ("openai-responses", 3)


def test_python_lists_are_recognised():
    assert read_messages(asked(reasoning(), answer())).dialect == "responses"
    assert read_messages({"input": asked()}).dialect == "responses"


def test_faults_are_reported_and_left_out():
    found = read({}, 5, {"role": "tool", "content": "x"}, {"role": "user"}, function(name=None))
    assert [f.code for f in found.findings] == [
        "unknown-item", "not-a-message", "unknown-role", "no-content", "malformed-call",
    ]  # fmt: skip
    assert found.messages == ()


def test_a_message_without_a_role_is_left_out_and_told() -> None:
    roleless = {"type": "message", "content": [{"type": "output_text", "text": "done"}]}
    transcript = read_messages([{"role": "user", "content": "hi"}, roleless], "responses")
    assert [finding.code for finding in transcript.findings] == ["unknown-role"]
    assert recap.session.compact_transcript(transcript, "next", settings=KEEP_ALL).messages
