from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recap.transcript.formats import open_log, read_bytes
from recap.transcript.model import Message, Part, Slice, Transcript
from tests.transcript.logs import (
    agent,
    answer,
    authors,
    boundary,
    codes,
    log,
    node,
    only,
    outline,
    read,
    said,
    summary,
    use,
    user,
    words,
)

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
}
COMMAND = (
    "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
    "<command-args>{}</command-args>"
)


def parts(transcript: Transcript) -> list[Part]:
    return [part for message in transcript.messages for part in message.parts]


def raws(transcript: Transcript) -> list[bytes]:
    return [part.raw.dump() for part in parts(transcript)]


# Parts and their bytes


def test_every_kind_of_block_becomes_a_part_with_its_exact_bytes():
    blocks = [
        b'{"type":"thinking", "thinking":"hm", "signature":"sig=="}',
        b'{"type":"redacted_thinking","data":"xyz"}',
        b'{ "type": "text", "text": "caf\\u00e9 \\/" }',
        b'{"type":"tool_use","id":"c1","name":"Read","input":{"n":1.0,"big":12345678901234567890}}',
        b'{"type":"from_the_future","x":-0.0}',
    ]
    line = b'{"type":"assistant","uuid":"a","parentUuid":null,"message":{"content":[%s]}}\n'
    transcript = read(line % b" , ".join(blocks))
    assert raws(transcript) == blocks
    assert [part.kind for part in parts(transcript)] == [
        "thinking", "thinking", "text", "call", "other",
    ]  # fmt: skip
    assert {part.dialect for part in parts(transcript)} == {"anthropic"}


def test_string_content_is_one_text_that_holds_the_string():
    message = only(read(user("u1", None, 'a "quoted" text')))
    (part,) = message.parts
    assert (part.raw.dump(), part.path) == (rb'"a \"quoted\" text"', ())
    assert part.text() == 'a "quoted" text'


def test_a_message_is_no_unit_that_could_go_out_whole():
    message = only(read(user("u1", None, [said("a"), said("b"), IMAGE])))
    assert (message.envelope.raw, message.envelope.size) == (None, 3)
    assert (message.uid, message.line) == ("u1", 1)


def test_results_become_a_message_of_their_own_beside_the_text_of_their_line():
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1")),
        answer("r1", "a1", "c1", said("also do this")),
    )
    assert outline(transcript) == [("user", 1), ("assistant", 2), ("tool", 3), ("user", 3)]
    results, text = transcript.messages[2:]
    assert results.envelope is text.envelope
    assert results.envelope.size == 2


def test_an_image_only_line_is_a_message():
    (part,) = only(read(user("u1", None, [IMAGE], imagePasteIds=[1]))).parts
    assert (part.kind, part.author) == ("image", "human")


def test_the_copy_of_a_result_for_the_screen_costs_nothing():
    lines = [user("u1", None, "q"), agent("a1", "u1", use("c1")), answer("r1", "a1", "c1")]
    plain = parts(read(*lines))
    lines[-1]["toolUseResult"] = {"stdout": "x" * 1000, "message": {"content": "decoy"}}
    assert [part.cost_chars for part in parts(read(*lines))] == [p.cost_chars for p in plain]


def test_a_block_is_found_behind_equal_bytes():
    line = {"decoy": {"role": "user", "content": "text"}, **user("u1", None, "text")}
    assert raws(read(line)) == [b'"text"']


# One API message


def test_lines_of_one_message_id_become_one_message_at_the_place_of_the_first():
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", {"type": "thinking", "thinking": "hm", "signature": "s"}, id="m"),
        agent("a2", "a1", said("text"), id="m"),
        agent("a3", "a2", use("c1"), id="m"),
        answer("r1", "a3", "c1"),
        agent("a4", "r1", use("c2"), id="m"),
        answer("r2", "a4", "c2"),
    )
    assert outline(transcript) == [("user", 1), ("assistant", 2), ("tool", 5), ("tool", 7)]
    merged = transcript.messages[1]
    assert [part.kind for part in merged.parts] == ["thinking", "text", "call", "call"]
    assert (merged.uid, merged.model, merged.envelope.size) == ("a1", "m1", 4)


def test_lines_without_message_id_stay_apart():
    lines = [user("u1", None, "q"), agent("a1", "u1", said("a")), agent("a2", "a1", said("b"))]
    for line in lines[1:]:
        del line["message"]["id"]
    assert len(read(*lines).messages) == 3


