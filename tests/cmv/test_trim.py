from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

from recap.cmv.options import TrimOptions
from recap.cmv.stubs import is_stub
from recap.cmv.trim import trim
from recap.errors import InputError, UsageError
from recap.transcript.check import check_log
from tests.cmv.logs import (
    EAGER,
    LONG,
    agent,
    call,
    done,
    log,
    node,
    result,
    said,
    thought,
    trimmed,
    use,
    user,
)  # fmt: skip
from tests.cmv.raw_session import blocks_of, dangling, lines_of, texts

if TYPE_CHECKING:
    from pathlib import Path


def by_id(data: bytes) -> dict[str, dict]:
    return {line["uuid"]: line for line in lines_of(data) if "uuid" in line}


def content_of(data: bytes, uuid: str):
    return blocks_of(by_id(data)[uuid])[0]["content"]


SESSION = [user("u1", None, "first"), *call(1, "u1"), done("r1")]


# Results


def test_a_stub_says_what_was_there_and_how_to_get_it_back():
    out, _ = trimmed(log(*SESSION))
    assert content_of(out, "r1") == (
        "[Trimmed: ~2000 chars of Bash ls; restore: recap show SNAPSHOT c1]"
    )


def test_a_stub_names_the_snapshot():
    out, _ = trimmed(log(*SESSION), TrimOptions(keep_last=0, snapshot="ab12", yes=True))
    assert "recap show ab12 c1" in content_of(out, "r1")


def test_what_a_call_was_about_cannot_break_a_stub():
    lines = [user("u1", None, "x"), *call(1, "u1", command="a]\n; restore: [b\x1b"), done("r1")]
    out, _ = trimmed(log(*lines))
    assert is_stub(content_of(out, "r1"))
    assert "\x1b" not in content_of(out, "r1")
    assert trimmed(out)[0] == out


def test_an_odd_call_id_is_restored_by_its_hash():
    lines = [
        user("u1", None, "x"),
        agent("a1", "u1", use("c [1]")),
        user("r1", "a1", [result("c [1]")]),
    ]
    out, _ = trimmed(log(*lines, done("r1")))
    assert "SNAPSHOT sha256:" in content_of(out, "r1")


def test_a_list_stays_a_list_with_one_stub_and_what_is_unknown():
    parts = [said("y" * 900), {"type": "new_kind", "n": 1.0}, said("z" * 900)]
    out, report = trimmed(log(user("u1", None, "x"), *call(1, "u1", parts), done("r1")))
    stub, other = content_of(out, "r1")
    assert stub["text"].startswith("[Trimmed: ~1800 chars")
    assert other == parts[1]
    assert b'"n": 1.0' in out
    assert report.counts["results_stubbed"] == 1


def test_the_newest_entries_stay():
    lines = [user("u1", None, "x"), *call(1, "u1"), *call(2, "r1"), done("r2")]
    out, _ = trimmed(log(*lines), TrimOptions(keep_last=3))
    assert is_stub(content_of(out, "r1"))
    assert content_of(out, "r2") == LONG


def test_errors_stay_whole():
    lines = [
        user("u1", None, "x"),
        agent("a1", "u1", use("c1")),
        user("r1", "a1", [result("c1", is_error=True)]),
    ]
    out, report = trimmed(log(*lines, done("r1")))
    assert content_of(out, "r1") == LONG
    assert report.counts["errors_kept"] == 1


def test_a_long_error_can_be_shortened_once():
    error = "a" * 1000 + "b" * 5000 + "c" * 1000
    block = result("c1", error, is_error=True)
    lines = [
        user("u1", None, "x"),
        agent("a1", "u1", use("c1")),
        user("r1", "a1", [block]),
        done("r1"),
    ]
    options = TrimOptions(keep_last=0, stub_errors=True)
    out, _ = trimmed(log(*lines), options)
    short = content_of(out, "r1")
    assert short.startswith("a" * 1000 + "[Trimmed: ~5000 chars")
    assert short.endswith("]" + "c" * 1000)
    assert trimmed(out, options)[0] == out


def test_a_tool_can_have_its_own_rule():
    lines = [
        user("u1", None, "x"),
        *call(1, "u1"),
        agent("a2", "r1", use("c2", "Read", file_path="f")),
    ]
    lines += [user("r2", "a2", [result("c2")]), done("r2")]
    out, _ = trimmed(log(*lines), TrimOptions(keep_last=0, tools={"Read": "keep"}))
    assert content_of(out, "r2") == LONG
    out, _ = trimmed(log(*lines), TrimOptions(keep_last=0, tools={"Read": 5000, "Bash": "stub"}))
    assert content_of(out, "r2") == LONG
    assert is_stub(content_of(out, "r1"))


