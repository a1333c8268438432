from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import Settings
from recap.session import compact_transcript
from recap.transcript.formats import open_log, read_bytes
from recap.transcript.model import HUMAN_AUTHORS
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

AGENTS = "# AGENTS.md instructions for /repo\n\n<INSTRUCTIONS>\nbe brief\n</INSTRUCTIONS>"
ENVIRONMENT = "<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>"
ABORTED = "<turn_aborted>\nThe user interrupted the previous turn.\n</turn_aborted>"


def line(kind: str, **payload: Any) -> Record:
    return {"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}


def item(kind: str, **fields: Any) -> Record:
    return line("response_item", type=kind, **fields)


def event(kind: str, **fields: Any) -> Record:
    return line("event_msg", type=kind, **fields)


def text(role: str, *words: str) -> Record:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": each} for each in words])


def ask(words: str) -> list[Record]:
    """Return a request as Codex writes it: the item, then its event."""
    return [text("user", words), event("user_message", message=words, images=[])]


def call(call_id: str, name: str = "exec_command", arguments: str = '{"cmd":"ls"}') -> Record:
    return item("function_call", name=name, arguments=arguments, call_id=call_id)


def output(call_id: str, content: Any = "ok") -> Record:
    return item("function_call_output", call_id=call_id, output=content)


def compacted(*history: Record, message: str = "") -> Record:
    items = [each["payload"] for each in history]
    return line("compacted", message=message, replacement_history=items)


START = (
    line("session_meta", id="s1", cwd="/repo", base_instructions={"text": "You are Codex."}),
    event("task_started", turn_id="t1"),
    text("developer", "<permissions instructions>none</permissions instructions>"),
    text("user", AGENTS, ENVIRONMENT),
    line("turn_context", model="gpt-5.5"),
)
ROLLOUT = (
    *START,
    *ask("fix the parser"),
    item("reasoning", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="gAAA"),
    text("assistant", "I look first."),
    call("c1"),
    call("c2", arguments=""),
    output("c2", "Chunk ID: 1\nWall time: 0.1\nProcess exited with code 2\nOutput:\nno"),
    output("c1"),
    event("token_count", info={}),
    text("assistant", "Done."),
    event("agent_message", message="Done."),
    event("task_complete", turn_id="t1", last_agent_message="Done."),
)


def read(*rows: Any) -> Transcript:
    return read_bytes(lines(*rows), format="codex")


def test_a_rollout_is_recognised_by_its_lines():
    transcript = read_bytes(lines(*ROLLOUT))
    assert (transcript.format, transcript.dialect) == ("codex", "openai")
    assert transcript.evidence == "line 1: type session_meta with payload"
    assert transcript.session_id == "s1"


def test_content_comes_from_items_and_events_double_nothing():
    assert shape(read(*ROLLOUT)) == [
        ("system", ["text"]),
        ("system", ["text"]),
        ("user", ["text", "text"]),
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "call", "call"]),
        ("tool", ["result"]),
        ("tool", ["result"]),
        ("assistant", ["text"]),
    ]


def test_authors_follow_who_wrote_the_text():
    assert [author for author, _ in authors(read(*ROLLOUT))] == [
        "system", "system", "injected", "injected", "human", "agent", "agent",
    ]  # fmt: skip


def test_an_assistant_message_has_the_model_of_its_turn():
    models = [m.model for m in read(*ROLLOUT).messages if m.role == "assistant"]
    assert models == ["gpt-5.5", "gpt-5.5"]


def test_every_part_is_a_handle_on_exact_bytes():
    data = lines(*ROLLOUT)
    assert_exact(read_bytes(data), data)


def test_calls_keep_their_arguments_whatever_those_are():
    calls = parts(read(*ROLLOUT), "call")
    assert [(part.call_id, part.name, part.payload()) for part in calls] == [
        ("c1", "exec_command", '{"cmd":"ls"}'),
        ("c2", "exec_command", ""),
    ]


def test_a_call_costs_what_was_sent():
    extra = {"id": "fc_1", "internal_chat_message_metadata_passthrough": {"turn_id": "t"}}
    rows = [call("c"), item("function_call", name="f", arguments="{}", call_id="c", **extra)]
    costs = [part.cost_chars for part in parts(read(*rows), "call")]
    assert costs[1] == len('{"call_id":"c","name":"f","arguments":"{}"}')