def test_an_id_repeated_in_several_turns_joins_neighbours_only():
    transcript = read(
        user("u1", None, "first"),
        agent("a1", "u1", said("a"), id="REDACTED"),
        node("progress", "p1", "a1"),
        agent("a2", "p1", use("c1"), id="REDACTED"),
        answer("r1", "a2", "c1"),
        agent("a3", "r1", said("b"), id="REDACTED"),
        user("u2", "a3", "second"),
        agent("a4", "u2", said("c"), id="REDACTED"),
    )
    assert outline(transcript) == [
        ("user", 1), ("assistant", 2), ("tool", 5), ("assistant", 6), ("user", 7), ("assistant", 8),
    ]  # fmt: skip


def test_a_message_a_compaction_cut_in_two_is_two():
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", said("replaced"), id="m"),
        agent("a2", "a1", said("kept"), id="m"),
        boundary("b1", "a2", preservedMessages={"anchorUuid": "s1", "uuids": ["a2"]}),
        summary("s1", "b1"),
        user("u2", "s1", "next"),
    )
    assert [m.is_active for m in transcript.messages] == [False, False, True, True, True]


# Who wrote it


def test_a_line_the_client_wrote_is_no_persons():
    transcript = read(
        user("u1", None, "question"),
        user("u2", "u1", [said("expanded prompt"), IMAGE], isMeta=True),
        summary("u3", "u2", "This session is being continued from a previous conversation"),
    )
    assert authors(transcript) == ["human", "injected", "injected", "summary"]


def test_a_summary_is_known_by_its_flag():
    assert authors(read(summary("u1", "x", "words of any kind"))) == ["summary"]


@pytest.mark.parametrize(
    ("text", "author"),
    [
        (COMMAND.format("the parser"), "command"),
        (COMMAND.format(" "), "injected"),
        ("<local-command-stdout>x</local-command-stdout>", "local"),
        ("<task-notification>x</task-notification>", "notification"),
        ("[Request interrupted by user]", "marker"),
        ("plain words", "human"),
    ],
)
def test_texts_have_the_author_their_beginning_shows(text, author):
    (part,) = only(read(user("u1", None, text))).parts
    assert (part.author, part.text()) == (author, text)


def test_text_beside_a_result_is_steering():
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1")),
        answer("r1", "a1", "c1", said("no, the other file")),
    )
    assert authors(transcript) == ["human", "agent", "tool", "steering"]


@pytest.mark.parametrize("prompt", ["stop at once", [said("stop at once")]])
@pytest.mark.parametrize("place", ["on the walk", "beside it"])
def test_a_queued_command_is_steering_wherever_its_line_hangs(prompt, place):
    queued = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt"}
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1")),
        answer("r1", "a1", "c1"),
        node("attachment", "q1", "r1", attachment=queued),
        agent("a2", "q1" if place == "on the walk" else "r1", said("reply")),
    )
    assert words(transcript) == ["question", "result of c1", "stop at once", "reply"]
    assert authors(transcript)[3] == "steering"
    assert outline(transcript)[3] == ("user", 4)


def test_a_queued_image_is_kept():
    queued = {"type": "queued_command", "prompt": [said("like this"), IMAGE]}
    transcript = read(user("u1", None, "q"), node("attachment", "q1", "u1", attachment=queued))
    assert [part.kind for part in parts(transcript)] == ["text", "text", "image"]


def test_a_queued_notification_is_the_machines():
    queued = {"type": "queued_command", "prompt": "<task-notification>x</task-notification>"}
    transcript = read(user("u1", None, "q"), node("attachment", "q1", "u1", attachment=queued))
    assert authors(transcript) == ["human", "notification"]


@pytest.mark.parametrize("prompt", [None, 7, [7], [{"type": "text"}], {"queued_command": 1}])
def test_an_odd_queued_command_holds_nothing(prompt):
    queued = {"type": "queued_command", "prompt": prompt}
    transcript = read(user("u1", None, "q"), node("attachment", "q1", "u1", attachment=queued))
    assert words(transcript) == ["q"]


