from __future__ import annotations

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


def event(kind: str, id: str = "", agent: str = "", **data: Any) -> Record:
    row = {"type": kind, "data": data, "id": id or f"e-{kind}", "parentId": None}
    return {**row, "agentId": agent} if agent else row


def ask(words: str, **more: Any) -> Record:
    wrapped = f"<current_datetime>now</current_datetime>\n\n{words}\n\n<system_reminder/>"
    return event("user.message", content=words, transformedContent=wrapped, **more)


def answer(words: str, *calls: Record, **more: Any) -> Record:
    fields = {"messageId": "m", "model": "m1", "content": words, "toolRequests": list(calls)}
    return event("assistant.message", **{**fields, **more})


def call(call_id: str, name: str = "bash", **arguments: Any) -> Record:
    return {"toolCallId": call_id, "name": name, "arguments": arguments, "type": "function"}


def result(call_id: str, content: str = "ok", **more: Any) -> Record:
    found = {"content": content, "detailedContent": f"{content} for the screen"}
    fields = {"toolCallId": call_id, "success": True, "result": found}
    return event("tool.execution_complete", **{**fields, **more})


def failed(call_id: str, message: str) -> Record:
    fields = {"toolCallId": call_id, "success": False, "error": {"message": message, "code": "x"}}
    return event("tool.execution_complete", **fields)


LOG = (
    event("session.start", sessionId="s1", copilotVersion="1.0.64"),
    event("system.message", role="system", content="You are Copilot."),
    ask("why does it fail"),
    event("hook.start", hookType="x"),
    event("assistant.turn_start", turnId="0"),
    answer(
        "I look.", call("c1", command="ls"), call("c2"), reasoningText="hm", reasoningOpaque="xx"
    ),
    event("tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "ls"}),
    failed("c2", "no such tool"),
    event("system.notification", content="<system_notification>ready</system_notification>"),
    result("c1"),
    answer("It works now."),
    event("assistant.turn_end", turnId="0"),
)


def read(*rows: Any) -> Transcript:
    return read_bytes(lines(*rows), format="copilot-cli")


def test_a_log_is_recognised_by_its_events():
    transcript = read_bytes(lines(*LOG))
    assert (transcript.format, transcript.dialect) == ("copilot-cli", "openai")
    assert transcript.evidence == "line 1: type session.start with data"
    assert transcript.session_id == "s1"
    assert transcript.counts == {"other_lines": 4}


def test_events_are_read_in_the_order_they_happened():
    transcript = read(*LOG)
    assert shape(transcript) == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "call", "call"]),
        ("tool", ["result"]),
        ("user", ["text"]),
        ("tool", ["result"]),
        ("assistant", ["text"]),
    ]
    assert [author for author, _ in authors(transcript)] == [
        "system", "human", "agent", "notification", "agent",
    ]  # fmt: skip


def test_a_persons_words_are_those_typed():
    assert said(read(*LOG)) == ["why does it fail"]


def test_a_result_is_what_the_model_saw():
    results = [
        (part.call_id, part.payload(), part.is_error, part.cost_chars)
        for part in parts(read(*LOG), "result")
    ]
    assert results == [("c2", "no such tool", True, 12), ("c1", "ok", False, 2)]


def test_reasoning_is_thinking_and_signed_where_it_is_sealed():
    rows = [answer("a", reasoningText="open"), answer("b", encryptedContent="xx")]
    thinking = parts(read(*LOG, *rows), "thinking")
    assert [(part.text(), part.has_signature) for part in thinking] == [
        ("hm", True), ("open", False), ("", True),
    ]  # fmt: skip
    assert {part.dialect for part in thinking} == {None}


def test_every_part_is_a_handle_on_exact_bytes():
    data = lines(*LOG)
    assert_exact(read_bytes(data), data)


def test_an_answer_in_pieces_is_one_message():
    rows = [answer("a", apiCallId="x"), answer("b", call("c"), apiCallId="x"), result("c")]
    transcript = read(ask("go"), *rows, answer("c", apiCallId="y"), answer("d"))
    assert shape(transcript)[1:] == [
        ("assistant", ["text", "text", "call"]),
        ("tool", ["result"]),
        ("assistant", ["text"]),
        ("assistant", ["text"]),
    ]


