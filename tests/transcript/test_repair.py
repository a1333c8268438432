"""Repair: the copy can be resumed, no word is lost or invented, and what is sound keeps its bytes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import recap
from recap.errors import InputError, UsageError
from recap.transcript.check import check_log
from recap.transcript.formats import read_bytes
from tests.transcript.logs import (
    Line,
    agent,
    answer,
    boundary,
    log,
    node,
    result,
    said,
    summary,
    use,
    user,
)

if TYPE_CHECKING:
    from pathlib import Path

    from recap import Repaired

STAMP = {"timestamp": "2026-01-01T00:00:00Z"}
CLAIMED = {
    *("bad-line", "cut-line", "glued-lines", "nul-bytes", "null-line", "unfinished-line"),
    *("null-block", "no-message", "duplicate-uuid", "dangling-parent"),
    *("orphan-result", "unanswered-call"),
}
"""Findings a repaired log must not have, but for a call that was made last."""


def turns(*more: Line | bytes) -> list[Line | bytes]:
    """Return a sound log: a question, a call with its result, an answer; and further lines."""
    return [
        user("u1", None, "Where is the parser?", **STAMP),
        agent("a1", "u1", said("I look."), use("t1"), **STAMP),
        answer("r1", "a1", "t1", **STAMP),
        agent("a2", "r1", said("In parser.py."), **STAMP),
        *more,
    ]


def raw(line: Line) -> bytes:
    return json.dumps(line).encode()


def codes(repaired: Repaired) -> list[tuple[str, int]]:
    return [(each.code, each.line) for each in repaired.repairs]


def lines(repaired: Repaired) -> list[bytes]:
    return repaired.data.split(b"\n")[:-1]


def quarantine(repaired: Repaired) -> bytes:
    return b"".join(repaired.quarantine())


def parents(repaired: Repaired) -> dict[str, str | None]:
    records = map(json.loads, lines(repaired))
    return {record["uuid"]: record["parentUuid"] for record in records}


def texts(data: bytes) -> list[str]:
    """Return the texts of people and agents in order."""
    return [
        part.text()
        for message in read_bytes(data, format="claude-code").messages
        for part in message.parts
        if part.kind == "text"
    ]


def assert_sound(repaired: Repaired) -> None:
    """The client can resume the copy, and another repair finds nothing in it."""
    left = {each.code for each in repaired.left}
    assert {f.code for f in check_log(repaired.data)} & CLAIMED <= left
    again = recap.repair(repaired.data, repaired.format)
    assert (again.data, again.repairs) == (repaired.data, ())


# lines


def test_a_sound_log_is_copied_byte_for_byte() -> None:
    data = b"\xef\xbb\xbf" + log(*turns(b"  \n", b"17\n", b"[]\r\n", b"{}\n"))
    repaired = recap.repair(data)
    assert repaired.data == data
    assert (repaired.repairs, repaired.left, quarantine(repaired)) == ((), (), b"")


def test_glued_records_get_lines_of_their_own() -> None:
    one, two, three, four = map(raw, turns())  # type: ignore[arg-type]
    repaired = recap.repair(one + b"\n" + two + three + b" \0" + four + b"\n")
    assert lines(repaired) == [one, two, three, four]
    assert codes(repaired) == [("glued-lines", 2)]
    assert_sound(repaired)


def test_line_ends_are_kept_and_new_ones_are_like_them() -> None:
    one, two, three, four = map(raw, turns())  # type: ignore[arg-type]
    repaired = recap.repair(b"\r\n".join([one, two + three, b"\0" * 9, four]))
    assert repaired.data == b"\r\n".join([one, two, three, four])


def test_a_record_behind_one_that_was_cut_is_saved_and_the_rest_is_quarantined() -> None:
    one, two, three, four = map(raw, turns())  # type: ignore[arg-type]
    cut = raw(agent("lost", "u1", said("never finished")))[:-30]
    repaired = recap.repair(b"\n".join([one, cut + two, three, four, b""]))
    assert lines(repaired) == [one, two, three, four]
    assert quarantine(repaired) == cut + b"\n"
    assert codes(repaired) == [("cut-line", 2)]
    assert_sound(repaired)


def test_records_before_one_that_was_cut_are_saved() -> None:
    one, two, three, four = map(raw, turns())  # type: ignore[arg-type]
    repaired = recap.repair(b"\n".join([one, two + three[:40], b""]))
    assert lines(repaired) == [one, two]
    assert quarantine(repaired) == three[:40] + b"\n"
    assert four not in repaired.data


def test_a_part_of_a_cut_record_is_no_record() -> None:
    torn = raw(agent("a9", "a2", said("x")))[40:]
    assert torn.index(b'{"type": "text"') > 0
    repaired = recap.repair(log(*turns(torn[:-4] + b"\n")))
    assert lines(repaired) == log(*turns()).split(b"\n")[:-1]
    assert quarantine(repaired) == torn[:-4] + b"\n"


def test_nul_bytes_go() -> None:
    one, two, three, four = map(raw, turns())  # type: ignore[arg-type]
    repaired = recap.repair(b"\n".join([one, b"\0" * 500, two + b"\0" * 9000, three, four, b""]))
    assert lines(repaired) == [one, two, three, four]
    assert codes(repaired) == [("nul-bytes", 2), ("nul-bytes", 3)]
    assert quarantine(repaired) == b"\0" * 500 + b"\n" + b"\0" * 9000 + b"\n"


def test_lines_that_are_null_or_no_json_go() -> None:
    repaired = recap.repair(log(*turns(b" null\n", b"nonsense\n")))
    assert repaired.data == log(*turns())
    assert codes(repaired) == [("null-line", 5), ("bad-line", 6)]
    assert quarantine(repaired) == b" null\nnonsense\n"


def test_a_last_line_that_was_not_finished_goes() -> None:
    repaired = recap.repair(log(*turns(b'{"type":"user","mess')))
    assert repaired.data == log(*turns())
    assert codes(repaired) == [("unfinished-line", 5)]


def test_a_last_line_without_an_end_is_left_as_it_is() -> None:
    data = log(*turns()).rstrip(b"\n")
    assert recap.repair(data).data == data


def test_what_strict_json_forbids_is_left_as_it_is() -> None:
    line = raw(user("u2", "a2", "?", **STAMP)).replace(b"?", b"\\ud83d \xff \x01")
    data = log(*turns(line + b"\n"))
    assert recap.repair(data).data == data


def test_lines_are_counted_as_in_the_original() -> None:
    one, two, three, four = map(raw, turns())  # type: ignore[arg-type]
    ghost = raw(user("u2", "ghost", "And now?", **STAMP))
    repaired = recap.repair(b"\n".join([one + two, b"\0", three + four, b"null", ghost, b"null"]))
    assert codes(repaired) == [
        ("glued-lines", 1), ("nul-bytes", 2), ("glued-lines", 3), ("null-line", 4),
        ("dangling-parent", 5), ("null-line", 6),
    ]  # fmt: skip
    assert repaired.repairs[4].detail == "Its parent is not in the file; line 3 is its parent."


def test_lines_of_other_logs_are_mended() -> None:
    meta = {"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}}
    message = {
        "timestamp": "t", "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
    }  # fmt: skip
    one, two = raw(meta), raw(message)
    repaired = recap.repair(b"\n".join([one, two + two, two[:60] + two, b"\0\0", b""]))
    assert repaired.format == "codex"
    assert lines(repaired) == [one, two, two, two]
    assert codes(repaired) == [("glued-lines", 2), ("cut-line", 3), ("nul-bytes", 4)]


# uuids and parents


def test_a_line_sent_again_stays_once() -> None:
    again = agent("a2", "r1", said("In parser.py."), timestamp="later", gitBranch="other")
    repaired = recap.repair(log(*turns(again, user("u2", "a2", "Thanks", **STAMP))))
    assert repaired.data == log(*turns(user("u2", "a2", "Thanks", **STAMP)))
    assert codes(repaired) == [("duplicate-uuid", 5)]
    assert quarantine(repaired) == raw(again) + b"\n"
    assert_sound(repaired)


def test_different_lines_with_one_uuid_are_both_kept() -> None:
    twin = agent("a2", "r1", said("Or in lexer.py."), **STAMP)
    middle = user("u2", "a2", "Sure?", **STAMP)
    after = user("u3", "a2", "And now?", **STAMP)
    repaired = recap.repair(log(*turns(middle, twin, after)))
    fresh = json.loads(lines(repaired)[3])["uuid"]
    assert fresh not in ("u1", "a1", "r1", "a2", "u2", "u3")
    assert parents(repaired) == {
        "u1": None, "a1": "u1", "r1": "a1", fresh: "r1", "u2": fresh, "a2": "r1", "u3": "a2",
    }  # fmt: skip
    assert codes(repaired) == [("duplicate-uuid", 4), ("re-parented", 5)]
    assert recap.repair(log(*turns(middle, twin, after))).data == repaired.data
    assert_sound(repaired)


def test_results_and_compactions_follow_a_uuid_that_changes() -> None:
    first = [
        user("u1", None, "Where?", **STAMP),
        agent("a1", "u1", use("t1"), **STAMP),
        answer("r1", "a1", "t1", sourceToolAssistantUUID="a1", **STAMP),
        boundary("b1", "a1", preservedSegment={"headUuid": "a1", "tailUuid": "r1"}),
        summary("s1", "b1") | STAMP,
        agent("a1", "s1", said("Go on."), **STAMP),
        user("u2", "a1", "Yes", **STAMP),
    ]
    repaired = recap.repair(log(*first))
    records = [json.loads(line) for line in lines(repaired)]
    fresh = records[1]["uuid"]
    assert fresh != "a1"
    assert records[2]["sourceToolAssistantUUID"] == fresh
    assert records[3]["logicalParentUuid"] == fresh
    assert records[3]["compactMetadata"]["preservedSegment"]["headUuid"] == fresh
    assert records[6]["parentUuid"] == "a1"


def test_the_line_before_stands_in_for_a_parent_that_is_not_there() -> None:
    ghost = user("u2", "ghost", "And now?", **STAMP)
    repaired = recap.repair(log(*turns(ghost)))
    assert repaired.data == log(*turns(user("u2", "a2", "And now?", **STAMP)))
    assert quarantine(repaired) == b'"ghost"\n'
    assert codes(repaired) == [("dangling-parent", 5)]
    assert_sound(repaired)


def test_only_the_bytes_of_the_parent_change() -> None:
    line = b'{ "uuid":"u2", "parentUuid" : "ghost" ,"type":"user","n":1e2,"timestamp":"t",'
    line += b'"message":{"role":"user","content":"caf\\u00e9"}}'
    repaired = recap.repair(log(*turns(line + b"\n")))
    assert lines(repaired)[4] == line.replace(b'"ghost"', b'"a2"')


def test_the_first_line_has_no_parent() -> None:
    first = user("u1", "ghost", "Hello", **STAMP)
    repaired = recap.repair(log(first, agent("a1", "u1", said("Hi"), **STAMP)))
    assert parents(repaired) == {"u1": None, "a1": "u1"}
    assert_sound(repaired)


def test_side_chains_and_the_main_conversation_keep_apart() -> None:
    side = agent("s1", "ghost", said("sub"), isSidechain=True, agentId="x", **STAMP)
    more = agent("s2", "gone", said("sub"), isSidechain=True, agentId="x", **STAMP)
    main = user("u2", "nowhere", "And now?", **STAMP)
    repaired = recap.repair(log(*turns(side, more, main)))
    found = parents(repaired)
    assert (found["s1"], found["s2"], found["u2"]) == (None, "s1", "a2")


def test_no_circle_is_closed() -> None:
    first = user("u1", "u2", "one", **STAMP)
    second = user("u2", "ghost", "two", **STAMP)
    assert parents(recap.repair(log(first, second))) == {"u1": "u2", "u2": None}


def test_a_line_that_is_its_own_parent_follows_the_one_before() -> None:
    repaired = recap.repair(log(*turns(user("u2", "u2", "And now?", **STAMP))))
    assert parents(repaired)["u2"] == "a2"


# calls and results


def test_an_orphan_result_goes_and_its_children_move_up() -> None:
    orphan = answer("r9", "a2", "nowhere", **STAMP)
    repaired = recap.repair(log(*turns(orphan, agent("a3", "r9", said("Done"), **STAMP))))
    assert repaired.data == log(*turns(agent("a3", "a2", said("Done"), **STAMP)))
    assert quarantine(repaired) == b'%b\n"r9"\n' % raw(orphan)
    assert codes(repaired) == [("orphan-result", 5), ("re-parented", 6)]
    assert_sound(repaired)


@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_stands_beside_an_orphan_result_keeps_its_bytes(at: int) -> None:
    content = [said("thanks"), said("a lot")]
    line = user("u2", "a2", content, **STAMP)
    broken = user("u2", "a2", [*content[:at], result("nowhere"), *content[at:]], **STAMP)
    repaired = recap.repair(log(*turns(broken)))
    assert repaired.data == log(*turns(line))
    assert quarantine(repaired) == json.dumps(result("nowhere")).encode() + b"\n"


def test_a_call_without_a_result_goes() -> None:
    call = agent("a3", "a2", use("t9"), **STAMP)
    repaired = recap.repair(log(*turns(call, user("u2", "a3", "stop", **STAMP))))
    assert repaired.data == log(*turns(user("u2", "a2", "stop", **STAMP)))
    assert codes(repaired) == [("unanswered-call", 5), ("re-parented", 6)]
    assert_sound(repaired)


def test_words_beside_a_call_without_a_result_stay() -> None:
    call = agent("a3", "a2", said("I try."), use("t9"), **STAMP)
    stop = user("u2", "a3", "stop", **STAMP)
    repaired = recap.repair(log(*turns(call, stop)))
    assert repaired.data == log(*turns(agent("a3", "a2", said("I try."), **STAMP), stop))


def test_a_call_at_the_end_is_left_and_said() -> None:
    both = agent("a3", "a2", said("Both."), use("t8"), use("t9"), **STAMP)
    data = log(*turns(both, answer("r8", "a3", "t8", **STAMP), node("progress", "p1", "r8")))
    repaired = recap.repair(data)
    assert repaired.data == data
    assert [(each.code, each.line) for each in repaired.left] == [("unanswered-call", 5)]


def test_a_sub_agent_at_work_does_not_end_the_call_that_started_it() -> None:
    call = agent("a3", "a2", use("task"), **STAMP)
    sub = user("s1", None, "find it", isSidechain=True, agentId="x", **STAMP)
    data = log(*turns(call, sub))
    assert recap.repair(data).data == data


def test_a_result_before_its_call_is_no_orphan() -> None:
    early = answer("r2", "a2", "t2", **STAMP)
    call = agent("a3", "r2", use("t2"), **STAMP)
    data = log(*turns(early, call, user("u2", "a3", "and?", **STAMP)))
    assert recap.repair(data).data == data


def test_null_blocks_and_messages_go() -> None:
    blocks = user("u2", "a2", [None, said("words"), None], **STAMP)
    empty = node("assistant", "a3", "u2", message=None, **STAMP)
    repaired = recap.repair(log(*turns(blocks, empty, user("u3", "a3", "more", **STAMP))))
    assert repaired.data == log(
        *turns(user("u2", "a2", [said("words")], **STAMP), user("u3", "u2", "more", **STAMP))
    )
    assert codes(repaired) == [
        ("null-block", 5), ("null-block", 5), ("no-message", 6), ("re-parented", 7),
    ]  # fmt: skip
    assert_sound(repaired)


def test_a_line_a_compaction_names_is_left() -> None:
    lines_ = [
        *turns(answer("r9", "a2", "nowhere", **STAMP)),
        boundary("b1", "r9", preservedSegment={"headUuid": "a2", "tailUuid": "r9", "anchorUuid": "s1"}),
        summary("s1", "b1") | STAMP,
        user("u2", "s1", "Go on", **STAMP),
    ]  # fmt: skip
    repaired = recap.repair(log(*lines_))
    assert repaired.data == log(*lines_)
    assert [(each.code, each.line) for each in repaired.left] == [("named-line", 5)]


# message lists

CALL: Line = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
ASK: Line = {"role": "user", "content": "Where?"}
ANSWER: Line = {"role": "assistant", "content": [said("There.")]}


def openai_call(call_id: str) -> Line:
    return {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}


def as_list(*messages: Any, indent: int | None = None) -> bytes:
    return json.dumps(messages, indent=indent).encode()


def agents(*blocks: Any) -> Line:
    return {"role": "assistant", "content": list(blocks)}


def tools(*blocks: Any) -> Line:
    return {"role": "user", "content": list(blocks)}


ANTHROPIC = {
    "orphan-result": ([ASK, ANSWER, tools(result("x"))], [ASK, ANSWER]),
    "beside-text": ([ASK, ANSWER, tools(result("x"), said("ok"))], [ASK, ANSWER, tools(said("ok"))]),
    "unanswered-call": ([ASK, agents(said("a"), CALL), ASK], [ASK, agents(said("a")), ASK]),
    "call-alone": ([ASK, agents(CALL), ASK, ANSWER], [ASK, ASK, ANSWER]),
    "thinking-last": (
        [ASK, agents({"type": "thinking", "thinking": "x", "signature": "s"}, CALL), ASK],
        [ASK, ASK],
    ),
    "not-adjacent": (
        [ASK, agents(said("a"), CALL), ASK, ANSWER, tools(result("t1"))],
        [ASK, agents(said("a")), ASK, ANSWER],
    ),
    "duplicate-result": (
        [ASK, agents(CALL), tools(result("t1"), result("t1", "b")), ANSWER],
        [ASK, agents(CALL), tools(result("t1")), ANSWER],
    ),
    "duplicate-call": (
        [ASK, agents(CALL, CALL), tools(result("t1")), ANSWER],
        [ASK, agents(CALL), tools(result("t1")), ANSWER],
    ),
    "repeated-call-id": (
        [ASK, agents(CALL), tools(result("t1")), agents(CALL), tools(result("t1", "b"))],
        [
            ASK, agents(CALL), tools(result("t1")),
            agents(CALL | {"id": "t1_2"}), tools(result("t1_2", "b")),
        ],
    ),
    "null": ([None, ASK, agents(None, said("a")), None], [ASK, agents(said("a"))]),
    "everything-goes": ([None, tools(result("x"))], []),
}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ANTHROPIC)
def test_anthropic_lists_are_mended(name: str, indent: int | None) -> None:
    broken, mended = ANTHROPIC[name]
    repaired = recap.repair(as_list(*broken, indent=indent), "anthropic")
    assert json.loads(repaired.data) == mended
    assert repaired.repairs
    assert recap.repair(repaired.data, "anthropic").data == repaired.data
    errors = {f.code for f in recap.check(json.loads(repaired.data), "anthropic")}
    assert not errors & CLAIMED


OPENAI = {
    "orphan": ([ASK, {"role": "tool", "tool_call_id": "x", "content": "r"}, ASK], [ASK, ASK]),
    "call-with-words": (
        [ASK, {"role": "assistant", "content": "a", "tool_calls": [openai_call("x")]}, ASK],
        [ASK, {"role": "assistant", "content": "a"}, ASK],
    ),
    "member-first": (
        [ASK, {"tool_calls": [openai_call("x")], "role": "assistant", "content": "a"}, ASK],
        [ASK, {"role": "assistant", "content": "a"}, ASK],
    ),
    "call-alone": (
        [ASK, {"role": "assistant", "content": None, "tool_calls": [openai_call("x")]}, ASK],
        [ASK, ASK],
    ),
    "one-of-two": (
        [
            ASK, {"role": "assistant", "tool_calls": [openai_call("x"), openai_call("y")]},
            {"role": "tool", "tool_call_id": "y", "content": "r"},
        ],
        [
            ASK, {"role": "assistant", "tool_calls": [openai_call("y")]},
            {"role": "tool", "tool_call_id": "y", "content": "r"},
        ],
    ),
    "answered-twice": (
        [
            ASK, {"role": "assistant", "tool_calls": [openai_call("x"), openai_call("x")]},
            {"role": "tool", "tool_call_id": "x", "content": "r"},
            {"role": "tool", "tool_call_id": "x", "content": "s"},
        ],
        [
            ASK, {"role": "assistant", "tool_calls": [openai_call("x")]},
            {"role": "tool", "tool_call_id": "x", "content": "r"},
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPENAI)
@pytest.mark.parametrize("key", [None, "messages"])
def test_openai_lists_are_mended(name: str, key: str | None) -> None:
    broken, mended = OPENAI[name]
    document = {"model": "m", key: broken} if key else broken
    repaired = recap.repair(json.dumps(document).encode(), "openai")
    found = json.loads(repaired.data)
    assert (found[key] if key else found) == mended
    assert recap.repair(repaired.data, "openai").data == repaired.data
    assert not {f.code for f in recap.check(mended, "openai")} & CLAIMED


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_that_was_cut_off_is_closed(indent: int | None) -> None:
    whole = as_list(ASK, ANSWER, ASK, indent=indent)
    repaired = recap.repair(whole[:-12])
    assert json.loads(repaired.data) == [ASK, ANSWER]
    assert codes(repaired) == [("cut-list", 2)]
    assert repaired.data.startswith(whole[:20])
    assert recap.repair(repaired.data).data == repaired.data


def test_nul_bytes_around_a_list_go() -> None:
    data = as_list(ASK, ANSWER)
    repaired = recap.repair(b"\xef\xbb\xbf\0" + data + b"\n\0\0")
    assert repaired.data == b"\xef\xbb\xbf" + data
    assert [each.code for each in repaired.repairs] == ["nul-bytes", "nul-bytes"]


# what it stands for


def test_no_text_is_lost_where_the_conversation_would_change() -> None:
    """The uuid of the first line on a later one of another branch: no repair keeps all in sight."""
    data = log(
        user("u1", None, "one", **STAMP),
        agent("a1", "u1", said("two"), **STAMP),
        user("u2", "a1", "three", **STAMP),
        agent("u1", "u2", said("four"), **STAMP),
        user("u3", "a1", "five", **STAMP),
    )
    with pytest.raises(InputError, match="would lose 2 texts"):
        recap.repair(data)


def test_a_document_of_another_kind_is_refused() -> None:
    document = {"loglines": [user("u1", None, "Hello")]}
    with pytest.raises(InputError, match="one JSON document of claude-web"):
        recap.repair(json.dumps(document, indent=1).encode())


def test_a_log_without_json_is_refused() -> None:
    with pytest.raises(InputError, match="no line of JSON"):
        recap.repair(b"# aider chat started at 2026-01-01 00:00:00\n\n#### hello\n", "aider")


def test_a_format_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown format"):
        recap.repair(b"{}", "morse")


def test_an_empty_file_stays_empty() -> None:
    assert recap.repair(b"").data == b""
    assert recap.repair(b" \n").data == b" \n"


def test_a_file_is_read_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    data = log(*turns(b"null\n"))
    path.write_bytes(data)
    path.chmod(0o400)
    repaired = recap.repair(str(path))
    assert b"".join(repaired.chunks()) == log(*turns())
    assert path.read_bytes() == data


def test_a_large_file_is_mended_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recap.transcript.sources.HELD_BYTES", 0)
    monkeypatch.setattr("recap.transcript.repair.patch.CHUNK_BYTES", 7)
    path = tmp_path / "session.jsonl"
    path.write_bytes(log(*turns(b"\0\0\n", user("u2", "ghost", "And now?", **STAMP))))
    pieces = list(recap.repair(path).chunks())
    assert max(map(len, pieces)) <= 7
    assert b"".join(pieces) == log(*turns(user("u2", "a2", "And now?", **STAMP)))


SOUND = [
    user("u1", None, "Where is the parser?", **STAMP),
    agent("a1", "u1", said("I look."), use("t1"), **STAMP),
    answer("r1", "a1", "t1", **STAMP),
    agent("a2", "r1", said("In parser.py."), id="m2", **STAMP),
    agent("a3", "a2", use("t2"), id="m2", **STAMP),
    answer("r2", "a3", "t2", said("hurry"), **STAMP),
    node("progress", "p1", "r2", **STAMP),
    agent("a4", "p1", said("Fixed."), **STAMP),
    user("u2", "a4", "Thanks", **STAMP),
]
DAMAGES = st.lists(
    st.tuples(
        st.sampled_from(["cut", "glue", "splice", "nul", "pad", "null", "drop", "again", "orphan"]),
        st.integers(0, 40),
        st.integers(0, 400),
    ),
    max_size=6,
)


def damaged(damages: list[tuple[str, int, int]]) -> bytes:
    """Return the bytes of a log after some accidents."""
    rows = list(map(raw, SOUND))
    for kind, place, size in damages:
        at = place % len(rows)
        row, behind = rows[at], rows[at + 1] if at + 1 < len(rows) else b""
        changed = {
            "cut": [row[:size], behind],
            "glue": [row + behind],
            "splice": [row[:size] + behind],
            "nul": [b"\0" * size, row, behind],
            "pad": [row + b"\0" * size, behind],
            "null": [row, b"null", behind],
            "drop": [behind],
            "again": [row, behind, row],
            "orphan": [row.replace(b'"parentUuid": "', b'"parentUuid": "x'), behind],
        }[kind]
        rows[at : at + 2] = changed
    return b"\n".join(rows)


@given(DAMAGES)
def test_every_accident_is_survived(damages: list[tuple[str, int, int]]) -> None:
    data = damaged(damages)
    try:
        repaired = recap.repair(data, "claude-code")
    except InputError as err:
        event(str(err))
        if re.search("would lose|no line of JSON", str(err)):
            return
        raise
    assert set(texts(data)) <= set(texts(repaired.data))
    assert repaired.repairs or repaired.data == data
    assert all(json.dumps(text).encode() in data for text in texts(repaired.data))
    if repaired.data.strip():
        assert_sound(repaired)


@pytest.mark.corpus
def test_real_sessions_are_sound_once_repaired(corpus: Path) -> None:
    repaired = {}
    for path in sorted((corpus / "sessions" / "claude-code").iterdir()):
        if path.stat().st_size < 1_700_000:
            done = repaired[path.name] = recap.repair(path)
            assert_sound(done)
            assert done.repairs or done.data == path.read_bytes()
    assert codes(repaired["entire-7d66-badline.jsonl"]) == [
        ("glued-lines", 172), ("duplicate-uuid", 175),
    ]  # fmt: skip
    assert codes(repaired["entire-ec38-orphan-open.jsonl"]) == [
        ("orphan-result", 1), ("re-parented", 2), ("dangling-parent", 206),
    ]  # fmt: skip