def test_other_attachments_are_counted_and_left_out():
    attached = {"type": "hook_additional_context", "content": ["queued_command"]}
    transcript = read(user("u1", None, "q"), node("attachment", "h1", "u1", attachment=attached))
    assert words(transcript) == ["q"]
    assert transcript.counts["attachment_lines"] == 1


def test_api_errors_are_left_out_and_counted():
    transcript = read(
        user("u1", None, "question"),
        agent("e1", "u1", said("API Error: overloaded"), isApiErrorMessage=True),
        agent("a1", "e1", said("reply")),
    )
    assert words(transcript) == ["question", "reply"]
    assert transcript.counts["api_errors"] == 1


def test_what_the_client_said_for_the_agent_has_no_model():
    line = agent("a1", "u1", said("No response requested."))
    line["message"]["model"] = "<synthetic>"
    transcript = read(user("u1", None, "question"), line)
    assert [message.model for message in transcript.messages] == ["", ""]


# Side chains


def side(n: int) -> list[dict[str, Any]]:
    more = {"isSidechain": True, "agentId": "7", "sessionId": "parent"}
    return [
        user(f"x{n}", None, f"task {n}", **more),
        agent(f"y{n}", f"x{n}", said(f"side reply {n}"), **more),
    ]


def test_side_chains_are_left_out_and_counted():
    """Report B135."""
    first, second = side(1), side(2)
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1")),
        first[0], second[0], first[1], second[1],
        answer("r1", "a1", "c1"),
        agent("a2", "r1", said("reply")),
    )  # fmt: skip
    assert words(transcript) == ["question", "result of c1", "reply"]
    assert codes(transcript) == ["sidechain"]
    assert (transcript.counts["sidechain_lines"], transcript.counts["sidechains"]) == (4, 2)


def test_an_agents_own_file_is_a_session_that_is_not_its_parents():
    """Report B135."""
    transcript = read(*side(1), {"type": "mode", "sessionId": "parent"})
    assert words(transcript) == ["task 1", "side reply 1"]
    assert transcript.session_id == "parent/7"
    assert not transcript.findings


# Odd lines


def test_a_null_line_is_an_error_and_other_odd_lines_are_notes():
    transcript = read(
        user("u1", None, "question"), b"null\n", b"[1]\n", b"7\n", b"{}\n", b"\n", b'"x"\n',
        agent("a1", "u1", said("reply")),
    )  # fmt: skip
    assert words(transcript) == ["question", "reply"]
    found = [(finding.code, finding.line, finding.severity) for finding in transcript.findings]
    assert found == [
        ("null-line", 2, "error"), ("odd-line", 3, "note"), ("odd-line", 4, "note"),
        ("odd-line", 7, "note"),
    ]  # fmt: skip
    assert transcript.counts["odd_lines"] == 4


@pytest.mark.parametrize("message", [None, 7, "text", []])
def test_a_line_without_message_only_links(message):
    odd = node("user", "u2", "u1", message=message)
    transcript = read(user("u1", None, "question"), odd, agent("a1", "u2", said("reply")))
    assert words(transcript) == ["question", "reply"]
    assert codes(transcript) == ["no-message"]


@pytest.mark.parametrize("content", [None, 7, {}, {"type": "text"}])
def test_a_message_without_content_holds_nothing(content):
    transcript = read(user("u1", None, content), agent("a1", "u1", said("reply")))
    assert words(transcript) == ["reply"]
    assert codes(transcript) == ["no-content"]


def test_null_blocks_are_left_out():
    transcript = read(user("u1", None, [None, said("question")]))
    assert words(transcript) == ["question"]
    assert codes(transcript) == ["malformed-block"]


def test_a_bare_string_among_blocks_was_never_sent():
    transcript = read(user("u1", None, ["bare", said("question")]))
    assert words(transcript) == ["question"]
    assert codes(transcript) == ["bare-string"]


@pytest.mark.parametrize("value", [None, 7, 1.5, True, [], {"a": 1}])
@pytest.mark.parametrize("key", ["uuid", "parentUuid", "sessionId", "isSidechain", "type"])
def test_fields_of_any_kind_are_survived(key, value):
    transcript = read(user("u1", None, "question"), {**agent("a1", "u1", said("x")), key: value})
    assert words(transcript)[0] in ("question", "x")


