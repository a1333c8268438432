from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from recap.transcript import anthropic, openai
from recap.transcript.model import Held, Message, Part, Transcript
from recap.transcript.parts import text_part, thinking_part
from recap.transcript.tree import to_bytes, to_object
from tests.transcript.handles import ANTHROPIC, MANGLED, OPENAI, PNG, file, held, in_file, kept

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def use(call_id: str = "a", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": arguments}


def result(call_id: str = "a", content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def read(*messages: Any, **fields: Any) -> Transcript:
    return anthropic.read(
        held({"messages": list(messages), **fields} if fields else list(messages))
    )


def one(content: Any, role: str = "user") -> Message:
    messages = read({"role": role, "content": content}).messages
    assert len(messages) == 1
    return messages[0]


def codes(transcript: Transcript) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in transcript.findings]


def write(role: Any, *parts: Part) -> Any:
    return to_object(anthropic.write_message(role, parts))


def test_a_string_is_one_text_that_goes_out_as_it_came():
    part = one("fix it").parts[0]
    assert (part.kind, part.author, part.path, part.payload()) == ("text", "human", (), "fix it")
    assert write("user", part) == [{"role": "user", "content": "fix it"}]


def test_blocks_are_parts_with_their_very_objects():
    blocks = [text("a"), IMAGE]
    message = one(blocks)
    assert [part.kind for part in message.parts] == ["text", "image"]
    assert all(p.raw.load() is b for p, b in zip(message.parts, blocks, strict=True))
    assert message.parts[1].images == ((24, 18, len(PNG)),)


def test_an_assistant_message_keeps_its_blocks_in_order():
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    message = one([thought, hidden, text("ok"), use(path="a.py")], "assistant")
    assert [part.kind for part in message.parts] == ["thinking", "thinking", "text", "call"]
    assert all(part.author == "agent" for part in message.parts)
    call = message.parts[3]
    assert (call.call_id, call.name, call.payload()) == ("a", "Read", {"path": "a.py"})


def test_redacted_thinking_is_thinking_like_any_other():
    """B022: one kind of thinking was taken out, the other left in."""
    parts = one(
        [
            {"type": "redacted_thinking", "data": "opaque"},
            {"type": "thinking", "thinking": "", "signature": "s"},
            {"type": "thinking", "thinking": "hm"},
        ],
        "assistant",
    ).parts
    assert [part.kind for part in parts] == ["thinking"] * 3
    assert [part.has_signature for part in parts] == [True, True, False]
    assert not any(part.is_blank for part in parts)


@pytest.mark.parametrize(
    "content",
    [
        "The user doesn't want to proceed with this tool use.",
        [text("a"), IMAGE],
        [{"type": "tool_reference", "tool_name": "x"}],
        "",
        None,
        [],
    ],
)
def test_a_result_of_any_form_is_a_result(content):
    """B005: a rejection or an error was not seen as its call's result."""
    message = one([result(content=content, is_error=bool(content))])
    part = message.parts[0]
    assert message.role == "tool"
    assert (part.kind, part.call_id, part.payload()) == ("result", "a", content)
    assert part.is_error == bool(content)


def test_a_mixed_user_message_is_a_tool_and_a_user_message_of_one_envelope():
    raw = {"role": "user", "content": [text("wait"), result(), text("and this"), IMAGE]}
    transcript = read({"role": "assistant", "content": [use()]}, raw)
    _, tool, user = transcript.messages
    assert (tool.role, user.role) == ("tool", "user")
    assert [part.kind for part in tool.parts] == ["result"]
    assert [part.text() for part in user.parts] == ["wait", "and this", ""]
    assert tool.envelope is user.envelope
    assert (tool.envelope.size, tool.line, user.line) == (4, 2, 2)
    assert tool.envelope.raw is not None
    assert tool.envelope.raw.load() is raw


def test_text_beside_a_result_is_steering():
    _, _, user = read(
        {"role": "assistant", "content": [use()]},
        {"role": "user", "content": [result(), text("also the tests")]},
    ).messages
    assert [part.author for part in user.parts] == ["steering"]


def test_server_tools_stay_in_their_message_with_the_id_that_pairs_them():
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    answer = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    message = one([call, answer, text("ok")], "assistant")
    assert [(p.kind, p.name, p.call_id) for p in message.parts] == [
        ("other", "server_tool_use", "s1"),
        ("other", "web_search_tool_result", "s1"),
        ("text", "", ""),
    ]


def test_a_result_of_a_kind_yet_unknown_is_paired():
    """B009: a new kind of result lost its call and the session was dead."""
    alone = one([{"type": "advisor_tool_result", "tool_use_id": "s1"}], "assistant").parts[0]
    assert (alone.kind, alone.name, alone.call_id) == ("other", "advisor_tool_result", "s1")
    answer = one([{"type": "foo_tool_result", "tool_use_id": "a", "content": "x"}])
    assert (answer.role, answer.parts[0].kind, answer.parts[0].call_id) == ("tool", "result", "a")


def test_an_unknown_block_passes_untouched():
    block = {"type": "container_upload", "file_id": "f", "nested": [{"a": None}]}
    message = one([block])
    assert (message.parts[0].kind, message.parts[0].name) == ("other", "container_upload")
    assert write("user", *message.parts)[0]["content"][0] is block


def test_a_document_is_the_persons():
    source = {"type": "text", "media_type": "text/plain", "data": "x"}
    part = one([{"type": "document", "source": source}]).parts[0]
    assert (part.kind, part.name, part.author) == ("other", "document", "human")


def test_a_system_message_in_mid_conversation_is_accepted():
    message = one("be brief", "system")
    assert (message.role, message.parts[0].author) == ("system", "system")
    assert message.envelope.raw is not None


@pytest.mark.parametrize("system", ["be brief", [text("be brief", cache_control={"type": "x"})]])
def test_the_system_field_is_a_message_before_all_others(system):
    transcript = read({"role": "user", "content": "go"}, system=system)
    first = transcript.messages[0]
    assert (first.role, first.line, first.parts[0].text()) == ("system", 0, "be brief")
    assert first.envelope.raw is None
    assert write("system", *first.parts) == []
    blocks = to_object(anthropic.system_blocks(first.parts))
    assert blocks == (system if isinstance(system, list) else [text("be brief")])


def test_injected_instructions_keep_their_bytes():
    """B089: project instructions were lost to a summary."""
    reminder = "<system-reminder>\nproject rules\n</system-reminder>"
    parts = one([text(reminder), text("go")]).parts
    assert [part.author for part in parts] == ["injected", "human"]
    assert write("user", *parts)[0]["content"][0]["text"] == reminder


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (None, "not-a-message"),
        (5, "not-a-message"),
        ("words", "not-a-message"),
        ({}, "unknown-role"),
        ({"role": "narrator", "content": "x"}, "unknown-role"),
        ({"role": ["user"], "content": "x"}, "unknown-role"),
        ({"role": "tool", "content": "x"}, "unknown-role"),
        ({"role": "user"}, "no-content"),
        ({"role": "user", "content": 5}, "no-content"),
        ({"role": "user", "content": {"type": "text", "text": "x"}}, "no-content"),
    ],
)
def test_what_is_no_message_is_reported_and_left_out(message, code):
    transcript = read({"role": "user", "content": "a"}, message, {"role": "user", "content": "b"})
    words = [part.text() for each in transcript.messages for part in each.parts]
    assert words == ["a", "b"]
    assert codes(transcript) == [(code, 2)]
    assert transcript.lines == 3


