from __future__ import annotations

from collections import Counter
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
    records,
    replaced,
    said,
    shape,
)
from tests.transcript.handles import PNG

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Transcript

HEADER = {"type": "session", "id": "s1", "cwd": "/repo", "provider": "p", "modelId": "m"}


def message(role: str, **fields: Any) -> Record:
    return {"type": "message", "timestamp": "t", "message": {"role": role, **fields}}


def text(words: str) -> Record:
    return {"type": "text", "text": words}


def ask(words: str) -> Record:
    return message("user", content=[text(words)])


def answer(*blocks: Record, stop: str = "stop") -> Record:
    return message("assistant", content=list(blocks), model="m1", stopReason=stop)


def call(call_id: str, **arguments: Any) -> Record:
    return {"type": "toolCall", "id": call_id, "name": "read", "arguments": arguments}


def result(call_id: str, *blocks: Record, is_error: bool = False) -> Record:
    return message(
        "toolResult", toolCallId=call_id, toolName="read", content=list(blocks), isError=is_error
    )


LOG = (
    HEADER,
    ask("read it"),
    answer(
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"},
        text("I read."),
        call("c1", path="a"),
        call("c2", path="b"),
        stop="toolUse",
    ),
    result("c1", text("one")),
    result("c2", text("no such file"), is_error=True),
    {"type": "thinking_level_change", "thinkingLevel": "low"},
    answer(text("Done.")),
)


def read(*rows: Any) -> Transcript:
    return read_bytes(lines(*rows), format="pi")


def test_a_log_is_recognised_by_its_first_line():
    transcript = read_bytes(lines(*LOG))
    assert (transcript.format, transcript.dialect) == ("pi", "openai")
    assert transcript.evidence == "line 1: type session with id and cwd"
    assert transcript.session_id == "s1"
    assert transcript.counts == {"other_lines": 1}


def test_messages_are_read_in_order():
    transcript = read(*LOG)
    assert shape(transcript) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "call", "call"]),
        ("tool", ["result"]),
        ("tool", ["result"]),
        ("assistant", ["text"]),
    ]
    assert [m.model for m in transcript.messages] == ["", "m1", "", "", "m1"]
    assert [part.is_error for part in parts(transcript, "result")] == [False, True]
    assert parts(transcript, "call")[1].payload() == {"path": "b"}


def test_every_part_is_a_handle_on_exact_bytes():
    data = lines(*LOG)
    assert_exact(read_bytes(data), data)


def test_thinking_is_signed_and_may_hold_a_signature_alone():
    rows = [answer({"type": "thinking", "thinkingSignature": "sig"}), LOG[2]]
    thinking = parts(read(HEADER, *rows), "thinking")
    assert [(part.text(), part.has_signature) for part in thinking] == [("", True), ("hm", True)]


def test_content_may_be_a_string():
    transcript = read(HEADER, message("user", content="go"), answer(text("ok")))
    assert said(transcript) == ["go"]


def test_an_image_goes_out_in_every_dialect():
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    rows = [message("user", content=[image, text("see")]), answer(call("c")), result("c", image)]
    transcript = read(HEADER, *rows, answer(text("ok")))
    assert [part.images for part in parts(transcript) if part.images] == [((24, 18, len(PNG)),)] * 2
    assert_contexts(transcript)


def test_an_image_of_unknown_form_is_kept_as_it_is():
    transcript = read(HEADER, message("user", content=[{"type": "image", "url": 7}, text("see")]))
    assert shape(transcript) == [("user", ["other", "text"])]


def test_a_command_of_the_person_is_context_and_no_request():
    command = message("bashExecution", command="git log", output="abc", exitCode=0)
    transcript = read(HEADER, ask("go"), answer(text("ok")), command)
    assert authors(transcript)[2:] == [("local", "git log"), ("local", "abc")]
    assert said(transcript) == ["go"]


def test_a_command_the_model_never_saw_is_left_out_and_counted():
    hidden = message("bashExecution", command="pass", output="secret", excludeFromContext=True)
    transcript = read(HEADER, ask("go"), hidden)
    assert shape(transcript) == [("user", ["text"])]
    assert transcript.counts == {"excluded_commands": 1}