@pytest.mark.parametrize("key", ["id", "model", "role", "content"])
@pytest.mark.parametrize("value", [None, 7, [], {"a": 1}])
def test_message_fields_of_any_kind_are_survived(key, value):
    line = agent("a1", "u1", said("x"))
    line["message"][key] = value
    assert words(read(user("u1", None, "question"), line))[0] == "question"


@pytest.mark.parametrize(
    "metadata", [None, 7, [], {"preservedSegment": 7}, {"preservedMessages": []}]
)
def test_boundaries_with_odd_metadata_are_boundaries(metadata):
    odd = {**boundary("b1", "u1"), "compactMetadata": metadata}
    transcript = read(user("u1", None, "old"), odd, summary("s1", "b1", "new"))
    assert words(transcript, active=True) == ["new"]


def test_a_role_that_is_missing_is_the_lines_type():
    line = user("u1", None, "question")
    del line["message"]["role"]
    assert outline(read(line)) == [("user", 1)]


def test_what_json_forbids_is_kept_as_it_is_and_marked():
    """Report B050."""
    bad = b'{"type":"text","text":"half \\ud83d"}'
    good = b'{"type":"text","text":"whole \\ud83d\\ude00"}'
    line = b'{"type":"user","uuid":"u","parentUuid":null,"message":{"content":[%s,%s]}}\n'
    transcript = read(line % (bad, good))
    assert raws(transcript) == [bad, good]
    assert [part.raw.is_clean for part in parts(transcript)] == [False, True]
    assert words(transcript) == ["half \ud83d", "whole \U0001f600"]
    assert codes(transcript) == ["not-strict-json"]


@pytest.mark.parametrize("odd", [b'"caf\xe9"', b'"a\x0bb"', b'"\\udead"'])
def test_odd_strings_are_read_and_marked(odd):
    line = b'{"type":"user","uuid":"u","parentUuid":null,"message":{"content":%s}}\n' % odd
    (part,) = only(read(line)).parts
    assert part.raw.dump() == odd
    assert not part.raw.is_clean
    assert part.cost_chars == len(part.text())


def test_numbers_json_lacks_are_read_and_marked():
    block = b'{"type":"tool_use","id":"c","name":"n","input":{"x":NaN}}'
    line = b'{"type":"assistant","uuid":"a","parentUuid":null,"message":{"content":[%s]}}\n'
    (part,) = only(read(line % block)).parts
    assert (part.raw.dump(), part.raw.is_clean) == (block, False)


@pytest.mark.parametrize("depth", [200, 450, 5_000, 100_000])
def test_deep_nesting_is_read_or_reported(depth):
    value = b"[" * depth + b"]" * depth
    block = b'{"type":"tool_use","id":"c","name":"n","input":{"x":%s}}' % value
    line = b'{"type":"assistant","uuid":"a","parentUuid":"u1","message":{"content":[%s]}}\n'
    transcript = read(user("u1", None, "question"), line % block)
    assert words(transcript) == ["question"]
    if depth == 200:
        assert raws(transcript)[1] == block
    else:
        assert codes(transcript) in (["too-deep"], ["unreadable-message"])


def test_a_number_python_does_not_read_loses_nothing():
    block = b'{"type":"tool_use","id":"c","name":"n","input":{"x":%s}}' % (b"9" * 5000)
    line = b'{"type":"assistant","uuid":"a","parentUuid":"u1","message":{"content":[%s]}}\n'
    transcript = read(
        user("u1", None, "question"), line % block, agent("a2", "a", said("reply")),
        node("attachment", "q", "a2", attachment={"type": "queued_command", "x": 1}),
        b'{"type":"attachment","uuid":"q","attachment":{"type":"queued_command","x":%s}}\n'
        % (b"9" * 5000),
    )  # fmt: skip
    assert words(transcript) == ["question", "reply"]
    assert [(finding.code, finding.line) for finding in transcript.findings] == [
        ("duplicate-uuid", 4)
    ]
    calls = [part.name for m in transcript.messages for part in m.parts if part.kind == "call"]
    assert calls == ["n"]


def test_depth_where_nothing_is_read_does_not_matter():
    line = {**user("u1", None, "question"), "toolUseResult": "DEEP"}
    data = log(line).replace(b'"DEEP"', b"[" * 450 + b"]" * 450)
    assert words(read_bytes(data, format="claude-code")) == ["question"]


