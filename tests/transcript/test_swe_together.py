from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from recap.session import compact_transcript
from recap.transcript import anthropic, swe_together
from recap.transcript.formats import read_bytes
from recap.transcript.tree import to_bytes, to_object
from tests.transcript.handles import MANGLED, file, held, in_file

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Transcript

SUMMARY = "This session is being continued from a previous conversation that ran out of context."


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": arguments}


def result(call_id: str, content: str = "done") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "timestamp": "2026-01-01", **more}


def read(*messages: Any, **fields: Any) -> Transcript:
    return swe_together.read(held({"session_id": "s", "messages": list(messages), **fields}))


def shape(transcript: Transcript) -> list[tuple[str, list[str]]]:
    return [(m.role, [part.kind for part in m.parts]) for m in transcript.messages]


def write(transcript: Transcript, index: int) -> Any:
    message = transcript.messages[index]
    parts = [part for part in message.parts if part.kind != "thinking"]
    return to_object(anthropic.write_message(message.role, parts))


BLOCKS = (
    said("user", "fix it"),
    said("assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"}]),
    said("assistant", [text("look")]),
    said("assistant", [use("a")], tool_uses=[{"tool": "Read", "input": {}}]),
    said("assistant", [use("b")]),
    said("user", [result("a")]),
    said("user", [result("b"), text("also the tests")]),
    said("assistant", [text("done")]),
)


def test_shape_a_merges_the_blocks_of_one_assistant_message():
    transcript = read(*BLOCKS)
    assert shape(transcript) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "call", "call"]),
        ("tool", ["result"]),
        ("tool", ["result"]),
        ("user", ["text"]),
        ("assistant", ["text"]),
    ]
    assert [message.line for message in transcript.messages] == [1, 2, 6, 7, 7, 8]
    assert transcript.dialect == "anthropic"
    assert transcript.session_id == "s"


def test_shape_a_keeps_steering_beside_a_result():
    parts = read(*BLOCKS).messages[4].parts
    assert [(part.author, part.text()) for part in parts] == [("steering", "also the tests")]


def test_shape_a_never_sends_its_own_fields_to_a_vendor():
    transcript = read(*BLOCKS)
    assert all(message.envelope.raw is None for message in transcript.messages)
    assert write(transcript, 1) == [
        {"role": "assistant", "content": [text("look"), use("a"), use("b")]}
    ]
    assert write(transcript, 0) == [{"role": "user", "content": "fix it"}]


def test_shape_a_counts_the_copy_in_tool_uses_nowhere():
    assert sum(part.kind == "call" for m in read(*BLOCKS).messages for part in m.parts) == 2


def test_what_a_compaction_replaced_is_not_live():
    transcript = read(*BLOCKS, said("user", SUMMARY), said("assistant", [text("go on")]))
    assert [message.is_active for message in transcript.messages] == [False] * 6 + [True] * 2
    assert transcript.messages[6].parts[0].author == "summary"


def test_shape_b_splits_tool_uses_into_calls_and_results():
    transcript = read(
        said("user", "fix it"),
        {
            "role": "assistant",
            "thinking": "hm",
            "content": "look",
            "tool_uses": [
                {"tool": "read", "input": {"p": "a"}, "output": {"text": "x"}, "status": "success"},
                {"tool": "run", "input": {"c": "ls"}, "output": {"output": "y", "exit_code": "0"}},
            ],
        },
        model="gemini",
    )
    assert shape(transcript) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "call", "call"]),
        ("tool", ["result", "result"]),
    ]
    _, step, results = transcript.messages
    assert [part.call_id for part in step.parts[2:]] == ["call_2_1", "call_2_2"]
    assert [part.call_id for part in results.parts] == ["call_2_1", "call_2_2"]
    assert [part.text() for part in results.parts] == ["x", '{"output":"y","exit_code":"0"}']
    assert (step.model, transcript.messages[0].model) == ("gemini", "")


def test_shape_b_takes_the_text_input_of_a_call_as_it_is():
    transcript = read({"role": "assistant", "tool_uses": [{"tool": "Read", "input": "src/a.py"}]})
    call = transcript.messages[0].parts[0]
    assert (call.kind, call.name, call.payload()) == ("call", "Read", "src/a.py")
    assert write(transcript, 0)[0]["content"][0]["input"] == {"input": "src/a.py"}