def test_what_the_person_answered_to_a_question_is_the_persons():
    answers = '{"answers":{"scope":{"answers":["only the parser"]}}}'
    rows = [*ask("go"), call("c", "request_user_input"), output("c", answers)]
    assert [part.author for part in parts(read(*rows), "result")] == ["steering"]


def test_all_kinds_of_calls_are_read():
    transcript = read(
        *ask("go"),
        item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="p"),
        item("custom_tool_call_output", call_id="p", output="Exit code: 0\nOutput:\nok"),
        item("local_shell_call", id="l", call_id=None, action={"type": "exec", "command": ["ls"]}),
        output("l"),
        item("tool_search_call", call_id="t", execution="client", arguments={"query": "git"}),
        item("tool_search_output", call_id="t", tools=[{"name": "git"}]),
    )
    assert [(part.call_id, part.name, part.payload()) for part in parts(transcript, "call")] == [
        ("p", "apply_patch", "*** Begin Patch"),
        ("l", "local_shell", {"type": "exec", "command": ["ls"]}),
        ("t", "tool_search", {"query": "git"}),
    ]
    results = [(part.call_id, part.payload()) for part in parts(transcript, "result")]
    assert results == [("p", "Exit code: 0\nOutput:\nok"), ("l", "ok"), ("t", [{"name": "git"}])]


def test_a_web_search_is_complete_without_an_output():
    rows = [*ask("go"), item("web_search_call", status="completed", action={"query": "x"})]
    transcript = read(*rows, text("assistant", "found"))
    (search,) = parts(transcript, "other")
    assert (search.name, search.call_id, search.author) == ("web_search_call", "", "agent")
    assert shape(transcript)[-1] == ("assistant", ["other", "text"])


@pytest.mark.parametrize(
    ("content", "is_error"),
    [
        ("ok", False),
        ("Exit code: 0\nOutput:\nExit code: 1", False),
        ("Exit code: 1\nOutput:\n", True),
        ("Chunk ID: a\nWall time: 1\nProcess exited with code 0\nOutput:\n", False),
        ("Chunk ID: a\nWall time: 1\nProcess exited with code 127\nOutput:\n", True),
        ("Chunk ID: a\nOutput:\nProcess exited with code 1", False),
        ("apply_patch verification failed: no such line", True),
        ("aborted by user after 3.1s", True),
        ({"content": "x", "success": False}, True),
        ({"content": "x", "success": True}, False),
        ('{"output":"x","metadata":{"exit_code":1}}', True),
        ('{"output":"x","metadata":{"exit_code":0}}', False),
        ([{"type": "input_text", "text": "x"}], False),
        (None, False),
    ],
)
def test_failed_outputs_are_errors(content, is_error):
    (result,) = parts(read(*ask("go"), call("c"), output("c", content)), "result")
    assert result.is_error == is_error


def test_a_failed_output_object_counts_only_what_the_model_saw():
    (result,) = parts(read(call("c"), output("c", {"content": "abc", "success": False})), "result")
    assert (result.payload(), result.cost_chars) == ("abc", 3)


def test_reasoning_with_encrypted_content_is_signed_and_stays_in_its_dialect():
    transcript = read(*ROLLOUT)
    (thinking,) = parts(transcript, "thinking")
    assert thinking.has_signature
    assert thinking.dialect == "responses"
    assert thinking.text() == "hm"
    assert_contexts(transcript)
    for dialect in ("openai", "anthropic"):
        done = compact_transcript(transcript, to=dialect)
        assert b"gAAA" not in done.to_json()


def test_open_reasoning_is_read_from_its_content():
    content = [{"type": "reasoning_text", "text": "long thoughts"}]
    (thinking,) = parts(read(item("reasoning", summary=[], content=content)), "thinking")
    assert (thinking.text(), thinking.has_signature) == ("long thoughts", False)


def test_an_image_is_the_persons_and_the_tags_around_it_are_not():
    content = [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "what is this"},
    ]
    for rows in ((), (event("user_message", message="what is this"),)):
        transcript = read(item("message", role="user", content=content), *rows)
        assert [part.author for part in parts(transcript)] == [
            "injected", "human", "injected", "human",
        ]  # fmt: skip
        assert parts(transcript, "image")[0].images == ((24, 18, len(PNG)),)