# Thinking and open turns


def test_thinking_of_an_open_turn_stays():
    lines = [
        user("u1", None, "x"), agent("t0", "u1", thought()), agent("a0", "t0", said("reply")),
        user("u2", "a0", "y"), agent("t1", "u2", thought()), agent("a1", "t1", use("c1")),
        user("r1", "a1", [result("c1", "short")]),
    ]  # fmt: skip
    out, report = trimmed(log(*lines))
    assert set(by_id(out)) == {"u1", "a0", "u2", "t1", "a1", "r1"}
    assert by_id(out)["a0"]["parentUuid"] == "u1"
    assert report.counts["thinking_removed"] == 1


def test_thinking_beside_a_call_goes_from_its_line():
    lines = [user("u1", None, "x"), agent("a1", "u1", thought(), use("c1"), thought("more"))]
    out, _ = trimmed(log(*lines, user("r1", "a1", [result("c1", "ok")]), done("r1")))
    assert [block["type"] for block in blocks_of(by_id(out)["a1"])] == ["tool_use"]


def test_thinking_from_which_parallel_calls_fork_stays():
    lines = [
        user("u1", None, "x"), agent("t1", "u1", thought(), id="m"),
        agent("a1", "t1", use("c1"), id="m"), user("r1", "a1", [result("c1", "one")]),
        agent("a2", "t1", use("c2"), id="m"), user("r2", "a2", [result("c2", "two")]),
        done("r1"),
    ]  # fmt: skip
    out, report = trimmed(log(*lines))
    assert report.counts["tool_requests"] == 2
    assert "t1" in by_id(out)


def test_thinking_can_be_kept():
    lines = [user("u1", None, "x"), agent("t1", "u1", thought()), agent("a1", "t1", said("y"))]
    out, _ = trimmed(log(*lines), TrimOptions(keep_last=0, keep_thinking=True))
    assert "t1" in by_id(out)


# Chain


def test_progress_goes_and_its_children_follow_what_it_followed():
    lines = [user("u1", None, "x"), node("progress", "p1", "u1"), node("progress", "p2", "p1")]
    out, report = trimmed(log(*lines, agent("a1", "p2", said("y"))))
    assert by_id(out)["a1"]["parentUuid"] == "u1"
    assert report.counts["progress_removed"] == 2
    assert report.counts["reparented"] == 1


def test_a_gap_above_what_goes_is_closed():
    lines = [user("u1", None, "x"), node("progress", "p1", "gone"), agent("a1", "p1", said("y"))]
    out, _ = trimmed(log(*lines))
    assert texts(out, "user") == ["x"]
    assert dangling(out) == set()


def test_a_gap_stays_one():
    lines = [user("u1", None, "x"), agent("a1", "gone", said("y"))]
    assert dangling(trimmed(log(*lines))[0]) == {"gone"}


def test_rewound_turns_stay_unless_they_are_to_go():
    lines = [
        user("u1", None, "x"),
        *call(1, "u1"),
        user("u2", "u1", "again"),
        agent("a2", "u2", said("y")),
    ]
    kept, _ = trimmed(log(*lines))
    assert is_stub(content_of(kept, "r1"))
    gone, report = trimmed(log(*lines), TrimOptions(keep_last=0, drop_inactive=True))
    assert set(by_id(gone)) == {"u1", "u2", "a2"}
    assert report.counts["inactive_lines"] == 2


def test_a_log_of_a_side_chain_alone_is_trimmed_as_a_conversation():
    lines = [line | {"isSidechain": True} for line in SESSION]
    out, report = trimmed(log(*lines))
    assert is_stub(content_of(out, "r1"))
    assert (report.counts["user_texts"], report.counts["assistant_texts"]) == (1, 1)


def test_an_orphan_at_the_end_does_not_wake_a_rewound_turn():
    lines = [
        user("u1", None, "x"), user("u2", "u1", "dead"), agent("a1", "u1", said("live")),
        user("r1", "a1", [result("nowhere")]),
    ]  # fmt: skip
    out, _ = trimmed(log(*lines))
    assert texts(out, "user") == ["x"]
    assert texts(out, "assistant") == ["live"]


