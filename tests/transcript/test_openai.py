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

DATA_URL = f"data:image/png;base64,{PNG}"
IMAGE = {"type": "image_url", "image_url": {"url": DATA_URL}}
ANTHROPIC_IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PNG},
}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(
    call_id: str = "a", arguments: Any = '{"path": "a.py"}', name: str = "read"
) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: Any, content: Any = None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def answer(call_id: str = "a", content: Any = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def read(*messages: Any) -> Transcript:
    return openai.read(held(list(messages)))


def one(message: Any) -> Message:
    messages = read(message).messages
    assert len(messages) == 1
    return messages[0]


def codes(transcript: Transcript) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in transcript.findings]


def write(role: Any, *parts: Part) -> Any:
    return to_object(openai.write_message(role, parts))


@pytest.mark.parametrize(
    ("role", "canonical", "author"),
    [
        ("system", "system", "system"),
        ("developer", "system", "system"),
        ("user", "user", "human"),
        ("assistant", "assistant", "agent"),
    ],
)
def test_roles_become_canonical(role, canonical, author):
    message = one({"role": role, "content": "words"})
    part = message.parts[0]
    assert (message.role, part.author, part.path, part.payload()) == (
        canonical,
        author,
        (),
        "words",
    )


def test_a_message_of_one_string_goes_out_with_that_string():
    for role in ("system", "user", "assistant"):
        raw = {"role": role, "content": "words"}
        assert write(role, *one(raw).parts) == [raw]


def test_calls_stand_behind_the_text_and_answers_in_messages_of_their_own():
    step, first, second = read(
        calling(call("a"), call("b"), content="look"), answer("b"), answer("a", [text("x")])
    ).messages
    assert [part.kind for part in step.parts] == ["text", "call", "call"]
    assert [(p.call_id, p.name, p.payload()) for p in step.parts[1:]] == [
        ("a", "read", '{"path": "a.py"}'),
        ("b", "read", '{"path": "a.py"}'),
    ]
    assert (first.role, first.parts[0].call_id, first.parts[0].path) == ("tool", "b", ("content",))
    assert second.parts[0].text() == "x"


@pytest.mark.parametrize("content", [None, "", []])
def test_calls_stand_in_for_empty_content(content):
    """No part, so that it is the same message however its emptiness is spelled."""
    message = one(calling(call(), content=content))
    assert [part.kind for part in message.parts] == ["call"]
    assert message.envelope.size == 1


def test_content_may_be_missing_beside_calls():
    message = one({"role": "assistant", "tool_calls": [call()]})
    assert [part.kind for part in message.parts] == ["call"]


@pytest.mark.parametrize("arguments", ['{"url":"a"}{"url":"b"}', "", "not json"])
def test_arguments_that_are_no_json_stay_word_for_word(arguments):
    """B013: glued arguments ended every later read of the session."""
    raw = calling(call(arguments=arguments))
    message = one(raw)
    assert message.parts[0].payload() == arguments
    assert write("assistant", *message.parts) == [raw]
    sent = to_object(anthropic.write_message("assistant", message.parts))[0]["content"][0]["input"]
    assert sent == ({"input": arguments} if arguments else {})


@pytest.mark.parametrize(
    ("arguments", "sent"), [({"a": 1}, '{"a":1}'), (None, "{}"), ([1], '{"input":[1]}')]
)
def test_arguments_that_are_no_string_are_converted(arguments, sent):
    message = one(calling(call(arguments=arguments)))
    assert message.envelope.size > len(message.parts)
    assert write("assistant", *message.parts)[0]["tool_calls"][0]["function"]["arguments"] == sent


def test_a_custom_call_keeps_its_input():
    raw = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    part = one(calling(raw)).parts[0]
    assert (part.name, part.payload(), part.raw.load()) == ("patch", "*** Begin", raw)


def test_a_call_without_its_kind_is_a_function():
    raw = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    assert one(calling(raw)).parts[0].name == "f"


def test_legacy_function_calls_are_paired_by_their_order():
    function = {"name": "f", "arguments": '{"a": 1}'}
    calls = {"role": "assistant", "content": None, "function_call": function}
    results = {"role": "function", "name": "f", "content": "x"}
    messages = read(calls, results, calls, results).messages
    assert [part.call_id for message in messages for part in message.parts] == [
        "function_call_1", "function_call_1", "function_call_2", "function_call_2",
    ]  # fmt: skip
    assert [m.role for m in messages] == ["assistant", "tool"] * 2
    assert write("assistant", *messages[0].parts) == [calls]
    assert write("tool", *messages[1].parts) == [results]