def test_shape_b_leaves_a_call_without_output_open():
    transcript = read(
        {
            "role": "assistant",
            "tool_uses": [
                {"tool": "a", "input": {}, "status": "error"},
                {"tool": "b", "input": {}},
            ],
        }
    )
    assert shape(transcript) == [("assistant", ["call", "call"])]


@pytest.mark.parametrize("status", ["error", "cancelled"])
def test_shape_b_keeps_a_failed_call_answered(status):
    transcript = read(
        {
            "role": "assistant",
            "tool_uses": [{"tool": "a", "input": {}, "output": {}, "status": status}],
        }
    )
    answer = transcript.messages[1].parts[0]
    assert (answer.is_error, answer.text()) == (True, "")
    assert write(transcript, 1) == [{"role": "user", "content": [result("call_1_1", "")]}]


def test_shape_b_takes_the_persons_next_message_for_a_request():
    """Its results stand inside the calls, so no text can stand right after them."""
    transcript = read(
        {"role": "assistant", "tool_uses": [{"tool": "a", "input": {}, "output": {"text": "x"}}]},
        said("user", "now fix it"),
    )
    assert transcript.messages[2].parts[0].author == "human"


def test_shape_b_reads_messages_of_only_thinking_or_text():
    transcript = read(
        {"role": "assistant", "thinking": "hm"}, said("assistant", "done"), {"role": "assistant"}
    )
    assert shape(transcript) == [
        ("assistant", ["thinking"]),
        ("assistant", ["text"]),
        ("assistant", []),
    ]


def test_shape_c_keeps_messages_apart_and_their_calls_open():
    transcript = read(
        said("user", "fix it"),
        said("assistant", [{"type": "thinking", "thinking": "hm"}, use("a")]),
        said("assistant", [text("look"), use("b"), use("c")]),
        said("assistant", ""),
    )
    assert shape(transcript) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "call"]),
        ("assistant", ["text", "call", "call"]),
        ("assistant", ["text"]),
    ]


CALL = '<tool_use id="a">\n{"name": "Read", "arguments": {"p": "x"}}\n</tool_use>'
RESULT = '<tool_result id="a">\none\ntwo\n</tool_result>'


def test_shape_d_reads_calls_and_results_out_of_the_text():
    transcript = read(
        said("user", "fix it"),
        said("assistant", f"look\n\n{CALL}\n\n{CALL.replace('a', 'b', 1)}"),
        said("user", f'{RESULT}\n\n<tool_result id="b">\n\n</tool_result>'),
        said("assistant", "done"),
    )
    assert shape(transcript) == [
        ("user", ["text"]),
        ("assistant", ["text", "call", "call"]),
        ("tool", ["result", "result"]),
        ("assistant", ["text"]),
    ]
    call = transcript.messages[1].parts[1]
    assert (call.call_id, call.name, call.payload()) == ("a", "Read", {"p": "x"})
    assert [part.payload() for part in transcript.messages[2].parts] == ["one\ntwo", ""]


def test_shape_d_keeps_what_the_log_cut_off_of_a_call():
    cut = '<tool_use id="a">\n{\n  "name": "Write",\n  "arguments": {\n    "path": "a.py", "te'
    message = read(said("assistant", f"write it\n{cut}")).messages[0]
    assert [part.kind for part in message.parts] == ["text", "call"]
    assert (message.parts[1].name, message.parts[1].call_id) == ("Write", "a")
    assert message.parts[1].payload() == '{\n    "path": "a.py", "te'


def test_shape_d_takes_elements_on_one_line():
    transcript = read(
        said("assistant", 'look <tool_use id="a">{"name": "Read", "arguments": {}}</tool_use>'),
        said("user", '<tool_result id="a">done</tool_result>'),
    )
    assert shape(transcript) == [("assistant", ["text", "call"]), ("tool", ["result"])]
    assert transcript.messages[1].parts[0].payload() == "done"