@pytest.mark.parametrize(
    ("role", "block"),
    [
        ("user", None),
        ("user", 5),
        ("user", []),
        ("user", {}),
        ("user", {"type": 5}),
        ("user", {"type": "text"}),
        ("user", {"type": "text", "text": None}),
        ("user", {"type": "image"}),
        ("user", {"type": "image", "source": {"type": "base64", "media_type": "image/png"}}),
        ("user", {"type": "image", "source": {"type": "base64", "media_type": "image/x", "data": "a"}}),
        ("user", {"type": "tool_result", "content": "x"}),
        ("user", {"type": "tool_use", "id": "a", "name": "f", "input": {}}),
        ("user", {"type": "thinking", "thinking": "x", "signature": "s"}),
        ("assistant", {"type": "tool_result", "tool_use_id": "a", "content": "x"}),
        ("assistant", {"type": "tool_use", "name": "f", "input": {}}),
        ("assistant", {"type": "tool_use", "id": "a", "name": "", "input": {}}),
        ("assistant", {"type": "thinking"}),
        ("assistant", {"type": "redacted_thinking"}),
    ],
)  # fmt: skip
def test_a_block_no_vendor_takes_is_left_out_and_its_message_never_goes_out_whole(role, block):
    transcript = read({"role": role, "content": [text("a"), block]})
    message = transcript.messages[0]
    assert [part.text() for part in message.parts] == ["a"]
    assert codes(transcript) == [("malformed-block", 1)]
    assert message.envelope.size > len(message.parts)
    assert write(role, *message.parts) == [{"role": role, "content": [text("a")]}]