def test_a_renamed_legacy_call_goes_out_in_the_new_form():
    calls = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    results = {"role": "function", "name": "f", "content": "x"}
    parts = [openai.with_call_id(m.parts[0], "z") for m in read(calls, results).messages]
    assert write("assistant", parts[0]) == [calling(call("z", "{}", "f"))]
    assert write("tool", parts[1]) == [answer("z", "x")]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking_and_goes_out_under_its_own_key(key):
    raw = {"role": "assistant", "content": "ok", key: "hm"}
    message = one(raw)
    thought, words = message.parts
    assert (thought.kind, thought.payload(), thought.cost_chars) == ("thinking", "hm", 2)
    assert write("assistant", thought, words) == [raw]
    assert message.envelope.size == 2


@pytest.mark.parametrize("reasoning", [None, "", 5, {}])
def test_reasoning_that_says_nothing_is_no_part(reasoning):
    message = one({"role": "assistant", "content": "ok", "reasoning_content": reasoning})
    assert [part.kind for part in message.parts] == ["text"]
    assert message.envelope.size == 1


def test_a_refusal_is_text_of_the_agent():
    message = one({"role": "assistant", "content": None, "refusal": "I cannot do that"})
    assert [(p.kind, p.author, p.text()) for p in message.parts] == [
        ("text", "agent", "I cannot do that")
    ]
    part = {"type": "refusal", "refusal": "no"}
    assert one({"role": "assistant", "content": [part]}).parts[0].text() == "no"


def test_only_the_agent_refuses():
    transcript = read({"role": "user", "content": None, "refusal": "no"})
    assert transcript.messages[0].parts == ()
    assert codes(transcript) == [("no-content", 1)]


def test_parts_of_a_content_list_keep_their_very_objects():
    audio = {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}
    pdf = {"type": "file", "file": {"file_id": "f"}}
    content = [text("look"), IMAGE, audio, pdf, {"type": "input_text", "text": "here"}]
    message = one({"role": "user", "content": content})
    assert [part.kind for part in message.parts] == ["text", "image", "other", "other", "text"]
    assert [part.author for part in message.parts] == ["human"] * 5
    assert message.parts[1].images == ((24, 18, len(PNG)),)
    sent = write("user", *message.parts)[0]["content"]
    assert all(a is b for a, b in zip(sent, content, strict=True))


@pytest.mark.parametrize(
    "image",
    [
        {"type": "input_image", "image_url": DATA_URL},
        {**IMAGE, "image_url": DATA_URL},
        ANTHROPIC_IMAGE,
    ],
)
def test_an_image_in_another_form_goes_out_in_this_one(image):
    message = one({"role": "user", "content": [image]})
    assert message.envelope.size > 1
    assert write("user", *message.parts) == [{"role": "user", "content": [IMAGE]}]


def test_text_right_after_an_answer_is_steering():
    messages = read(
        calling(call()), answer(), {"role": "user", "content": "also the tests"}
    ).messages
    assert messages[2].parts[0].author == "steering"


@pytest.mark.parametrize("content", [None, [], 5, [None], [{"type": "text"}]])
def test_an_answer_without_proper_content_still_answers(content):
    """B005: a result in another form was not seen as its call's result."""
    message = one(answer(content=content))
    part = message.parts[0]
    assert (part.kind, part.call_id) == ("result", "a")
    assert message.envelope.size > 1
    [sent] = write("tool", part)
    assert (sent["role"], sent["tool_call_id"]) == ("tool", "a")
    assert isinstance(sent["content"], str)


def test_an_answer_without_an_id_is_kept_without_one():
    assert one({"role": "tool", "content": "x"}).parts[0].call_id == ""


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (None, "not-a-message"),
        (5, "not-a-message"),
        ([], "not-a-message"),
        ({"content": "x"}, "unknown-role"),
        ({"role": None, "content": "x"}, "unknown-role"),
        ({"role": "narrator", "content": "x"}, "unknown-role"),
        ({"role": "user", "content": None}, "no-content"),
        ({"role": "user", "content": 5}, "no-content"),
        ({"role": "assistant", "content": 5}, "no-content"),
    ],
)
def test_what_is_no_message_is_reported_and_left_out(message, code):
    transcript = read({"role": "user", "content": "a"}, message, {"role": "user", "content": "b"})
    assert [p.text() for m in transcript.messages for p in m.parts] == ["a", "b"]
    assert codes(transcript) == [(code, 2)]


@pytest.mark.parametrize(
    "broken",
    [None, 5, {}, {"function": None}, {"function": {}}, {"function": {"name": 5}}, {"type": "x"},
     {"type": 5, "function": {"name": "f", "arguments": "{}"}}, call(name="")],
)  # fmt: skip
def test_a_call_without_a_function_is_left_out(broken):
    transcript = read(calling(call("a"), broken, call("b")))
    message = transcript.messages[0]
    assert [part.call_id for part in message.parts] == ["a", "b"]
    assert message.envelope.size == 3
    assert codes(transcript) == [("malformed-call", 1)]
    sent = write("assistant", *message.parts)
    assert sent == [calling(call("a"), call("b"))]


