from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.formats import open_log, read_bytes
from tests.transcript.agents import (
    Record,
    assert_contexts,
    assert_exact,
    assert_survives,
    authors,
    codes,
    cuts,
    lines,
    live,
    parts,
    replaced,
    said,
    shape,
)
from tests.transcript.handles import PNG

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Transcript

HEADER = {"sessionId": "s1", "projectHash": "h", "startTime": "t0", "lastUpdated": "t1"}


def record(kind: str, uid: str, content: Any, **more: Any) -> Record:
    return {"id": uid, "timestamp": f"t-{uid}", "type": kind, "content": content, **more}


def ask(uid: str, content: Any, **more: Any) -> Record:
    return record("user", uid, content, **more)


def answer(uid: str, content: Any, *calls: Record, **more: Any) -> Record:
    held = {"toolCalls": list(calls)} if calls else {}
    return record("gemini", uid, content, model="g1", **held, **more)


def response(uid: str, **answered: Any) -> Record:
    return {"functionResponse": {"id": uid, "name": "read", "response": answered}}


def call(uid: str, *result: Record, status: str = "success", **more: Any) -> Record:
    held = {"result": list(result)} if result else {}
    fields = {"id": uid, "name": "read", "args": {"path": uid}, "status": status, **held}
    return {**fields, "resultDisplay": "for the screen", "description": "long", **more}


THOUGHT = {"subject": "Plan", "description": "look first", "timestamp": "t"}
MESSAGES = (
    ask("u1", "read it"),
    answer("g1", "I read.", call("c1", response("c1", output="one")), thoughts=[THOUGHT]),
    record("info", "i1", "an update is available"),
    answer("g2", "", call("c2", response("c2", error="no such file"), status="error")),
    answer("g3", "Done."),
    ask("u2", "thanks"),
)


def read(*rows: Any) -> Transcript:
    return read_bytes(lines(HEADER, *rows), format="gemini-cli")


def document(*messages: Record) -> bytes:
    return json.dumps({**HEADER, "messages": list(messages)}, indent=2).encode()


WAYS = pytest.mark.parametrize(
    "data", [document(*MESSAGES), lines(HEADER, *MESSAGES)], ids=["document", "journal"]
)


@WAYS
def test_a_session_is_recognised_in_both_forms(data):
    transcript = read_bytes(data)
    assert (transcript.format, transcript.dialect) == ("gemini-cli", "openai")
    assert transcript.evidence == "sessionId with projectHash"
    assert transcript.session_id == "s1"
    assert transcript.counts == {"notes": 1}


@WAYS
def test_call_and_result_of_one_record_become_two_messages(data):
    transcript = read_bytes(data)
    assert shape(transcript) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "call"]),
        ("tool", ["result"]),
        ("assistant", ["call"]),
        ("tool", ["result"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]
    assert [m.model for m in transcript.messages if m.role == "assistant"] == ["g1"] * 3


@WAYS
def test_every_part_is_a_handle_on_exact_bytes(data):
    assert_exact(read_bytes(data), data)


@WAYS
def test_a_result_is_what_the_model_saw(data):
    found = [
        (part.call_id, part.payload(), part.is_error, part.cost_chars)
        for part in parts(read_bytes(data), "result")
    ]
    assert found == [("c1", "one", False, 3), ("c2", "no such file", True, 12)]


def test_a_call_costs_what_was_sent_and_not_its_result():
    (made,) = parts(read(answer("g", "", call("c1", response("c1", output="x" * 999)))), "call")
    assert (made.name, made.payload()) == ("read", {"path": "c1"})
    assert made.cost_chars == len('{"id":"c1","name":"read","args":{"path":"c1"}}')


def test_thoughts_are_thinking_of_no_dialect():
    (thinking,) = parts(read(*MESSAGES), "thinking")
    assert (thinking.text(), thinking.dialect) == ("look first", None)


def test_a_text_right_after_a_result_is_a_new_request():
    rows = [ask("u", "go"), answer("g", "", call("c", response("c", output="x"))), ask("v", "on")]
    assert authors(read(*rows))[-1] == ("human", "on")


def test_a_call_without_result_stays_open():
    transcript = read(ask("u", "go"), answer("g", "wait", call("c", status="cancelled")))
    assert parts(transcript, "result") == []
    assert_contexts(transcript)


def test_content_may_be_a_list_of_parts():
    image = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    transcript = read(
        ask("u", [{"text": "see"}, image, {"fileData": {"fileUri": "x"}}]),
        answer("g", [{"text": "hm", "thought": True, "thoughtSignature": "s"}, {"text": "ok"}]),
    )
    assert shape(transcript) == [
        ("user", ["text", "image", "other"]),
        ("assistant", ["thinking", "text"]),
    ]
    assert [part.author for part in parts(transcript)][:3] == ["human"] * 3
    assert parts(transcript, "thinking")[0].has_signature
    assert_contexts(transcript)


def test_calls_and_results_may_stand_in_the_content():
    function = {"functionCall": {"id": "c", "name": "read", "args": {"path": "a"}}}
    transcript = read(
        ask("u", "go"), answer("g", [function]), ask("r", [response("c", output="one")])
    )
    assert shape(transcript) == [
        ("user", ["text"]), ("assistant", ["call"]), ("tool", ["result"]),
    ]  # fmt: skip
    assert said(transcript) == ["go"]
    assert parts(transcript, "result")[0].payload() == "one"


@pytest.mark.parametrize("uid", ["c", ""])
def test_a_call_that_stands_in_the_content_too_is_read_once(uid):
    function = {"functionCall": {"id": uid, "name": "read", "args": {"path": "c"}}}
    made = parts(read(answer("g", [function], call("c", response("c", output="x")))), "call")
    assert [part.call_id for part in made] == ["c"]


def test_results_with_images_keep_text_and_image():
    inline = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    inner = {"functionResponse": {"id": "c", "response": {"output": "seen"}, "parts": [inline]}}
    for result in ([response("c", output="seen"), inline], [inner]):
        transcript = read(ask("u", "go"), answer("g", "", call("c", *result)), answer("h", "ok"))
        (part,) = parts(transcript, "result")
        assert (part.text(), part.images) == ("seen\n", ((24, 18, len(PNG)),))
        assert_contexts(transcript)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ([response("c", data=[1])], '{"data":[1]}'),
        ([{"text": "plain"}], "plain"),
        ([{"new": 1}], '{"new":1}'),
        (["plain"], "plain"),
        ("plain", "plain"),
        ([], ""),
    ],
)
def test_results_of_other_forms_are_kept(result, text):
    record = {**call("c"), "result": result}
    (part,) = parts(read(answer("g", "", record)), "result")
    assert part.text() == text