def compacted(n: int, old: str, preserved: list[str]) -> list[dict]:
    meta = {
        "preservedSegment": {"headUuid": preserved[0], "anchorUuid": f"s{n}", "tailUuid": preserved[-1]},
        "preservedMessages": {"anchorUuid": f"s{n}", "uuids": preserved},
    }  # fmt: skip
    return [
        node("system", f"b{n}", None, subtype="compact_boundary", logicalParentUuid=old, compactMetadata=meta),
        user(f"s{n}", f"b{n}", f"summary {n}", isCompactSummary=True),
    ]  # fmt: skip


def test_preserved_messages_of_the_first_of_two_boundaries_do_not_come_back():
    lines = [
        user("u1", None, "one"), agent("a1", "u1", said("r1")),
        *compacted(1, "a1", ["u1", "a1"]), user("u2", "s1", "two"), agent("a2", "u2", said("r2")),
        *compacted(2, "gone", ["u2", "a2"]), user("u3", "s2", "three"), agent("a3", "u3", said("r3")),
    ]  # fmt: skip
    out, report = trimmed(log(*lines))
    assert texts(out, "user") == ["summary 2", "two", "three"]
    assert b'"one"' not in out
    assert report.counts["preserved_messages"] == 2
    assert report.counts["boundaries_found"] == 1
    assert not [each for each in check_log(out) if each.severity == "error"]


def test_state_before_a_boundary_stays_and_the_rest_goes():
    title = {"type": "custom-title", "customTitle": "t", "sessionId": "s"}
    other = {"type": "something-new", "n": 1}
    lines = [user("u1", None, "one"), title, other, *compacted(1, "u1", ["u1"])[:1]]
    lines += [user("s1", "b1", "summary"), agent("a1", "s1", said("y"))]
    out, _ = trimmed(log(*lines, other))
    assert [line["type"] for line in lines_of(out) if "uuid" not in line] == [
        "custom-title", "something-new",
    ]  # fmt: skip


def test_a_boundary_quoted_in_a_result_is_none():
    quoted = json.dumps({"type": "system", "subtype": "compact_boundary", "parentUuid": None})
    out, report = trimmed(log(user("u1", None, "x"), *call(1, "u1", quoted), done("r1")))
    assert report.counts["boundaries_found"] == 0
    assert content_of(out, "r1") == quoted


def test_ids_that_repeat_are_paired_by_their_place():
    lines = [user("u1", None, "x")]
    above = "u1"
    for n, tool in enumerate(("Bash", "Read")):
        lines.append(agent(f"a{n}", above, use("REDACTED", tool, path=f"p{n}")))
        lines.append(user(f"r{n}", f"a{n}", [result("REDACTED")]))
        above = f"r{n}"
    out, report = trimmed(log(*lines, done(above)))
    assert "of Bash p0;" in content_of(out, "r0")
    assert "of Read p1;" in content_of(out, "r1")
    assert report.counts["orphans_dropped"] == 0


# Bytes


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x00"])
def test_what_looks_like_a_line_end_is_none(separator: str):
    line = json.dumps(user("u1", None, f"a{separator}b"), ensure_ascii=False).encode()
    out, _ = trimmed(log(line, agent("a1", "u1", said("y"))))
    assert out.startswith(line + b"\n")


def test_lines_that_are_no_records_pass_through():
    odd = [b"[1, 2]", b"{}", b"12", b'"text"', b"", b'{"type":"system","conte{"type":"summary"}']
    data = log(odd[0], user("u1", None, "x"), *odd[1:], agent("a1", "u1", said("y")))
    out, report = trimmed(data)
    assert all(line in out.split(b"\n") for line in odd)
    assert report.counts["unreadable_lines"] == 1


def test_a_byte_order_mark_and_a_cut_tail_stay():
    data = (
        b"\xef\xbb\xbf" + log(user("u1", None, "x"), agent("a1", "u1", said("y"))) + b'{"type":"us'
    )
    out, _ = trimmed(data)
    assert out.startswith(b"\xef\xbb\xbf{")
    assert out.endswith(b'\n{"type":"us')


def test_a_copy_of_usage_elsewhere_in_the_line_stays():
    line = agent("a1", "u1", said("y"))
    usage = json.dumps(line["message"]["usage"])
    note = b'"note": {"n": 1, "usage": ' + usage.encode() + b"}}"
    data = log(user("u1", None, "x"), json.dumps(line).encode()[:-1] + b", " + note)
    out, report = trimmed(data)
    assert note in out
    assert "usage" not in by_id(out)["a1"]["message"]
    assert report.counts["usage_removed"] == 1