def test_a_bare_string_among_blocks_keeps_its_words():
    message = one(["fix it", text("now")])
    assert [part.author for part in message.parts] == ["human", "human"]
    assert message.envelope.size > len(message.parts)
    assert write("user", *message.parts)[0]["content"] == [text("fix it"), text("now")]


def test_a_call_whose_input_is_no_object_is_converted():
    for given_input, sent in [
        ("ls", {"input": "ls"}),
        ('{"a": 1}', {"a": 1}),
        (None, {}),
        ([1], {"input": [1]}),
    ]:
        message = one(
            [{"type": "tool_use", "id": "a", "name": "f", "input": given_input}], "assistant"
        )
        assert message.envelope.size > len(message.parts)
        assert write("assistant", *message.parts)[0]["content"][0]["input"] == sent


def test_an_error_that_says_nothing_goes_out_as_a_result_that_says_nothing():
    message = one([result(content="", is_error=True)])
    assert message.parts[0].is_error
    assert message.envelope.size > len(message.parts)
    assert write("tool", *message.parts)[0]["content"] == [result(content="")]


@pytest.mark.parametrize(
    "content", [[None, text("a")], ["a"], [{"type": "text"}], 5, {"text": "a"}]
)
def test_odd_content_of_a_result_goes_out_in_a_form_the_vendor_takes(content):
    message = one([result(content=content)])
    sent = write("tool", *message.parts)[0]["content"][0]["content"]
    assert isinstance(sent, str) or all(isinstance(b, dict) and "type" in b for b in sent)
    assert message.envelope.size > len(message.parts)


def test_results_stand_first_in_their_message():
    tool, user = read({"role": "user", "content": [text("wait"), result()]}).messages
    sent = write("tool", *user.parts, *tool.parts)
    assert [block["type"] for block in sent[0]["content"]] == ["tool_result", "text"]


def test_nothing_is_written_for_no_parts():
    assert write("user") == write("tool") == write("assistant") == []


def test_a_marker_goes_out_as_text():
    part = text_part(Held("[recap: x]"), "[recap: x]", "marker", dialect="anthropic")
    assert write("user", part) == [{"role": "user", "content": "[recap: x]"}]
    assert write("user", part, part)[0]["content"] == [text("[recap: x]")] * 2


@pytest.mark.parametrize(
    "part",
    [
        thinking_part(Held("a"), "a"),
        thinking_part(Held({"thinking": "a"}), "a", path=("thinking",), dialect="anthropic"),
        thinking_part(Held({}), "a", path=("x",), has_signature=True, dialect="openai"),
    ],
)
def test_thinking_that_is_unsigned_or_foreign_never_goes_out(part):
    """B020: thinking was invented to repair a session."""
    with pytest.raises(AssertionError):
        anthropic.write_message("assistant", [part])


def test_a_call_id_is_replaced_in_a_copy():
    block = use("a", path="x")
    part = one([block], "assistant").parts[0]
    renamed = anthropic.with_call_id(part, "b")
    assert (renamed.call_id, renamed.raw.load()) == ("b", use("b", path="x"))
    assert block["id"] == "a"
    answer = anthropic.with_call_id(one([result("a")]).parts[0], "b")
    assert (answer.call_id, answer.raw.load()) == ("b", result("b"))