# Requests


def test_a_text_with_an_event_is_a_request_whatever_it_looks_like():
    assert said(read(*ask(ENVIRONMENT), text("assistant", "ok"))) == [ENVIRONMENT]


def test_a_text_without_an_event_between_two_requests_is_a_machines():
    strange = "Warning: too many processes"
    transcript = read(*ask("one"), text("user", strange), text("assistant", "ok"), *ask("two"))
    assert ("injected", strange) in authors(transcript)
    assert said(transcript) == ["one", "two"]


def test_a_text_after_the_last_event_is_judged_by_what_it_says():
    transcript = read(*ask("one"), text("user", "two"), text("user", ENVIRONMENT))
    assert said(transcript) == ["one", "two"]


def test_where_lines_are_lost_a_text_without_an_event_may_be_a_persons():
    rows = (*ask("one"), text("user", "two"), b'{"type":"event_msg","payl', *ask("three"))
    assert said(read(*rows)) == ["one", "two", "three"]


def test_a_log_without_events_is_judged_by_what_the_texts_say():
    rows = [each for each in ROLLOUT if each["type"] != "event_msg"]
    assert said(read(*rows)) == ["fix the parser"]


@pytest.mark.parametrize(
    ("words", "author"),
    [
        (AGENTS, "injected"),
        (ENVIRONMENT, "injected"),
        ("<skill>\n<name>x</name>\nbody\n</skill>", "injected"),
        ('<hook_prompt hook_run_id="1">go on</hook_prompt>', "injected"),
        ("<user_shell_command>\n<command>ls</command>\n</user_shell_command>", "local"),
        ("<subagent_notification>done</subagent_notification>", "notification"),
        (ABORTED, "marker"),
        ("Another language model started to solve this problem and produced a summary", "summary"),
    ],
)
def test_without_events_the_clients_own_texts_are_known(words, author):
    assert authors(read(text("user", words))) == [(author, words)]


def test_a_request_whose_item_is_lost_is_taken_from_its_event():
    data = lines(*ask("one"), text("assistant", "ok"), event("user_message", message="two"))
    transcript = read_bytes(data)
    assert said(transcript) == ["one", "two"]
    assert_exact(transcript, data)


def test_a_request_said_twice_is_there_twice():
    rows = [*ask("yes"), text("assistant", "ok"), event("user_message", message="yes")]
    assert said(read(*rows)) == ["yes", "yes"]
    assert said(read(*rows[:-1], *ask("yes"))) == ["yes", "yes"]


def test_an_event_before_its_item_doubles_nothing():
    rows = ask("one")[::-1]
    assert said(read(*rows, text("assistant", "ok"), *ask("two")[::-1])) == ["one", "two"]


def test_an_event_in_other_words_than_its_item_doubles_nothing():
    rows = [text("user", "please fix it"), event("user_message", message="fix it")]
    assert said(read(*rows, text("assistant", "ok"))) == ["please fix it"]


def test_a_request_in_several_texts_is_one():
    rows = [text("user", "one ", "two"), event("user_message", message="one two")]
    assert said(read(*ask("zero"), *rows, *ask("three"))) == ["zero", "one ", "two", "three"]


def test_a_request_into_an_open_loop_is_steering():
    rows = [*ask("go"), call("c"), output("c"), *ask("faster"), text("assistant", "ok")]
    assert [a for a, _ in authors(read(*rows))] == ["human", "steering", "agent"]


@pytest.mark.parametrize(
    "stop",
    [
        [text("user", ABORTED), event("turn_aborted", reason="interrupted")],
        [event("turn_aborted", reason="user_cancelled")],
        [event("task_complete"), event("task_started")],
        [event("turn_started")],
    ],
)
def test_after_the_end_of_a_turn_a_request_is_new(stop):
    transcript = read(*ask("go"), call("c"), output("c"), *stop, *ask("now this"))
    assert authors(transcript)[-1] == ("human", "now this")


def test_an_interruption_is_a_mark_of_the_client():
    rows = [*ask("go"), text("user", ABORTED), event("turn_aborted"), *ask("on")]
    assert ("marker", ABORTED) in authors(read(*rows))