@pytest.mark.parametrize(
    "more", [{"source": "skill-pdf"}, {"source": "agent-1"}, {"isAutopilotContinuation": True}]
)
def test_what_the_client_sends_in_the_persons_place_is_a_machines(more):
    assert authors(read(ask("body of a skill", **more))) == [("injected", "body of a skill")]


def test_attachments_are_the_persons():
    file = {"type": "file", "path": "/repo/a.py", "displayName": "a.py"}
    blob = {"type": "blob", "mimeType": "image/png", "data": PNG}
    lost = {"type": "blob", "mimeType": "image/png", "assetId": "sha256:1"}
    transcript = read(ask("see", attachments=[file, blob, lost]), answer("ok"))
    assert [(part.kind, part.name, part.author) for part in parts(transcript)][:4] == [
        ("text", "", "human"),
        ("other", "file", "human"),
        ("image", "", "human"),
        ("other", "blob", "human"),
    ]
    assert_contexts(transcript)


def test_images_of_a_result_go_out_in_every_dialect():
    image = {"type": "image", "data": PNG, "mimeType": "image/png"}
    found = {"content": "a picture", "binaryResultsForLlm": [image, {"type": "resource"}, 7]}
    rows = [ask("see"), answer("", call("c")), result("c", result=found), answer("ok"), ask("so?")]
    transcript = read(*rows)
    (part,) = parts(transcript, "result")
    assert (part.text(), part.images) == ("a picture\n", ((24, 18, len(PNG)),))
    assert_contexts(transcript)


def test_events_of_sub_agents_are_left_out_and_counted():
    rows = [
        event("assistant.message", agent="a1", content="inner"),
        answer("inner", parentToolCallId="c1"),
        result("c9", parentToolCallId="c1"),
    ]
    transcript = read(*LOG, *rows)
    assert "inner" not in [words for _, words in authors(transcript)]
    assert transcript.counts["sidechain_lines"] == 3


def test_a_request_into_an_open_loop_is_steering_and_after_an_abort_it_is_new():
    rows = [ask("go"), answer("", call("c")), result("c")]
    assert authors(read(*rows, ask("faster")))[-1] == ("steering", "faster")
    stopped = read(*rows, event("abort", reason="user_initiated"), ask("no"))
    assert authors(stopped)[-1] == ("human", "no")
    assert stopped.counts == {"aborted_turns": 1}


def test_a_later_system_prompt_replaces_the_earlier_one():
    again = event("system.message", role="system", content="You are still Copilot.")
    more = event("system.message", role="developer", content="Be brief.")
    transcript = read(*LOG, more, again, ask("on"))
    assert [words for author, words in authors(transcript) if author == "system"] == [
        "Be brief.", "You are still Copilot.", "You are Copilot.",
    ]  # fmt: skip
    assert replaced(transcript) == ["You are Copilot."]
    assert_contexts(transcript)


# Native compaction, as the schema describes it


def compaction(summary: str, **more: Any) -> Record:
    fields = {"success": True, "summaryContent": summary, **more}
    return event("session.compaction_complete", **fields)


BEGIN = event("session.compaction_start")


def test_a_summary_stands_for_what_came_before_the_compaction_began():
    rows = [*LOG, BEGIN, ask("meanwhile"), answer("ok"), compaction("sum"), ask("on")]
    transcript = read(*rows)
    assert live(transcript) == ["You are Copilot.", "sum", "meanwhile", "ok", "on"]
    assert said(transcript) == ["why does it fail", "meanwhile", "on"]
    assert ("summary", "sum") in authors(transcript)
    assert_contexts(transcript)


def test_a_later_summary_replaces_the_earlier_one():
    transcript = read(*LOG, compaction("first"), ask("on"), BEGIN, compaction("second"))
    assert live(transcript) == ["You are Copilot.", "second"]
    assert "first" in replaced(transcript)