def test_carriage_returns_and_a_byte_order_mark_change_no_part():
    data = log(user("u1", None, "question"), agent("a1", "u1", said("reply")))
    plain = read_bytes(data)
    dressed = read_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert raws(dressed) == raws(plain)
    assert not dressed.findings


def test_a_record_cut_by_another_writer_is_lost_alone():
    """Report B044."""
    lines = [user("u1", None, "question"), agent("a1", "u1", said("reply " * 9))]
    late = log(user("u2", "a1", "next")).replace(b'{"parentUuid": ', b'{"parentUuid":')
    transcript = read(*lines, log(agent("x", "a1", said("lost")))[:150], late)
    assert words(transcript) == ["question", "reply " * 9, "next"]
    assert codes(transcript) == ["cut-line"]


def test_counts_and_sizes_of_the_log_are_kept():
    data = log(user("u1", None, "q"), {"type": "mode"}, node("progress", "p", "u1"))
    transcript = read_bytes(data, format="claude-code")
    assert (transcript.lines, transcript.bytes_read) == (3, len(data))
    assert transcript.counts == {"other_lines": 1, "progress_lines": 1, "user_lines": 1}
    assert (transcript.format, transcript.dialect) == ("claude-code", "anthropic")


def test_the_newest_line_names_the_session():
    resumed = {**agent("a1", "u1", said("reply")), "sessionId": "s2"}
    assert read(user("u1", None, "question"), resumed).session_id == "s2"
    assert read(resumed, {"type": "mode"}).session_id == "s2"


def test_findings_hold_no_words_of_the_conversation():
    secret = "SECRETWORD"
    transcript = read(
        user("u1", "ghost", [None, said(secret)]),
        agent("a1", "u1", said(secret)), agent("a1", "u1", said(secret)),
        log(user("u2", "a1", secret))[:-9] + b"\n", b'"%s"\n' % secret.encode(),
    )  # fmt: skip
    assert len(transcript.findings) >= 4
    assert secret not in repr(transcript.findings)


# The export of claude.ai


def test_an_export_is_read_by_the_same_rules():
    lines = [user("u1", None, "question"), agent("a1", "u1", use("c1")), answer("r1", "a1", "c1")]
    for line in lines:
        del line["uuid"], line["parentUuid"]
    data = json.dumps({"loglines": [*lines, None, "x"]}, indent=2).encode()
    transcript = read_bytes(data)
    assert (transcript.format, transcript.lines) == ("claude-web", 5)
    assert words(transcript) == ["question", "result of c1"]
    assert all(raw in data for raw in raws(transcript))
    assert [finding.line for finding in transcript.findings] == [4, 5]


def test_an_element_of_an_export_that_nests_too_deeply_is_reported():
    lines = log(user("u1", None, "question")).strip()
    deep = b'{"type":"user","uuid":"u2","parentUuid":"u1","message":{"content":%s}}'
    data = b'{"loglines": [%s, %s]}' % (lines, deep % (b"[" * 450 + b"]" * 450))
    transcript = read_bytes(data)
    assert words(transcript) == ["question"]
    assert [(finding.code, finding.line) for finding in transcript.findings] == [
        ("unreadable-message", 2)
    ]


def test_an_export_with_what_json_forbids_is_read():
    lines = [user("u1", None, "half \ud83d"), agent("a1", "u1", said("reply"))]
    transcript = read_bytes(json.dumps({"loglines": lines}).encode())
    assert words(transcript) == ["half \ud83d", "reply"]
    assert [part.raw.is_clean for part in parts(transcript)] == [False, True]


# Growing files


LOG = log(
    user("u1", None, "first question"),
    agent("a1", "u1", said("thinking aloud"), id="m1"),
    agent("a2", "a1", use("c1", path="a.py"), id="m1"),
    answer("r1", "a2", "c1"),
    {"type": "mode", "sessionId": "s1"},
    agent("a3", "r1", said("first reply")),
    user("u2", "a3", "second question"),
    node("progress", "p1", "u2"),
    agent("a4", "p1", said("caf\u00e9 \u2028")),
)


@given(st.integers(0, len(LOG)))
def test_a_cut_log_gives_the_beginning_of_the_conversation(cut):
    whole, early = read_bytes(LOG), read_bytes(LOG[:cut], format="claude-code")
    found, expected = parts(early), parts(whole)
    assert [part.digest for part in found] == [part.digest for part in expected[: len(found)]]
    assert all(raw in LOG[:cut] for raw in raws(early))
    assert outline(early) == outline(whole)[: len(early.messages)]
    assert set(codes(early)) <= {"unfinished-line"}