def test_images_give_way_to_a_text():
    """B054: one image too many made every later request fail."""
    blocks = [text("a"), IMAGE]
    part = anthropic.without_images(one([result(content=blocks)]).parts[0], "[recap: image]")
    assert part.payload() == [text("a"), text("[recap: image]")]
    assert (part.images, part.call_id, part.dialect) == ((), "a", "anthropic")
    assert blocks == [text("a"), IMAGE]
    pasted = anthropic.without_images(one([IMAGE]).parts[0], "[recap: image]")
    assert (pasted.kind, pasted.author, pasted.images) == ("text", "marker", ())
    assert write("user", pasted) == [{"role": "user", "content": "[recap: image]"}]


def test_the_model_and_id_of_a_message_are_read():
    raw = {"role": "assistant", "content": "x", "model": "m", "id": "msg_1"}
    message = read(raw, {**raw, "model": 5, "id": None}).messages
    assert [(each.model, each.uid) for each in message] == [("m", "msg_1"), ("", "")]


def test_a_file_keeps_the_bytes_of_every_block_and_message():
    block = b'{ "text":"\\u00e9" ,"type":"text","x":1e0}'
    message = b'{"content" : [' + block + b'],"role":"user"}'
    transcript = anthropic.read(in_file(b'{"messages":[\n' + message + b"]}"))
    part = transcript.messages[0].parts[0]
    assert part.raw.dump() == block
    assert to_bytes(transcript.messages[0].envelope.raw) == message
    assert to_bytes(anthropic.write_message("user", [part])[0]) == (
        b'{"role":"user","content":[' + block + b"]}"
    )


def test_what_json_forbids_is_reported_and_replaced_on_the_way_out():
    transcript = read(
        {"role": "user", "content": [text("a\ud83d")]}, {"role": "user", "content": "b"}
    )
    assert codes(transcript) == [("not-strict-json", 1)]
    assert transcript.messages[0].parts[0].payload() == "a\ud83d"
    assert write("user", *transcript.messages[0].parts)[0]["content"] == [text("a\ufffd")]


@pytest.mark.parametrize(
    ("document", "evidence"),
    [
        ([{"role": "user", "content": [text("a")]}, {"role": "assistant", "content": [use()]}],
         "a block of type tool_use in message 2"),
        ({"messages": [{"role": "user", "content": "a"}], "system": "x"},
         "a system field beside the messages"),
        ([{"role": "system", "content": "x"}, {"role": "user", "content": [result()]}],
         "a block of type tool_result in message 2"),
        ([{"role": "user", "content": "a"}], None),
        ([{"role": "user", "content": "a"}, {"role": "tool", "content": [result()]}], None),
        ([], None),
        ({"messages": []}, None),
        ({"messages": [{"type": "human"}], "system": "x"}, None),
        (None, None),
        ("text", None),
        (5, None),
    ],
)  # fmt: skip
def test_detection_goes_by_content(document, evidence):
    assert anthropic.detect(document) == evidence


@given(ANTHROPIC)
def test_everything_kept_is_the_same_list_of_the_same_objects(messages):
    transcript = anthropic.read(held(messages))
    assert transcript.findings == ()
    trees = kept(transcript.messages, "anthropic", anthropic)
    out = to_object(trees)
    assert out == messages
    assert all(a is b for a, b in zip(out, messages, strict=True))


@given(ANTHROPIC)
def test_everything_kept_of_a_file_is_the_same_bytes(messages):
    transcript = anthropic.read(file(messages))
    for tree, message in zip(
        kept(transcript.messages, "anthropic", anthropic), messages, strict=True
    ):
        assert to_bytes(tree) == json.dumps(message).encode()


@given(ANTHROPIC)
def test_a_message_rebuilt_from_its_parts_has_the_same_blocks(messages):
    for message in anthropic.read(held(messages)).messages:
        assert message.envelope.raw is not None
        given_content = message.envelope.raw.load()["content"]
        if message.role == "system":
            continue
        [written] = write(message.role, *message.parts)
        if isinstance(given_content, str):
            assert written["content"] == given_content
        else:
            assert all(any(block is b for b in given_content) for block in written["content"])