@pytest.mark.parametrize("rows", [[BEGIN], [BEGIN, compaction("sum", success=False)]])
def test_a_compaction_that_failed_changes_nothing(rows):
    assert replaced(read(*LOG, *rows, ask("on"))) == []


def test_a_cleared_context_is_empty_and_its_words_stay_in_the_history():
    transcript = read(*LOG, compaction("sum"), event("session.context_cleared"), ask("new"))
    assert live(transcript) == ["You are Copilot.", "new"]
    assert said(transcript) == ["why does it fail", "new"]


def test_what_was_taken_back_is_left_out_and_counted():
    rows = [ask("one"), answer("1"), event("user.message", id="u2", content="two"), answer("2")]
    back = event("session.snapshot_rewind", upToEventId="u2", eventsRemoved=2)
    transcript = read(*rows, back, ask("three"))
    assert said(transcript) == ["one", "three"]
    assert codes(transcript) == ["rewound"]
    lost = event("session.snapshot_rewind", upToEventId="unknown")
    assert said(read(*rows, lost)) == ["one", "two"]


# What is odd


def test_what_lacks_its_fields_is_reported():
    transcript = read(
        {"type": "user.message"}, event("user.message"), event("assistant.message"),
        answer("", {"name": 7}, 7), event("tool.execution_complete"), event("system.message"),
        event("user.message", content=7, attachments=[7, None]), event("system.notification"),
    )  # fmt: skip
    assert set(codes(transcript)) == {"no-message", "malformed-call"}
    assert [part.kind for part in parts(transcript)] == ["result", "other", "other"]


def test_broken_files_are_survived():
    assert_survives(lines(*LOG, ask("more"), answer("ok")), "copilot-cli")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["image", "image/png", "x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["content", "message", "mimeType", "data", "name", "toolCallId"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["content", "attachments", "toolRequests", "result", "error", "reasoningText", "source",
     "upToEventId", "summaryContent", "success", "toolCallId", "role", "apiCallId", "sessionId"]
)  # fmt: skip
KINDS = st.sampled_from(
    ["user.message", "assistant.message", "tool.execution_complete", "system.message", "abort",
     "session.compaction_complete", "session.compaction_start", "session.snapshot_rewind",
     "session.context_cleared", "session.start", "system.notification"]
)  # fmt: skip
ROWS = st.fixed_dictionaries(
    {"type": KINDS, "data": st.dictionaries(KEYS, VALUES, max_size=5) | VALUES, "id": VALUES}
)


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_any_event_is_survived(rows: list[Record]):
    data = lines(*rows)
    assert_exact(read_bytes(data, format="copilot-cli"), data)


# Real sessions, counted from their raw JSON

FILES = ("agentv-550KB.jsonl", "agentv-60KB.jsonl")


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_a_real_log_is_read_whole(corpus: Path, name: str):
    path = corpus / "sessions/copilot-cli" / name
    rows = records(path)
    asked = [row["data"]["content"] for row in rows if row["type"] == "user.message"]
    called = [
        each
        for row in rows
        if row["type"] == "assistant.message"
        for each in row["data"]["toolRequests"]
    ]
    transcript = open_log(path)
    assert said(transcript) == asked
    assert len(parts(transcript, "call")) == len(called)
    ended = sum(row["type"] == "tool.execution_complete" for row in rows)
    assert len(parts(transcript, "result")) == ended
    assert codes(transcript) == []
    assert_exact(transcript, path.read_bytes())


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_a_real_log_compacts_to_valid_contexts(corpus: Path, name: str):
    assert_contexts(open_log(corpus / "sessions/copilot-cli" / name))


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_real_log_cut_anywhere_is_a_session(corpus: Path, name: str, pytestconfig: Any):
    data = (corpus / "sessions/copilot-cli" / name).read_bytes()
    for cut in cuts(data, 10_000 if pytestconfig.getoption("--full-sweep") else 20):
        transcript = read_bytes(cut)
        assert len(said(transcript)) == cut.count(b'"type":"user.message"')
        assert_exact(transcript, cut)