def test_shape_d_takes_an_element_quoted_inside_another_for_text():
    quoting = '<tool_result id="a">\nthe log:\n<tool_result id="b">\nmore\n</tool_result>'
    [message] = read(said("user", quoting)).messages
    assert [(p.call_id, p.payload()) for p in message.parts] == [
        ("a", 'the log:\n<tool_result id="b">\nmore')
    ]


def test_shape_d_marks_results_that_report_an_error():
    body = "<tool_use_error>File does not exist.</tool_use_error>"
    transcript = read(said("user", f'<tool_result id="a">\n{body}\n</tool_result>'))
    assert transcript.messages[0].parts[0].is_error


@pytest.mark.parametrize(
    "words",
    [
        'why does the log say <tool_result id="a"> here?',
        '<tool_result id="a">\nnever closed, said the person',
        'say "<tool_use id="a">" once',
    ],
)
def test_shape_d_leaves_the_words_of_a_person_who_quotes_an_element(words):
    transcript = read(said("user", words))
    assert [(m.role, m.parts[0].payload(), m.parts[0].author) for m in transcript.messages] == [
        ("user", words, "human")
    ]


def test_shape_d_keeps_words_beside_results_as_steering():
    transcript = read(said("assistant", CALL), said("user", f"{RESULT}\nalso the tests"))
    assert shape(transcript)[1:] == [("tool", ["result"]), ("user", ["text"])]
    part = transcript.messages[2].parts[0]
    assert (part.author, part.payload().strip()) == ("steering", "also the tests")


def test_shape_d_leaves_prose_about_tags_alone():
    for words in ('the tag <tool_use id="a"> opens', '<tool_use id="a">{}</tool_use>'):
        assert shape(read(said("assistant", words))) == [("assistant", ["text"])]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([said("user", [result("a")])], "A"),
        ([said("assistant", [use("a")])], "C"),
        ([{"role": "assistant", "tool_uses": []}], "B"),
        ([{"role": "assistant", "thinking": "x"}], "B"),
        ([said("user", RESULT)], "D"),
        ([None, 5], "D"),
    ],
)
def test_the_shape_goes_by_keys_and_content(messages, expected):
    assert swe_together.shape_of(messages) == expected


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"session_id": "s"}, {"session_id": "s", "messages": []}, {"messages": [{}]},
     {"session_id": "s", "messages": {}}, {"session_id": "s", "messages": ["x"]}],
)  # fmt: skip
def test_other_documents_are_not_taken_for_a_session(document):
    assert swe_together.detect(document) is None


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (None, "not-a-message"),
        ({"content": "x"}, "unknown-role"),
        ({"role": "narrator", "content": "x"}, "unknown-role"),
    ],
)
@pytest.mark.parametrize(
    "first", [said("user", [result("a")]), {"role": "user", "thinking": ""}, said("user", "a")]
)
def test_what_is_no_message_is_reported_and_left_out(first, message, code):
    transcript = read(first, message, said("user", "b"))
    assert [(f.code, f.line) for f in transcript.findings] == [(code, 2)]
    assert transcript.messages[-1].parts[0].text() == "b"


def test_a_bare_list_read_as_a_session_has_the_shape_of_its_messages():
    """A list, or rows, under ``--format swe-together`` ended in a KeyError."""
    messages = [said("user", "go"), said("assistant", [use("a")]), said("user", [result("a")])]
    for document in (messages, {"input": messages}):
        found = swe_together.read(held(document))
        assert shape(found) == [("user", ["text"]), ("assistant", ["call"]), ("tool", ["result"])]


def test_broken_tool_uses_are_reported_and_left_out():
    for broken in (None, 5, {}, {"tool": 5}):
        transcript = read({"role": "assistant", "tool_uses": [broken, {"tool": "a", "input": {}}]})
        assert [part.call_id for part in transcript.messages[0].parts] == ["call_1_2"]
        assert [finding.code for finding in transcript.findings] == ["malformed-block"]


@given(MANGLED)
def test_no_session_makes_the_reader_fail_and_what_it_keeps_can_be_written(messages):
    document = {"session_id": "s", "messages": messages}
    for handle in (held(document), file(document)):
        for message in swe_together.read(handle).messages:
            parts = [p for p in message.parts if p.kind != "thinking" or p.has_signature]
            for tree in anthropic.write_message(message.role, parts):
                json.loads(to_bytes(tree), parse_constant=pytest.fail)