@pytest.mark.parametrize(
    "row",
    [
        {"type": "custom_message", "customType": "x", "content": "by an extension"},
        message("custom", content=[text("by an extension")]),
        message("hookMessage", content="by an extension"),
    ],
)
def test_messages_of_extensions_are_a_machines(row):
    assert authors(read(HEADER, row)) == [("injected", "by an extension")]


def test_an_aborted_answer_may_be_empty():
    transcript = read(HEADER, ask("one"), answer(stop="aborted"), ask("two"))
    assert shape(transcript) == [("user", ["text"]), ("user", ["text"])]
    assert transcript.counts["aborted_answers"] == 1


@pytest.mark.parametrize("blocks", [(), (text("part"),)])
def test_after_an_aborted_answer_a_request_is_new(blocks):
    rows = [ask("one"), answer(call("c"), stop="toolUse"), result("c", text("r"))]
    transcript = read(HEADER, *rows, answer(*blocks, stop="aborted"), ask("two"))
    assert authors(transcript)[-1] == ("human", "two")


def test_a_request_into_an_open_loop_is_steering():
    rows = [ask("one"), answer(call("c"), stop="toolUse"), result("c", text("r")), ask("two")]
    assert authors(read(HEADER, *rows))[-1] == ("steering", "two")


def test_a_call_without_result_stays_open():
    transcript = read(HEADER, ask("one"), answer(call("c"), stop="aborted"), ask("two"))
    assert [part.call_id for part in parts(transcript, "call")] == ["c"]
    assert_contexts(transcript)


# Native compaction

TALK = (HEADER, ask("one"), answer(text("1")), ask("two"), answer(text("2")))


def compaction(summary: str, **fields: Any) -> Record:
    return {"type": "compaction", "summary": summary, "tokensBefore": 9, **fields}


def test_after_a_compaction_its_summary_and_what_it_kept_is_live():
    transcript = read(*TALK, compaction("sum", firstKeptEntryIndex=3), ask("three"))
    assert live(transcript) == ["sum", "two", "2", "three"]
    assert replaced(transcript) == ["one", "1"]
    assert ("summary", "sum") in authors(transcript)
    assert said(transcript) == ["one", "two", "three"]
    assert_contexts(transcript)


def test_the_index_counts_lines_that_are_no_messages_too():
    level = {"type": "thinking_level_change", "thinkingLevel": "low"}
    rows = [HEADER, level, *TALK[1:], compaction("sum", firstKeptEntryIndex=4)]
    assert live(read(*rows)) == ["sum", "two", "2"]


@pytest.mark.parametrize("kept", [{}, {"firstKeptEntryIndex": 99}, {"firstKeptEntryIndex": "x"}])
def test_a_compaction_that_kept_nothing_leaves_its_summary(kept):
    transcript = read(*TALK, compaction("sum", **kept), ask("three"))
    assert live(transcript) == ["sum", "three"]
    assert said(transcript) == ["one", "two", "three"]


def test_a_later_compaction_replaces_the_summary_of_the_one_before():
    rows = [*TALK, compaction("first", firstKeptEntryIndex=3), ask("three"), answer(text("3"))]
    transcript = read(*rows, compaction("second", firstKeptEntryIndex=4))
    assert live(transcript) == ["second", "2", "three", "3"]
    assert replaced(transcript) == ["one", "1", "two", "first"]
    assert transcript.counts["compactions"] == 2


# The tree of later versions


def node(uid: str, parent: str | None, row: Record) -> Record:
    return {**row, "id": uid, "parentId": parent}


TREE = (
    {**HEADER, "version": 3},
    node("a", None, ask("one")),
    node("b", "a", answer(text("1"))),
    node("c", "b", ask("two")),
    node("d", "c", answer(text("2"))),
)


def test_the_session_is_the_walk_from_the_last_line():
    transcript = read(*TREE, node("e", "b", ask("other two")), node("f", "e", answer(text("3"))))
    assert said(transcript) == ["one", "other two"]
    assert transcript.counts["rewound_messages"] == 2
    assert codes(transcript) == ["rewound"]
    assert [m.uid for m in transcript.messages] == ["a", "b", "e", "f"]