@pytest.mark.parametrize("calls", [5, {}, "x"])
def test_calls_that_are_no_list_are_reported(calls):
    transcript = read({"role": "assistant", "content": "a", "tool_calls": calls})
    assert [part.text() for part in transcript.messages[0].parts] == ["a"]
    assert codes(transcript) == [("malformed-call", 1)]


@pytest.mark.parametrize(
    "part", [None, 5, {}, {"type": "text"}, {"type": "image_url", "image_url": {}}]
)
def test_a_part_no_vendor_takes_is_left_out(part):
    transcript = read({"role": "user", "content": [text("a"), part]})
    message = transcript.messages[0]
    assert [each.text() for each in message.parts] == ["a"]
    assert message.envelope.size == 2
    assert codes(transcript) == [("malformed-block", 1)]


def test_several_texts_go_out_as_a_list():
    parts = [text_part(Held(words), words, "human") for words in ("a", "b")]
    assert write("user", *parts) == [{"role": "user", "content": [text("a"), text("b")]}]
    assert write("user") == []


def test_a_marker_goes_out_as_text():
    part = text_part(Held("[recap: x]"), "[recap: x]", "marker", dialect="openai")
    assert write("user", part) == [{"role": "user", "content": "[recap: x]"}]


def test_foreign_thinking_never_goes_out():
    """B018: thinking is bound to the model that made it."""
    part = thinking_part(Held({"thinking": "a"}), "a", path=("thinking",), dialect="anthropic")
    with pytest.raises(AssertionError):
        openai.write_message("assistant", [part])


def test_images_of_foreign_results_follow_behind_all_results():
    results = [
        {"type": "tool_result", "tool_use_id": "a", "content": [text("one"), ANTHROPIC_IMAGE]},
        {"type": "tool_result", "tool_use_id": "b", "content": "two"},
    ]
    tool = anthropic.read(held([{"role": "user", "content": results}])).messages[0]
    *answers, images = write("tool", *tool.parts)
    assert answers == [answer("a", "one"), answer("b", "two")]
    assert images["content"][1:] == [IMAGE]
    assert {p.author for p in one(images).parts} == {"marker"}


def test_the_name_of_a_foreign_call_keeps_to_the_vendors_letters():
    block = {"type": "tool_use", "id": "a", "name": "fs.read:x", "input": {}}
    message = anthropic.read(held([{"role": "assistant", "content": [block]}])).messages[0]
    assert write("assistant", *message.parts) == [calling(call("a", "{}", "fs_read_x"))]


def test_a_call_id_is_replaced_in_a_copy():
    raw = call("a")
    renamed = openai.with_call_id(one(calling(raw)).parts[0], "b")
    assert (renamed.call_id, renamed.raw.load(), raw["id"]) == ("b", call("b"), "a")
    result = openai.with_call_id(one(answer("a")).parts[0], "b")
    assert (result.call_id, result.raw.load()) == ("b", answer("b"))


def test_images_give_way_to_a_text():
    message = one(answer(content=[text("a"), IMAGE]))
    part = openai.without_images(message.parts[0], "[recap: image]")
    assert part.raw.load() == answer(content=[text("a"), text("[recap: image]")])
    assert part.images == ()


def test_a_file_keeps_the_bytes_of_every_part():
    raw_call = (
        b'{ "id":"a","type":"function","function":{"name":"f","arguments":"{\\u0022a\\u0022:1}"}}'
    )
    message = (
        b'{"role":"assistant","content":"\\u00e9","reasoning":"h\\u006d","tool_calls":['
        + raw_call
        + b"]}"
    )
    parsed = openai.read(in_file(b"[" + message + b"]")).messages[0]
    assert parsed.envelope.raw is not None
    assert to_bytes(parsed.envelope.raw) == message
    thought, words, made = parsed.parts
    assert made.raw.dump() == raw_call
    assert to_bytes(openai.write_message("assistant", [thought, words])[0]) == (
        b'{"role":"assistant","content":"\\u00e9","reasoning":"h\\u006d"}'
    )
    assert b'"tool_calls":[' + raw_call in to_bytes(openai.write_message("assistant", [made])[0])


@pytest.mark.parametrize(
    ("document", "evidence"),
    [
        ([{"role": "user", "content": "a"}], "messages of plain text"),
        ([{"role": "system", "content": "a"}], "a system message in the list"),
        ({"traj": [calling(call()), answer()], "reward": 1.0}, "tool_calls in message 1"),
        ({"messages": [{"role": "developer", "content": "a"}]}, "role developer in message 1"),
        ([{"role": "user", "content": [IMAGE]}], "a part of type image_url in message 1"),
        ([None, answer()], "role tool in message 2"),
        ([{"role": "user", "content": [{"type": "tool_result"}]}], None),
        ([{"type": "human", "data": {}}], None),
        ([{"role": "narrator"}], None),
        ({"messages": 5}, None),
        ([], None),
        (None, None),
    ],
)
def test_detection_goes_by_content(document, evidence):
    assert openai.detect(document) == evidence