def test_files_a_request_names_are_the_clients():
    content = [
        {"text": "explain @a.ts"},
        {"text": "\n--- Content from referenced files ---"},
        {"text": "\nContent from @a.ts:\n"},
        {"text": "export {}"},
        {"text": "\n--- End of content ---"},
        {"text": "and be brief"},
    ]
    assert said(read(ask("u", content))) == ["explain @a.ts", "and be brief"]


def test_where_the_record_says_what_was_typed_only_that_is_the_persons():
    content = [{"text": "fix it"}, {"text": "a hint of an extension"}]
    assert said(read(ask("u", content, displayContent="fix it"))) == ["fix it"]
    assert said(read(ask("u", content, displayContent="/fix"))) == [
        "fix it", "a hint of an extension",
    ]  # fmt: skip


@pytest.mark.parametrize("tag", ["session_context", "hook_context"])
def test_context_of_the_client_is_injected(tag):
    assert said(read(ask("u", [{"text": f"<{tag}>\nToday"}]), ask("v", "go"))) == ["go"]


# The journal


def test_a_message_written_anew_keeps_its_place_and_takes_its_last_form():
    rows = [ask("u", "go"), answer("g", "", call("c", status="executing")), answer("h", "ok")]
    transcript = read(*rows, answer("g", "", call("c", response("c", output="x"))))
    assert shape(transcript) == [
        ("user", ["text"]), ("assistant", ["call"]), ("tool", ["result"]), ("assistant", ["text"]),
    ]  # fmt: skip


def test_ids_blanked_out_do_not_make_messages_one():
    rows = [{**ask("REDACTED", words), "timestamp": words} for words in ("one", "two")]
    assert said(read(*rows)) == ["one", "two"]


def test_what_was_taken_back_is_left_out_and_counted():
    rows = [ask("u", "one"), answer("g", "1"), ask("v", "two"), answer("h", "2")]
    transcript = read(*rows, {"$rewindTo": "v"}, ask("w", "three"))
    assert said(transcript) == ["one", "three"]
    assert codes(transcript) == ["rewound"]


def test_going_back_to_an_unknown_message_takes_nothing_back():
    transcript = read(ask("u", "one"), {"$rewindTo": "x"})
    assert said(transcript) == ["one"]
    assert codes(transcript) == ["unknown-rewind"]


SUMMARY = "<state_snapshot>sum</state_snapshot>"


def test_a_compressed_context_replaces_what_it_does_not_hold():
    context = [ask("x", [{"text": SUMMARY}]), answer("y", [{"text": "Got it."}])]
    tail = [{**ask("n", [{"text": "two"}]), "timestamp": "new"}, answer("h", "2")]
    rows = [ask("u", "one"), answer("g", "1"), ask("v", "two"), answer("h", "2")]
    transcript = read(*rows, {"$set": {"messages": [*context, *tail]}}, ask("w", "three"))
    assert live(transcript) == [SUMMARY, "Got it.", "two", "2", "three"]
    assert replaced(transcript) == ["one", "1"]
    assert said(transcript) == ["one", "two", "three"]
    assert ("summary", SUMMARY) in authors(transcript)
    assert transcript.counts["compactions"] == 1
    assert_contexts(transcript)