def test_a_missing_last_line_feed_loses_nothing():
    assert raws(read_bytes(LOG[:-1])) == raws(read_bytes(LOG))


# Real sessions


FILES = {
    "ah-fork-fixture": (10, 10),
    "ah-rejection-fixture": (12, 12),
    "ccv-agentfile": (2, 2),
    "ccv-sidechain-405lines": (23, 23),
    "ccv-v1098-small": (21, 21),
    "entire-30e8-5turns": (38, 38),
    "entire-48b4-9turns": (106, 106),
    "entire-61a4-19turns": (97, 97),
    "entire-7d66-badline": (246, 246),
    "entire-89e8-microcompact": (199, 199),
    "entire-94de-15turns": (243, 243),
    "entire-9878-compact-subagents": (226, 103),
    "entire-9b38-small": (12, 12),
    "entire-b0be-tiny": (8, 8),
    "entire-cd95-3compact-48turns": (486, 12),
    "entire-ec38-orphan-open": (89, 89),
    "entire-f810-nouserturn": (55, 55),
    "entire-fc99-compact-image": (293, 50),
    "lcm-v21153-attachments": (147, 147),
    "lcm-v21220-filedelta": (71, 71),
    "packmind-image": (58, 58),
    "swarm-9turns-queue": (75, 75),
}
"""Messages of each session, and how many of them are live."""


def session(corpus: Path, name: str) -> Transcript:
    return open_log(corpus / "sessions" / "claude-code" / f"{name}.jsonl")


@pytest.mark.corpus
def test_no_file_of_the_corpus_is_missing_here(corpus):
    names = {path.stem for path in (corpus / "sessions" / "claude-code").iterdir()}
    assert names == set(FILES)


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_a_real_session_is_read_whole_and_exactly(corpus, name):
    data = (corpus / "sessions" / "claude-code" / f"{name}.jsonl").read_bytes()
    transcript = session(corpus, name)
    messages = transcript.messages
    assert (len(messages), sum(message.is_active for message in messages)) == FILES[name]
    assert transcript.lines == len(data.removesuffix(b"\n").split(b"\n"))
    assert all(raw in data for raw in raws(transcript))
    assert all(part.raw.is_clean for part in parts(transcript))
    lines = [message.line for message in messages if message.role != "user"]
    assert Counter(lines).most_common(1)[0][1] == 1


def walked(data: bytes) -> set[int]:
    """Return the lines of the conversation from the last leaf up to the root or a boundary."""
    nodes: dict[str, tuple[int, dict[str, Any]]] = {}
    last = ""
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if "uuid" in record and not record.get("isSidechain"):
            nodes[record["uuid"]] = number, record
            last = record["uuid"] if record["type"] in ("user", "assistant") else last
    found = set()
    while last in nodes:
        number, record = nodes[last]
        if record["type"] in ("user", "assistant"):
            found.add(number)
        last = record["parentUuid"]
    return found


@pytest.mark.corpus
@pytest.mark.parametrize("name", [name for name in FILES if name != "ccv-agentfile"])
def test_every_line_of_the_plain_walk_is_in_the_live_context(corpus, name):
    data = (corpus / "sessions" / "claude-code" / f"{name}.jsonl").read_bytes()
    live = set()
    for message in session(corpus, name).messages:
        for part in message.parts if message.is_active else ():
            assert isinstance(part.raw, Slice)
            live.add(data.count(b"\n", 0, part.raw.start) + 1)
    assert walked(data) <= live
    assert walked(data)