def test_turns_taken_back_are_left_out_and_counted():
    rows = [*ask("one"), text("assistant", "1"), *ask("two"), text("assistant", "2")]
    transcript = read(*rows, event("thread_rolled_back", num_turns=1), *ask("three"))
    assert said(transcript) == ["one", "three"]
    assert transcript.counts["rewound_messages"] == 2
    assert codes(transcript) == ["rewound"]


# Native compaction

COMPACTION = item("compaction", id="cmp_1", encrypted_content="gAAA")
WORK = (*ask("one"), text("assistant", "did one"), *ask("two"), call("c"), output("c"))
NEW = (text("user", "one"), START[2], START[3], text("user", "two"), COMPACTION)


def test_after_a_compaction_the_new_context_and_what_follows_is_live():
    transcript = read(*START, *WORK, compacted(*NEW), text("assistant", "did two"))
    assert live(transcript)[1:] == [
        "one", START[2]["payload"]["content"][0]["text"], AGENTS, ENVIRONMENT, "two", "did two",
    ]  # fmt: skip
    assert replaced(transcript) == ["did one"]
    assert [part.kind for part in parts(transcript) if part.call_id] == ["call", "result"]


def test_a_request_in_the_old_lines_and_in_the_new_context_is_there_once():
    transcript = read(*START, *WORK, compacted(*NEW), text("assistant", "did two"))
    assert said(transcript) == ["one", "two"]
    assert_contexts(transcript)


def test_an_ended_turn_keeps_its_request_and_the_current_one_moves_behind_the_new_context():
    transcript = read(*START, *WORK, compacted(*NEW), text("assistant", "did two"))
    outline = [(m.role, m.line, m.is_active) for m in transcript.messages]
    assert outline == [
        ("system", 1, True),
        ("user", 6, True),
        ("assistant", 8, False),
        ("assistant", 11, False),
        ("tool", 12, False),
        ("system", 3, True),
        ("user", 4, True),
        ("user", 9, True),
        ("user", 13, True),
        ("assistant", 14, True),
    ]


def test_a_request_the_new_context_lacks_stays_in_the_history():
    transcript = read(*WORK, compacted(text("user", "two"), COMPACTION))
    assert replaced(transcript) == ["one", "did one"]
    assert said(transcript) == ["one", "two"]
    assert_contexts(transcript)


def test_a_request_only_the_new_context_has_is_read_from_there():
    data = lines(*WORK, compacted(text("user", "zero"), text("user", "two"), COMPACTION))
    transcript = read_bytes(data)
    assert sorted(said(transcript)) == ["one", "two", "zero"]
    assert_exact(transcript, data)


def test_equal_requests_are_matched_one_by_one():
    rows = [*ask("yes"), text("assistant", "1"), *ask("yes"), text("assistant", "2")]
    transcript = read(*rows, compacted(text("user", "yes"), COMPACTION), *ask("go"))
    assert said(transcript) == ["yes", "yes", "go"]


def test_a_second_compaction_replaces_the_first():
    again = (text("user", "one"), text("user", "two"), START[2], START[3], text("user", "three"))
    transcript = read(
        *START, *WORK, compacted(*NEW), text("assistant", "did two"),
        *ask("three"), call("d"), output("d"), compacted(*again, COMPACTION), *ask("four"),
    )  # fmt: skip
    assert said(transcript) == ["one", "two", "three", "four"]
    assert replaced(transcript) == ["did one", "did two"]
    assert transcript.counts["compactions"] == 2
    assert_contexts(transcript)


def test_the_sealed_summary_of_a_compaction_stays_in_its_dialect():
    transcript = read(*START, *WORK, compacted(*NEW), text("assistant", "did two"), *ask("three"))
    (sealed,) = parts(transcript, "other")
    assert (sealed.author, sealed.has_signature, sealed.dialect) == ("summary", True, "responses")
    for dialect in ("openai", "anthropic", "responses"):
        done = compact_transcript(transcript, settings=Settings(retention="1"), to=dialect)
        assert (b"gAAA" in done.to_json()) == (dialect == "responses")