# The counts below are taken from the raw JSON, by the rules of the shapes alone.


def raw_texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or [] if block["type"] == "text"]


def raw_counts(messages: list[dict[str, Any]]) -> tuple[int, int]:
    blocks = [b for m in messages if isinstance(m.get("content"), list) for b in m["content"]]
    if blocks:
        kinds = [block["type"] for block in blocks]
        return kinds.count("tool_use"), kinds.count("tool_result")
    uses = [each for message in messages for each in message.get("tool_uses") or []]
    calls = len(uses) + sum(
        len(re.findall(r"^<tool_use id=", m.get("content") or "", re.M))
        for m in messages
        if m["role"] == "assistant"
    )
    results = sum("output" in each for each in uses) + sum(
        len(re.findall(r"^<tool_result id=", m.get("content") or "", re.M))
        for m in messages
        if m["role"] == "user"
    )
    return calls, results


def sessions(corpus: Path) -> list[Path]:
    return sorted(
        [*corpus.glob("swe-together/*.json"), *corpus.glob("sessions/swe-together/*.json")]
    )


@pytest.mark.corpus
def test_every_session_of_the_corpus_is_read_whole(corpus: Path):
    paths = sessions(corpus)
    assert len(paths) == 29 + 6
    shapes = set()
    for path in paths:
        data = path.read_bytes()
        document = json.loads(data)
        shapes.add(swe_together.shape_of(document["messages"]))
        assert swe_together.detect(document)
        transcript = swe_together.read(in_file(data))
        assert transcript.findings == (), path.name
        parts = [part for message in transcript.messages for part in message.parts]
        found = tuple(sum(p.kind == kind for p in parts) for kind in ("call", "result"))
        assert found == raw_counts(document["messages"]), path.name
        expected = [
            words
            for message in document["messages"]
            if message["role"] == "user"
            for words in raw_texts(message)
            if not words.startswith("<tool_result id=")
        ]
        read_words = [
            part.payload() for m in transcript.messages if m.role == "user"
            for part in m.parts if part.kind == "text"
        ]  # fmt: skip
        assert read_words == expected, path.name
    assert shapes == {"A", "B", "C", "D"}


@pytest.mark.corpus
def test_every_result_of_the_corpus_answers_a_call(corpus: Path):
    for path in sessions(corpus):
        parts = [p for m in swe_together.read(in_file(path.read_bytes())).messages for p in m.parts]
        calls = [part.call_id for part in parts if part.kind == "call"]
        results = [part.call_id for part in parts if part.kind == "result"]
        assert len(set(calls)) == len(calls), path.name
        assert set(results) <= set(calls), path.name


@pytest.mark.corpus
def test_the_plain_text_session_of_the_corpus_has_one_request(corpus: Path):
    data = (corpus / "sessions/swe-together/D-hyperswitch-9063.json").read_bytes()
    transcript = swe_together.read(in_file(data))
    authors = [part.author for m in transcript.messages if m.role == "user" for part in m.parts]
    assert authors == ["human"]


def test_a_number_of_thousands_of_digits_ends_no_read() -> None:
    digits = b"9" * 6000
    transcript = read_bytes(
        b'[%b, {"role": "user", "content": "hello"}]' % digits, format="swe-together"
    )
    assert [part.text() for m in transcript.messages for part in m.parts] == ["hello"]


def test_calls_in_a_message_of_the_person_are_the_agents() -> None:
    use = {"tool": "run", "input": "pytest", "output": "1 passed", "status": "success"}
    message = {"role": "user", "content": "Go on.", "thinking": "well", "tool_uses": [use]}
    data = json.dumps([{"role": "user", "content": "hi"}, message, message]).encode()
    transcript = read_bytes(data, format="swe-together")
    kinds = [(m.role, [part.kind for part in m.parts]) for m in transcript.messages]
    assert kinds[1:4] == [
        ("user", ["text"]), ("assistant", ["thinking", "call"]), ("tool", ["result"])
    ]  # fmt: skip
    assert compact_transcript(transcript, "next").messages