@pytest.mark.parametrize("order", [1, -1])
def test_members_that_go_may_stand_anywhere(order: int):
    line = user("r1", "a1", [result("c1", "ok")], toolUseResult={"stdout": LONG}, usage={"n": 1})
    keys = [
        "toolUseResult",
        "usage",
        *(key for key in line if key not in ("toolUseResult", "usage")),
    ]
    shuffled = {key: line[key] for key in keys[::order]}
    lines = [user("u1", None, "x"), agent("a1", "u1", use("c1")), shuffled, done("r1")]
    out, _ = trimmed(log(*lines))
    assert list(by_id(out)["r1"]) == [
        key for key in shuffled if key in line and key not in keys[:2]
    ]


def test_nesting_of_200_levels_is_trimmed():
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    lines = [
        user("u1", None, "x"),
        agent("a1", "u1", use("c1", deep=deep)),
        user("r1", "a1", [result("c1")]),
    ]
    out, _ = trimmed(log(*lines, done("r1")))
    assert is_stub(content_of(out, "r1"))


def test_a_whole_file_in_an_attachment_becomes_a_stub():
    held = {"type": "file", "filename": "f.py", "content": {"file": {"content": LONG}}}
    lines = [
        user("u1", None, "x"),
        node("attachment", "t1", "u1", attachment=held),
        agent("a1", "t1", said("y")),
    ]
    out, report = trimmed(log(*lines))
    assert LONG.encode() not in out
    assert is_stub(by_id(out)["t1"]["attachment"]["content"]["file"]["content"])
    assert report.counts["attachments_stubbed"] == 1


def test_what_was_typed_while_the_agent_worked_stays():
    held = {"type": "queued_command", "prompt": LONG}
    lines = [
        user("u1", None, "x"),
        agent("a1", "u1", said("y")),
        node("attachment", "q1", "a1", attachment=held),
    ]
    out, _ = trimmed(log(*lines, agent("a2", "q1", said("z"))))
    assert by_id(out)["q1"]["attachment"] == held


def test_only_payloads_of_writing_tools_are_stubbed_on_request():
    edits = [{"old_string": "o" * 900, "new_string": "n"}]
    asked = agent(
        "a1",
        "u1",
        use("c1", "MultiEdit", file_path="f", edits=edits),
        use("c2", "Task", prompt=LONG),
    )
    lines = [
        user("u1", None, "x"),
        asked,
        user("r1", "a1", [result("c1", "ok"), result("c2", "ok")]),
        done("r1"),
    ]
    options = TrimOptions(keep_last=0, requests="writes")
    out, report = trimmed(log(*lines), options)
    first, second = blocks_of(by_id(out)["a1"])
    assert "sha256:" in first["input"]["edits"][0]["old_string"]
    assert first["input"]["edits"][0]["new_string"] == "n"
    assert second["input"]["prompt"] == LONG
    assert report.counts["inputs_stubbed"] == 1
    paper, _ = trimmed(log(*lines), TrimOptions(keep_last=0, requests="paper"))
    assert blocks_of(by_id(paper)["a1"])[1]["input"]["prompt"] != LONG


# Ids of sessions; importance; files


def test_a_session_can_be_given_another_id():
    nested = node("system", "n1", "end", data={"sessionId": "inner"})
    out, _ = trimmed(log(*SESSION, nested, {"type": "mode", "sessionId": "s"}), session_id='new"')
    assert {line["sessionId"] for line in lines_of(out)} == {'new"'}
    assert by_id(out)["n1"]["data"] == {"sessionId": "inner"}


def test_the_least_important_results_go_first():
    from recap.blocks.segment import segment
    from recap.transcript.claude_code import read
    from recap.transcript.sources import ByteSource

    lines = [user("u1", None, "x")]
    above = "u1"
    for n in (1, 2, 3):
        lines += call(n, above)
        above = f"r{n}"
    data = log(*lines, done(above))
    blocks = [b for b in segment(read(ByteSource(data)).messages).blocks if b.kind == "tools"]
    importance = dict(zip((block.id for block in blocks), (0.5, 0.1, 0.9), strict=True))
    out, report = trimmed(data, importance=importance, target=0.5)
    stubbed = [is_stub(content_of(out, uuid)) for uuid in ("r1", "r2", "r3")]
    assert stubbed == [True, True, False]
    assert 0.5 <= report.reduction < 0.7


@pytest.mark.parametrize("target", [0, 1, -1.0, 2])
def test_a_target_is_a_share(target: float):
    with pytest.raises(UsageError, match="target"):
        trimmed(log(*SESSION), target=target)