def test_a_message_of_a_new_context_can_be_written_anew_and_taken_back():
    rows = [ask("u", "one"), answer("g", "1"), {"$set": {"messages": [ask("u", "one")]}}]
    transcript = read(*rows, answer("h", "a"), answer("h", "b"), {"$rewindTo": "u"})
    assert live(transcript) == []
    assert replaced(transcript) == ["1"]
    assert live(read(*rows, answer("h", "a"), answer("h", "b"))) == ["one", "b"]


@pytest.mark.parametrize("fields", [{"messages": []}, {"lastUpdated": "t"}, {"messages": 7}])
def test_other_fields_change_no_message(fields):
    assert said(read(ask("u", "one"), {"$set": fields})) == ["one"]


def test_a_header_may_hold_messages():
    rows = [{**HEADER, "messages": [ask("u", "one")]}, ask("v", "two")]
    assert said(read_bytes(lines(*rows))) == ["one", "two"]


# What is odd


@pytest.mark.parametrize("indent", [2, None])
def test_of_a_document_cut_off_the_whole_messages_are_read(indent):
    data = json.dumps({**HEADER, "messages": list(MESSAGES)}, indent=indent).encode()
    for cut in (
        data[:-3],
        b"\xef\xbb\xbf" + data[:-3],
        data[: data.find(b"thanks")],
        data[: data.find(b"look first")],
    ):
        transcript = read_bytes(cut)
        assert transcript.format == "gemini-cli"
        assert said(transcript)[:1] == ["read it"]
        assert codes(transcript) == ["cut-document"]
        assert transcript.session_id == "s1"
        assert_exact(transcript, cut)


def test_what_lacks_its_fields_is_reported():
    transcript = read(
        answer("g", 7, 7, {"name": 7}), ask("u", [7, None, {}, {"functionCall": {}}]),
        answer("h", None, {"name": "f"}), ask("v", {"text": "go"}), {"id": 7, "type": "user"},
        ask("w", [{"functionResponse": 7}]),
    )  # fmt: skip
    assert set(codes(transcript)) == {"malformed-call"}
    assert said(transcript) == ["go"]


def test_broken_files_are_survived():
    assert_survives(lines(HEADER, *MESSAGES, answer("g4", "ok")), "gemini-cli")


@pytest.mark.parametrize("indent", [2, None])
def test_broken_documents_are_survived(indent):
    data = json.dumps({**HEADER, "messages": list(MESSAGES)}, indent=indent).encode()
    for at in range(0, len(data), 7):
        for broken in (data[:at] + data[at + 9 :], data[:at] + b"\xff\0" + data[at:]):
            transcript = read_bytes(broken, format="gemini-cli")
            assert set(said(transcript)) <= {*said(read_bytes(data)), *said(transcript)}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["error", "image/png", "x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["text", "inlineData", "mimeType", "data", "functionResponse", "name",
                             "functionCall", "response", "output", "parts", "id", "args", "result"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)  # fmt: skip
FIELDS = st.dictionaries(
    st.sampled_from(["content", "toolCalls", "thoughts", "displayContent", "model", "timestamp"]),
    VALUES,
    max_size=5,
)
ROWS = (
    st.builds(
        lambda kind, uid, fields: {"type": kind, "id": uid, **fields},
        st.sampled_from(["user", "gemini", "info"]),
        st.sampled_from(["a", "b"]),
        FIELDS,
    )
    | st.builds(lambda uid: {"$rewindTo": uid}, st.sampled_from(["a", "b", "c"]))
    | st.builds(lambda value: {"$set": {"messages": value}}, VALUES | st.lists(FIELDS))
)


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_any_record_is_survived(rows: list[Record]):
    for data in (lines(HEADER, *rows), document(*rows)):
        assert_exact(read_bytes(data, format="gemini-cli"), data)


# Real sessions, counted from their raw JSON

FILES = ("ah-toolerror-fixture.jsonl", "entire-12cb.json", "entire-ab2b.json")


def messages_of(path: Path) -> list[Record]:
    data = path.read_bytes()
    if path.suffix == ".json":
        return json.loads(data)["messages"]
    return [json.loads(row) for row in data.split(b"\n")[1:] if row]


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_a_real_session_is_read_whole(corpus: Path, name: str):
    path = corpus / "sessions/gemini-cli" / name
    messages = messages_of(path)
    called = [each for message in messages for each in message.get("toolCalls", ())]
    transcript = open_log(path)
    assert said(transcript) == [m["content"] for m in messages if m["type"] == "user"]
    assert len(parts(transcript, "call")) == len(called)
    assert len(parts(transcript, "result")) == sum("result" in each for each in called)
    assert codes(transcript) == []
    assert_exact(transcript, path.read_bytes())


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_a_real_session_compacts_to_valid_contexts(corpus: Path, name: str):
    assert_contexts(open_log(corpus / "sessions/gemini-cli" / name))


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_a_real_session_cut_anywhere_is_a_session(corpus: Path, name: str):
    path = corpus / "sessions/gemini-cli" / name
    whole = said(open_log(path))
    for cut in cuts(path.read_bytes(), 60):
        words = said(read_bytes(cut, format="gemini-cli"))
        assert words == whole[: len(words)]
        if b'"projectHash"' in cut:
            assert read_bytes(cut).format == "gemini-cli"