def test_items_go_out_to_their_vendor_as_they_came():
    rows = [*START, *WORK, item("reasoning", summary=[], encrypted_content="gAAA"), call("d")]
    transcript = read(*rows, output("d"), text("assistant", "did two"), *ask("three"))
    done = compact_transcript(transcript, settings=Settings(retention="1"), to="responses")
    items = [row["payload"] for row in rows if row["type"] == "response_item"]
    model = [each for each in items if each["type"] != "message" or each["role"] == "assistant"]
    assert [each for each in done.messages if each in model] == model


def test_steering_stays_steering_in_the_new_context():
    rows = [*ask("go"), call("c"), output("c"), *ask("faster"), text("assistant", "ok")]
    transcript = read(*rows, compacted(text("user", "go"), text("user", "faster")), *ask("next"))
    assert [part.author for part in parts(transcript, "text") if part.author in HUMAN_AUTHORS] == [
        "human", "steering", "human",
    ]  # fmt: skip


def test_the_older_compaction_keeps_requests_and_adds_its_summary():
    summary = "Another language model started to solve this problem and produced a summary of it"
    rows = [*START, *WORK, line("compacted", message=summary), *ask("three")]
    transcript = read(*rows)
    assert said(transcript) == ["one", "two", "three"]
    assert ("summary", summary) in authors(transcript)
    assert replaced(transcript) == ["did one"]
    assert live(transcript)[-2:] == [summary, "three"]
    assert_contexts(transcript)


def test_two_older_compactions_keep_all_requests_live():
    summaries = [line("compacted", message=f"summary {number}") for number in (1, 2)]
    transcript = read(*WORK, summaries[0], *ask("three"), text("assistant", "3"), summaries[1])
    assert said(transcript) == ["one", "two", "three"]
    assert "summary 1" in replaced(transcript)
    assert {"one", "two", "three", "summary 2"} <= set(live(transcript))


# What is odd


def test_unknown_lines_and_items_never_fail():
    transcript = read(
        line("world_state", x=1), *ask("go"), item("ghost_snapshot", ghost_commit={}),
        item("image_generation_call", id="i", status="completed"), event("new_event", x=[1]),
        item("mcp_tool_call_output", call_id="m", output="x"),
    )  # fmt: skip
    assert transcript.counts["other_lines"] == 1
    assert transcript.counts["items_not_sent"] == 1
    assert shape(transcript) == [("user", ["text"]), ("assistant", ["other"]), ("tool", ["result"])]


def test_only_the_first_of_several_session_lines_counts():
    rows = [line("session_meta", id="s2"), line("session_meta", id="s1", base_instructions={})]
    assert read(*rows, *ask("go")).session_id == "s2"


@pytest.mark.parametrize("turns", [0, -1, None])
def test_taking_back_no_turn_takes_nothing_back(turns):
    rows = [event("thread_rolled_back", num_turns=9), *ask("go")]
    assert said(read(*rows, event("thread_rolled_back", num_turns=turns))) == ["go"]


def test_content_may_be_a_string_and_blocks_of_unknown_types_are_kept():
    rows = [item("message", role="user", content="go")]
    blocks = [{"type": "input_file", "file_id": "f"}]
    transcript = read(*rows, item("message", role="user", content=blocks))
    assert said(transcript) == ["go"]
    assert shape(transcript)[1] == ("user", ["other"])


def test_what_lacks_its_fields_is_reported():
    transcript = read(
        {"type": "response_item"}, line("response_item"), item("function_call", call_id="c"),
        item("message", role="critic", content=[]), item("message", role="user", content=7),
        item("message", role="user", content=[{"type": "input_text"}, {}, "plain"]),
        line("compacted", replacement_history=[1, {}, None]), line("event_msg"),
    )  # fmt: skip
    assert set(codes(transcript)) == {
        "no-message", "malformed-block", "unknown-role", "no-content",
    }  # fmt: skip
    assert said(transcript) == ["plain"]


def test_broken_files_are_survived():
    assert_survives(lines(*ROLLOUT, compacted(*NEW), *ask("more"), text("assistant", "2")), "codex")