def test_more_than_95_percent_has_to_be_confirmed():
    lines = [user("u1", None, "x"), *call(1, "u1", "y" * 20_000), done("r1")]
    with pytest.raises(UsageError, match="--yes"):
        trimmed(log(*lines), TrimOptions(keep_last=0))


@pytest.mark.parametrize("data", [b"", b"\n", b"null\n", b'{"type":"summary"}\n', b"no log\n"])
def test_a_file_without_a_conversation_is_refused(data: bytes):
    with pytest.raises(InputError):
        trimmed(data)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400])
def test_a_copy_has_at_most_the_modes_of_the_session(mode: int, tmp_path: Path):
    source, out = tmp_path / "s.jsonl", tmp_path / "o.jsonl"
    source.write_bytes(log(*SESSION))
    source.chmod(mode)
    before = os.umask(0)
    try:
        trim(source, out, EAGER)
    finally:
        os.umask(before)
    assert stat.S_IMODE(out.stat().st_mode) & ~mode == 0
    assert source.read_bytes() == log(*SESSION)


def test_the_session_itself_is_never_written(tmp_path: Path):
    source = tmp_path / "s.jsonl"
    source.write_bytes(log(*SESSION))
    (tmp_path / "link").symlink_to(source)
    for out in (source, tmp_path / "link"):
        with pytest.raises(UsageError, match="itself"):
            trim(source, out, EAGER)
    assert source.read_bytes() == log(*SESSION)


def test_a_refused_trim_leaves_nothing_behind(tmp_path: Path):
    source, out = tmp_path / "s.jsonl", tmp_path / "o.jsonl"
    source.write_bytes(log(user("u1", None, "x"), *call(1, "u1", "y" * 20_000), done("r1")))
    out.write_bytes(b"before")
    with pytest.raises(UsageError):
        trim(source, out, TrimOptions(keep_last=0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.jsonl", "s.jsonl"]
    assert out.read_bytes() == b"before"


@pytest.mark.parametrize("out", [".", "missing/o.jsonl"])
def test_no_file_can_be_written_there(out: str, tmp_path: Path):
    source = tmp_path / "s.jsonl"
    source.write_bytes(log(*SESSION))
    with pytest.raises(UsageError):
        trim(source, tmp_path / out, EAGER)


def test_agents_that_only_copies_name_are_reported():
    line = user("r1", "a1", [result("c1", "ok")], toolUseResult={"agentId": "ag1", "x": LONG})
    other = user("u2", "r1", "y", toolUseResult=["agentId", LONG])
    _, report = trimmed(
        log(user("u1", None, "x"), agent("a1", "u1", use("c1")), line, other, done("u2"))
    )
    assert report.agents == ("ag1",)
    assert report.counts["tool_use_results_removed"] == 2


def test_odd_fields_are_odd_fields_and_no_lost_lines():
    odd = [
        user("u1", None, "x", version=7, isMeta="no"),
        agent("a1", "u1", said("y"), {"type": 5}, {"type": "text", "text": 5}, requestId=1.0),
        user("u2", "a1", 12),
        user("u3", "u2", [{"type": "text", "text": "z", "is_error": "maybe"}]),
        agent("a3", "u3", said("lone \ud83d")),
    ]
    out, report = trimmed(log(*odd))
    assert list(by_id(out)) == ["u1", "a1", "u2", "u3", "a3"]
    assert texts(out, "assistant")[-1] == "lone \ud83d"
    assert report.counts["unreadable_lines"] == 0


@pytest.mark.parametrize("attachment", [{"type": "queued_command"}, ["queued_command"], None])
def test_an_attachment_that_holds_nothing_typed_only_links(attachment: object):
    lines = [user("u1", None, "x"), node("attachment", "q1", "u1", attachment=attachment)]
    out, _ = trimmed(log(*lines, agent("a1", "q1", said("y"))))
    assert list(by_id(out)) == ["u1", "q1", "a1"]


def test_thinking_that_a_compaction_names_stays():
    lines = [user("u1", None, "x"), agent("t1", "u1", thought()), *compacted(1, "t1", ["t1"])]
    out, _ = trimmed(log(*lines, user("u2", "s1", "z"), agent("a2", "u2", said("y"))))
    assert "t1" in by_id(out)


def test_all_of_a_session_can_change_its_id_where_lines_are_spelled_oddly():
    spelled = json.dumps(SESSION[1], separators=(" , ", " : ")).encode()
    data = log(SESSION[0], spelled, *SESSION[2:])
    out, _ = trimmed(data, session_id="new")
    assert {line["sessionId"] for line in lines_of(out)} == {"new"}
    assert "usage" not in by_id(out)["a1"]["message"]