@pytest.mark.corpus
@pytest.mark.parametrize("name", FILES)
def test_every_api_message_of_a_real_session_is_one_message(corpus, name):
    data = (corpus / "sessions" / "claude-code" / f"{name}.jsonl").read_bytes()
    ids = {}
    for line in data.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("type") == "assistant":
            ids[record["uuid"]] = record["message"]["id"]
    found = [ids[m.uid] for m in session(corpus, name).messages if m.role == "assistant"]
    assert len(found) == len(set(found))


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "boundaries"),
    [
        ("entire-fc99-compact-image", [576]),
        ("entire-9878-compact-subagents", [232]),
        ("entire-cd95-3compact-48turns", [230, 517, 871]),
    ],
)
def test_native_compactions_split_a_real_session_at_their_lines(corpus, name, boundaries):
    transcript = session(corpus, name)
    assert transcript.counts["compactions"] == len(boundaries)
    assert max(m.line for m in transcript.messages if not m.is_active) < boundaries[-1]
    live = [message for message in transcript.messages if message.is_active]
    assert (live[0].line, live[0].parts[0].author) == (boundaries[-1] + 1, "summary")
    summaries = [m.line for m in transcript.messages if m.parts[0].author == "summary"]
    assert summaries == [line + 1 for line in boundaries]


@pytest.mark.corpus
def test_a_real_microcompaction_starts_no_context(corpus):
    transcript = session(corpus, "entire-89e8-microcompact")
    assert transcript.counts["microcompactions"] == 1
    assert all(message.is_active for message in transcript.messages)


@pytest.mark.corpus
def test_the_real_bad_line_is_read_in_two(corpus):
    transcript = session(corpus, "entire-7d66-badline")
    assert [(f.code, f.line) for f in transcript.findings if f.code == "glued-lines"] == [
        ("glued-lines", 172)
    ]
    assert transcript.counts["bad_lines"] == 1


@pytest.mark.corpus
def test_real_side_chains_are_left_out(corpus):
    transcript = session(corpus, "ccv-sidechain-405lines")
    assert (transcript.counts["sidechain_lines"], transcript.counts["sidechains"]) == (405, 5)


@pytest.mark.corpus
def test_a_real_agent_file_is_read_as_its_own_session(corpus):
    transcript = session(corpus, "ccv-agentfile")
    assert outline(transcript) == [("user", 1), ("assistant", 2)]


@pytest.mark.corpus
def test_the_real_fork_keeps_the_last_branch(corpus):
    transcript = session(corpus, "ah-fork-fixture")
    (finding,) = transcript.findings
    assert (finding.code, finding.line) == ("rewound", 3)
    assert [m.line for m in transcript.messages] == [1, 2, 7, 8, 9, 10, 11, 12, 13, 14]


@pytest.mark.corpus
def test_real_steering_is_found_beside_results(corpus):
    transcript = session(corpus, "entire-fc99-compact-image")
    found = [
        message.line
        for message in transcript.messages
        for part in message.parts
        if part.kind == "text" and part.author == "steering"
    ]
    assert found == [206, 566]


@pytest.mark.corpus
def test_a_real_session_may_hold_no_human_turn(corpus):
    assert "human" not in authors(session(corpus, "entire-f810-nouserturn"))


@pytest.mark.corpus
def test_a_real_export_is_read(corpus):
    path = corpus / "sessions" / "claude-web" / "simonw-sample_session.json"
    transcript = open_log(path)
    data = path.read_bytes()
    assert (transcript.format, len(transcript.messages), transcript.lines) == ("claude-web", 33, 33)
    assert all(raw in data for raw in raws(transcript))
    assert not transcript.findings


@pytest.mark.corpus
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_real_session_cut_anywhere_is_read(corpus, data):
    names = ["entire-48b4-9turns", "ah-fork-fixture", "entire-9b38-small", "packmind-image"]
    path = corpus / "sessions" / "claude-code" / f"{data.draw(st.sampled_from(names))}.jsonl"
    content = path.read_bytes()
    cut = content[: data.draw(st.integers(0, len(content)))]
    transcript = read_bytes(cut, format="claude-code")
    assert all(raw in cut for raw in raws(transcript))
    ended = cut.count(b"\n")
    assert all(message.line <= ended + 1 for message in transcript.messages)
    codes_of_cuts = {"unfinished-line", "rewound"}
    assert set(codes(transcript)) <= codes_of_cuts | set(codes(read_bytes(content)))
    later = {part.raw.dump() for part in parts(read_bytes(content))}
    early = [raw for raw in raws(transcript) if raw not in later]
    assert not early or "rewound" in codes(read_bytes(content))


def test_messages_compare_by_value_across_two_reads():
    def shape(message: Message) -> tuple[object, ...]:
        return message.role, message.line, [part.digest for part in message.parts]

    first, second = read_bytes(LOG), read_bytes(LOG)
    assert [shape(m) for m in first.messages] == [shape(m) for m in second.messages]