def test_a_lone_surrogate_goes_out_replaced():
    data = lines(*ask("one")).replace(b"one", rb"one \ud83d")
    transcript = read_bytes(data)
    assert said(transcript) == ["one \ud83d"]
    assert set(codes(transcript)) == {"not-strict-json"}
    assert_exact(transcript, data)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["user", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "role", "content", "output", "summary", "message"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
KINDS = st.sampled_from(
    ["message", "reasoning", "function_call", "function_call_output", "user_message", "compaction",
     "tool_search_call", "local_shell_call", "thread_rolled_back", "custom_tool_call_output"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["role", "content", "name", "arguments", "call_id", "output", "summary", "encrypted_content",
     "message", "num_turns", "replacement_history", "id", "action", "base_instructions", "model"]
)  # fmt: skip
PAYLOADS = st.builds(
    lambda kind, fields: {"type": kind, **fields}, KINDS, st.dictionaries(KEYS, VALUES, max_size=5)
)
TYPES = st.sampled_from(["response_item", "event_msg", "compacted", "session_meta", "turn_context"])


@given(st.lists(st.tuples(TYPES, PAYLOADS | VALUES), max_size=8))
def test_any_payload_is_survived(rows: list[tuple[str, Any]]):
    data = lines(*({"type": kind, "payload": payload} for kind, payload in rows))
    if data.strip():
        transcript = read_bytes(data, format="codex")
        assert_exact(transcript, data)


# Real sessions, counted from their raw JSON

PREFIXES = ("# AGENTS.md instructions", "<")
CALLS = {"function_call", "custom_tool_call", "local_shell_call", "tool_search_call"}
FILES = (
    "agentv-10turns-2compacted.jsonl",
    "agentv-13turns-compacted.jsonl",
    "agentv-26turns-aborted.jsonl",
    "agentv-2turns-open.jsonl",
    "ah-escalation-fixture.jsonl",
)


def requests(rows: list[Record]) -> list[str]:
    """Return what the person typed: the events, or without any the user items without prefixes."""
    events = [
        row["payload"]["message"]
        for row in rows
        if row["type"] == "event_msg" and row["payload"]["type"] == "user_message"
    ]
    items = [
        block["text"]
        for row in rows
        if row["type"] == "response_item" and row["payload"].get("role") == "user"
        for block in row["payload"]["content"]
        if not block["text"].startswith(PREFIXES)
    ]
    return events or items


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_a_real_rollout_is_read_whole(corpus: Path, name: str):
    path = corpus / "sessions/codex" / name
    rows = records(path)
    kinds = Counter(row["payload"].get("type") for row in rows if row["type"] == "response_item")
    transcript = open_log(path)
    assert Counter(said(transcript)) == Counter(requests(rows))
    assert len(parts(transcript, "call")) == sum(kinds[kind] for kind in CALLS)
    outputs = sum(count for kind, count in kinds.items() if kind.endswith("_output"))
    assert len(parts(transcript, "result")) == outputs
    assert transcript.counts.get("compactions", 0) == sum(r["type"] == "compacted" for r in rows)
    assert codes(transcript) == []
    assert_exact(transcript, path.read_bytes())


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_a_real_rollout_compacts_to_valid_contexts(corpus: Path, name: str):
    assert_contexts(open_log(corpus / "sessions/codex" / name))


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_real_rollout_cut_anywhere_is_a_session(corpus: Path, name: str, pytestconfig: Any):
    data = (corpus / "sessions/codex" / name).read_bytes()
    for cut in cuts(data, 10_000 if pytestconfig.getoption("--full-sweep") else 12):
        rows = [json.loads(row) for row in cut.split(b"\n") if re.match(rb"\{.*\}$", row)]
        transcript = read_bytes(cut)
        missing = Counter(requests(rows)) - Counter(said(transcript))
        assert missing == Counter()


@pytest.mark.corpus
def test_the_live_context_of_a_real_rollout_is_its_last_compaction(corpus: Path):
    path = corpus / "sessions/codex" / FILES[0]
    rows = records(path)
    at = max(index for index, row in enumerate(rows) if row["type"] == "compacted")
    history = rows[at]["payload"]["replacement_history"]
    later = [row["payload"] for row in rows[at + 1 :] if row["type"] == "response_item"]
    expected = [
        block["text"]
        for entry in (*history, *later)
        if entry["type"] == "message"
        for block in entry["content"]
    ]
    transcript = open_log(path)
    base = rows[0]["payload"]["base_instructions"]["text"]
    assert Counter(live(transcript)) == Counter([base, *expected])