@given(ANTHROPIC)
def test_files_and_python_lists_read_alike(messages):
    ours, theirs = anthropic.read(held(messages)).messages, anthropic.read(file(messages)).messages
    for one_message, other in zip(ours, theirs, strict=True):
        assert one_message.role == other.role
        for a, b in zip(one_message.parts, other.parts, strict=True):
            assert a.digest == b.digest
            assert a.cost_chars == b.cost_chars
            assert a.author == b.author
            assert a.payload() == b.payload()


@given(MANGLED)
def test_no_list_makes_the_reader_fail_and_what_it_keeps_can_be_written(messages):
    for handle in (held(messages), file(messages)):
        for message in anthropic.read(handle).messages:
            parts = [p for p in message.parts if p.kind != "thinking" or p.has_signature]
            for tree in anthropic.write_message(message.role, parts):
                json.loads(to_bytes(tree), parse_constant=pytest.fail)


@given(MANGLED)
def test_no_words_of_a_text_block_are_lost(messages):
    given_words = [
        block["text"]
        for message in messages
        if isinstance(message, dict) and message.get("role") in ("user", "assistant", "system")
        for block in (message["content"] if isinstance(message.get("content"), list) else [])
        if isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    ]
    read_words = [
        part.payload()
        for message in anthropic.read(held(messages)).messages
        for part in message.parts
        if part.kind == "text" and part.path
    ]
    assert read_words == given_words


@given(OPENAI)
def test_openai_messages_go_out_with_all_texts_calls_and_results(messages):
    given_parts = [p for m in openai.read(held(messages)).messages for p in m.parts]
    system = [p for p in given_parts if p.author == "system"]
    sent = [
        to_object(tree)
        for message in openai.read(held(messages)).messages
        for tree in anthropic.write_message(message.role, message.parts)
    ]
    back = [p for m in anthropic.read(held(sent)).messages for p in m.parts]
    assert [p.digest for p in back if p.kind in ("text", "image")] == [
        p.digest for p in given_parts if p.kind in ("text", "image") and p.author != "system"
    ]
    calls = [(p.call_id, p.name) for p in given_parts if p.kind == "call"]
    assert [(p.call_id, p.name) for p in back if p.kind == "call"] == calls
    for one_part, other in zip(
        (p for p in given_parts if p.kind == "call"),
        (p for p in back if p.kind == "call"),
        strict=True,
    ):
        arguments = one_part.payload()
        assert other.payload() in (_parsed(arguments), {"input": arguments})
    assert [(p.call_id, p.text()) for p in back if p.kind == "result"] == [
        (p.call_id, p.text()) for p in given_parts if p.kind == "result"
    ]
    assert to_object(anthropic.system_blocks(system)) == [text(p.payload()) for p in system]


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return None


@pytest.mark.corpus
def test_the_request_of_the_corpus_is_read_whole(corpus: Path):
    path = corpus / "sessions/anthropic-messages/anthropic-messages-48b4.json"
    document = json.loads(path.read_bytes())
    assert anthropic.detect(document)
    transcript = anthropic.read(in_file(path.read_bytes()))
    assert transcript.findings == ()
    blocks = [
        (m["role"], b)
        for m in document["messages"]
        for b in ([text(m["content"])] if isinstance(m["content"], str) else m["content"])
    ]
    counted = {
        "text": sum(b["type"] == "text" for _, b in blocks),
        "call": sum(b["type"] == "tool_use" for _, b in blocks),
        "result": sum(b["type"] == "tool_result" for _, b in blocks),
        "thinking": sum(b["type"] == "thinking" for _, b in blocks),
    }
    parts = [part for message in transcript.messages for part in message.parts]
    assert {kind: sum(p.kind == kind for p in parts) for kind in counted} == counted
    words = [b["text"] for role, b in blocks if role == "user" and b["type"] == "text"]
    assert [p.payload() for m in transcript.messages if m.role == "user" for p in m.parts] == words
    trees = kept(transcript.messages, "anthropic", anthropic)
    assert [to_object(tree) for tree in trees] == document["messages"]