def test_a_branch_summary_is_the_clients():
    branch = node("e", "b", {"type": "branch_summary", "summary": "tried two", "fromId": "d"})
    assert ("summary", "tried two") in authors(read(*TREE, branch))


def test_a_compaction_names_the_first_entry_it_kept():
    rows = [*TREE, node("e", "d", compaction("sum", firstKeptEntryId="c"))]
    assert live(read(*rows)) == ["sum", "two", "2"]


def test_a_line_whose_parent_is_lost_follows_the_one_above():
    transcript = read(*TREE[:4], node("e", "lost", answer(text("2"))))
    assert said(transcript) == ["one", "two"]
    assert codes(transcript) == ["gap"]


def test_a_loop_of_parents_ends():
    rows = [HEADER, node("a", "b", ask("one")), node("b", "a", answer(text("1")))]
    assert said(read(*rows)) == ["one"]


# What is odd


def test_what_lacks_its_fields_is_reported():
    transcript = read(
        HEADER, {"type": "message"}, message("critic", content=[]), message("user"),
        message("assistant", content=[{"type": "toolCall"}, {"type": "new", "x": 1}, 7]),
        message("toolResult"), {"type": "new"}, {"type": "compaction"},
        {"type": "message", "message": {"role": ["user"]}},
    )  # fmt: skip
    assert set(codes(transcript)) == {
        "no-message", "unknown-role", "no-content", "malformed-block",
    }  # fmt: skip


def test_broken_files_are_survived():
    assert_survives(lines(*LOG, ask("more"), answer(text("ok"))), "pi")


KEYS = ["role", "content", "toolCallId", "isError", "command", "output", "stopReason", "model"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["user", "assistant", "text", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "data", "id", "name"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
ROLES = st.sampled_from(["user", "assistant", "toolResult", "bashExecution", "custom"])
MESSAGES = st.builds(
    lambda role, fields: {"role": role, **fields},
    ROLES,
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=5),
)
ROWS = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "compaction", "custom_message", "session"])},
    optional={
        "message": MESSAGES | VALUES, "id": VALUES, "parentId": VALUES, "summary": VALUES,
        "firstKeptEntryIndex": VALUES, "firstKeptEntryId": VALUES, "content": VALUES,
    },
)  # fmt: skip


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_any_line_is_survived(rows: list[Record]):
    data = lines(*rows)
    assert_exact(read_bytes(data, format="pi"), data)


# A real session, counted from its raw JSON


@pytest.fixture
def path(corpus: Path) -> Path:
    return corpus / "sessions/pi/pimono-large-session.jsonl"


@pytest.mark.corpus
def test_a_real_log_is_read_whole(path: Path):
    messages = [row["message"] for row in records(path) if row["type"] == "message"]
    roles = Counter(each["role"] for each in messages)
    asked = [b["text"] for m in messages if m["role"] == "user" for b in m["content"]]
    called = [b for m in messages for b in m["content"] if b["type"] == "toolCall"]
    transcript = open_log(path)
    assert said(transcript) == asked
    assert len(parts(transcript, "call")) == len(called) == 391
    assert len(parts(transcript, "result")) == roles["toolResult"] == 373
    stopped = sum(m.get("stopReason") in ("aborted", "error") for m in messages)
    assert transcript.counts["aborted_answers"] == stopped
    assert codes(transcript) == []
    assert_exact(transcript, path.read_bytes())


@pytest.mark.corpus
def test_a_real_log_compacts_to_valid_contexts(path: Path):
    assert_contexts(open_log(path))


@pytest.mark.corpus
@pytest.mark.slow
def test_a_real_log_cut_anywhere_is_a_session(path: Path, pytestconfig: Any):
    whole = said(open_log(path))
    for cut in cuts(path.read_bytes(), 10_000 if pytestconfig.getoption("--full-sweep") else 12):
        words = said(read_bytes(cut))
        assert words == whole[: len(words)]
        assert len(words) == cut.count(b'"message":{"role":"user"')
