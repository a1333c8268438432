"""Lines that are spelled, ordered or damaged in ways no client has: first sight is wrong, proof not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recap.cmv.contents import SCAN
from recap.cmv.index import Index
from recap.cmv.options import TrimOptions
from recap.cmv.plan import Plan
from recap.cmv.writing import Writer
from recap.errors import InvalidContextError
from recap.transcript.sources import ByteSource
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
from tests.cmv.raw_session import lines_of, requests, texts

ASK = user("u", None, "do")


def packed(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode()


def stubs_in(data: bytes) -> int:
    return data.count(b"[Trimmed: ")


def content_of(data: bytes, uuid: str) -> Any:
    return next(line["message"]["content"] for line in lines_of(data) if line.get("uuid") == uuid)


def test_a_result_whose_type_stands_last_is_stubbed():
    block = {"content": LONG, "tool_use_id": "c1", "type": "tool_result"}
    lines = call(1, "u")
    lines[1]["message"]["content"] = [block]
    out, report = trimmed(log(ASK, *lines, done("r1")))
    assert report.counts["results_stubbed"] == stubs_in(out) == 1


def test_a_copy_that_looks_like_the_result_is_no_place_for_a_stub():
    copy = {"type": "tool_result", "content": "y" * len(LONG)}
    lines = call(1, "u")
    line = {"toolUseResult": copy, **lines[1]}
    out, report = trimmed(log(ASK, lines[0], line, done("r1")))
    assert content_of(out, "r1")[0]["content"].startswith("[Trimmed: ~2000 chars")
    assert report.counts["tool_use_results_removed"] == 1
    assert b"yyy" not in out


@pytest.mark.parametrize("content", ['"[Trimmed: ', "[1, {"])
def test_what_only_looks_like_a_result_is_scanned(content: str):
    line = call(1, "u", [said(LONG)])[1]
    line["message"]["content"][0] = {
        "type": "tool_result", "note": {"content": [content]},
        **result("c1", [said(LONG)]),
    }  # fmt: skip
    out, report = trimmed(log(ASK, call(1, "u")[0], line, done("r1")))
    assert report.counts["results_stubbed"] == 1
    assert content_of(out, "r1")[0]["note"] == {"content": [content]}


def test_both_spellings_may_stand_in_one_log():
    lines = [each for n in range(1, 5) for each in call(n, f"r{n - 1}" if n > 1 else "u")]
    spelled = [packed(line) if n % 2 else line for n, line in enumerate(lines)]
    out, report = trimmed(log(ASK, *spelled, done("r4")))
    assert report.counts["results_stubbed"] == 4
    assert report.counts["usage_removed"] == 5
    assert b'"usage"' not in out


def test_usage_outside_the_message_goes_too():
    out, report = trimmed(log(ASK, agent("a", "u", said("hi"), usage={"input_tokens": 1})))
    assert b'"usage"' not in out
    assert report.counts["usage_removed"] == 2


def test_a_parent_that_is_spelled_with_an_escape_is_replaced():
    thinking = agent("t", "u", thought(), id="m")
    line = json.dumps(agent("a", "t", said("hi"), id="m")).replace(
        '"parentUuid": "t"', '"parentUuid": "\\u0074"'
    )
    out, report = trimmed(log(ASK, thinking, line.encode()))
    assert report.counts["reparented"] == 1
    assert lines_of(out)[-1]["parentUuid"] == "u"


def test_a_parent_that_is_named_twice_is_replaced_where_it_counts():
    thinking = agent("t", "u", thought(), id="m")
    line = json.dumps({"odd": {"parentUuid": "t"}, **agent("a", "t", said("hi"), id="m")})
    out, _ = trimmed(log(ASK, thinking, line.encode()))
    assert lines_of(out)[-1]["parentUuid"] == "u"
    assert lines_of(out)[-1]["odd"] == {"parentUuid": "t"}


def test_the_id_of_a_session_is_replaced_where_it_counts():
    titled = {"type": "custom-title", "note": {"sessionId": "s"}, "sessionId": "s"}
    cut = b'{"type":"ai-title","sessionId":"s","note":{"sessionId":"s"'
    out, _ = trimmed(log(ASK, done("u"), titled, cut), session_id="new")
    assert lines_of(out)[2] == titled | {"sessionId": "new"}
    assert out.splitlines()[-1] == cut


def test_more_calls_than_are_held_find_their_results():
    calls = [agent(f"a{n}", f"a{n - 1}" if n else "u", use(f"c{n}", path=f"p{n}"), id="m")
             for n in range(150)]  # fmt: skip
    results = [user(f"r{n}", f"a{n}", [result(f"c{n}")]) for n in range(150)]
    out, report = trimmed(log(ASK, *calls, *results, done("r149")))
    assert report.counts["results_stubbed"] == 150
    assert all(f"of Bash p{n};".encode() in out for n in range(150))


def test_more_lines_go_than_names_are_held_of():
    lines = [ASK]
    for n in range(150):
        above = lines[-1]["uuid"]
        lines += [agent(f"t{n}", above, thought()), user(f"u{n}", f"t{n}", f"asked {n}")]
    out, report = trimmed(log(*lines, done("u149")))
    assert report.counts["reparented"] == 150
    assert [line["parentUuid"] for line in lines_of(out)[1:3]] == ["u", "u0"]


@pytest.mark.parametrize("damage", ["fields", "json", "links", "usage", "text", "copy", "blocks"])
def test_a_line_that_is_not_what_it_has_to_be_is_never_written(
    damage: str, monkeypatch: pytest.MonkeyPatch
):
    lines = call(1, "u")
    lines[1]["toolUseResult"] = {"stdout": LONG}
    data = log(ASK, *lines, agent("b", "r1", said("hi")), done("b"))
    plan = Plan(Index(ByteSource(data), EAGER).read())
    plan.secure()
    writer = Writer(plan, None)
    made = {
        "fields": b"[]", "json": b"{", "links": packed(agent("x", "r1", said("hi"))),
        "usage": packed(agent("b", "r1", said("hi"))),
        "text": packed(agent("b", "r1", said("ho")) | {"message": {"id": "m-b", "content": []}}),
        "copy": packed(lines[1]), "blocks": packed(user("r1", "a1", [result("c2", "")])),
    }[damage]  # fmt: skip
    at = 2 if damage in ("copy", "blocks") else 3
    monkeypatch.setattr("recap.cmv.writing.spliced", lambda data, edits: made)
    plan.index.flags[at] |= SCAN
    with pytest.raises(InvalidContextError, match="would not be what it has to be"):
        writer.write(lambda written: None)


def test_a_line_that_is_no_object_and_one_of_bare_blocks_pass():
    odd = json.dumps(agent("a", "u", "bare", said("hi"), 3)).encode()
    out, report = trimmed(log(ASK, odd, b"[1]", b"7", done("a")))
    assert content_of(out, "a") == ["bare", said("hi"), 3]
    assert report.lines_out == 5


@pytest.mark.parametrize("message", [[], "text", {"content": 5}, {"content": {"a": 1}}])
def test_a_message_of_another_kind_ends_no_trim(message: object):
    line = user("x", "u", "") | {"message": message}
    out, _ = trimmed(log(ASK, line, done("x" if isinstance(message, dict) else "u")))
    assert texts(out, "user") == ["do"]


def test_a_line_that_nests_too_deeply_passes_as_it_is():
    deep = b'{"type":"note","x":' + b"[" * 3000 + b"]" * 3000 + b"}"
    out, report = trimmed(log(ASK, deep, done("u")))
    assert deep in out
    assert report.counts["unreadable_lines"] == 1


def test_inputs_of_odd_edits_are_left_alone():
    lines = [
        agent("a", "u", use("c1", "MultiEdit", edits=["x" * 900, {"old_string": LONG}])),
        user("r", "a", [result("c1", "ok")]),
        agent("b", "r", use("c2", "Write", content=["x" * 900], edits=LONG)),
        user("q", "b", [result("c2", "ok")]),
    ]
    options = TrimOptions(keep_last=0, requests="writes", yes=True)
    out, report = trimmed(log(ASK, *lines, done("q")), options)
    assert report.counts["inputs_stubbed"] == 1
    first, second = requests(out)
    assert b"x" * 900 in json.dumps([first, second], default=str).encode()


def test_a_cycle_of_parents_that_go_ends():
    lines = [
        node("progress", "p", "q"), node("progress", "q", "p"), user("u", "q", "do"), done("u")
    ]  # fmt: skip
    out, _ = trimmed(log(*lines))
    assert texts(out, "user") == ["do"]
    assert lines_of(out)[0]["parentUuid"] is None


def test_a_text_without_words_is_no_change_of_words():
    out, report = trimmed(log(ASK, *call(1, "u"), agent("e", "r1", said("")), done("e")))
    assert report.counts["usage_removed"] == 3
    assert texts(out, "assistant") == ["", "done"]