@given(OPENAI)
def test_everything_kept_is_the_same_list_of_the_same_objects(messages):
    transcript = openai.read(held(messages))
    assert transcript.findings == ()
    out = to_object(kept(transcript.messages, "openai", openai))
    assert all(a is b for a, b in zip(out, messages, strict=True))


@given(OPENAI)
def test_everything_kept_of_a_file_is_the_same_bytes(messages):
    transcript = openai.read(file(messages))
    for tree, message in zip(kept(transcript.messages, "openai", openai), messages, strict=True):
        assert to_bytes(tree) == json.dumps(message).encode()


@given(OPENAI)
def test_a_message_rebuilt_from_its_parts_is_the_same_message(messages):
    for message in openai.read(held(messages)).messages:
        assert message.envelope.raw is not None
        expected = dict(message.envelope.raw.load())
        if expected["role"] == "developer":
            expected["role"] = "system"
        assert write(message.role, *message.parts) == [expected]


@given(OPENAI)
def test_files_and_python_lists_read_alike(messages):
    ours, theirs = openai.read(held(messages)).messages, openai.read(file(messages)).messages
    for one_message, other in zip(ours, theirs, strict=True):
        for a, b in zip(one_message.parts, other.parts, strict=True):
            assert (a.kind, a.digest, a.cost_chars) == (b.kind, b.digest, b.cost_chars)
            assert (a.author, a.payload()) == (b.author, b.payload())


@given(MANGLED)
def test_no_list_makes_the_reader_fail_and_what_it_keeps_can_be_written(messages):
    for handle in (held(messages), file(messages)):
        for message in openai.read(handle).messages:
            parts = [p for p in message.parts if p.kind != "thinking"]
            for tree in openai.write_message(message.role, message.parts):
                json.loads(to_bytes(tree), parse_constant=pytest.fail)
            for tree in anthropic.write_message(message.role, parts):
                json.loads(to_bytes(tree), parse_constant=pytest.fail)


@given(ANTHROPIC)
def test_anthropic_messages_go_out_with_all_texts_calls_and_results(messages):
    given_messages = anthropic.read(held(messages)).messages
    sent = [
        to_object(tree)
        for m in given_messages
        for tree in openai.write_message(m.role, [p for p in m.parts if p.kind != "thinking"])
    ]
    everything = [p for m in openai.read(held(sent)).messages for p in m.parts]
    back = [p for p in everything if p.author != "marker"]
    given_parts = [p for m in given_messages for p in m.parts if p.kind != "thinking"]

    def texts(parts: list[Part]) -> list[Any]:
        return [p.payload() for p in parts if p.kind == "text"]

    def calls(parts: list[Part]) -> list[bytes]:
        return [p.digest for p in parts if p.kind == "call"]

    def results(parts: list[Part]) -> list[tuple[str, str]]:
        return [(p.call_id, p.text().replace("\n", "")) for p in parts if p.kind == "result"]

    def images(parts: list[Part]) -> int:
        return sum(len(p.images) for p in parts)

    assert texts(back) == texts(given_parts)
    assert calls(back) == calls(given_parts)
    assert results(back) == results(given_parts)
    assert images(everything) == images(given_parts)


@pytest.mark.corpus
@pytest.mark.parametrize("name", ["t3-trial0", "t31-trial0", "t14-trial2"])
def test_the_trajectories_of_the_corpus_are_read_whole(corpus: Path, name):
    data = (corpus / f"sessions/openai-chat/tau-airline-{name}.json").read_bytes()
    document = json.loads(data)
    assert openai.detect(document)
    transcript = openai.read(in_file(data))
    assert transcript.findings == ()
    parts = [part for message in transcript.messages for part in message.parts]
    calls = [c for m in document["traj"] for c in m.get("tool_calls") or []]
    results = [m for m in document["traj"] if m["role"] == "tool"]
    said = [m["content"] for m in document["traj"] if m["role"] == "user"]
    assert [p.call_id for p in parts if p.kind == "call"] == [c["id"] for c in calls]
    assert [p.payload() for p in parts if p.kind == "result"] == [m["content"] for m in results]
    assert [p.payload() for p in parts if p.author in ("human", "steering")] == said
    trees = kept(transcript.messages, "openai", openai)
    assert [to_object(tree) for tree in trees] == document["traj"]
    for tree in trees:
        assert to_bytes(tree) in data
