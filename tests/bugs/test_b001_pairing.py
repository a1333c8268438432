"""Reported bugs about calls and results: a provider takes neither without the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import recap
from tests.bugs.cases import (
    ask,
    blocks_in,
    chat_call,
    chat_step,
    compacted,
    compacted_log,
    copy_of,
    image,
    result,
    say,
    text,
    use,
    words_in,
)
from tests.transcript import logs

if TYPE_CHECKING:
    from pathlib import Path


def test_b001_a_result_behind_a_cut_goes_and_the_words_beside_it_stay() -> None:
    """A history cut between call and result was refused on every later turn."""
    rest = [
        ask(result("t1", "the file"), text("thanks, that was it")),
        say("You are welcome."),
        ask("And the tests?"),
    ]
    for retention in ("0.01", "1"):
        done = compacted(rest, retention=retention)
        assert blocks_in(done.messages, "tool_result") == []
        assert "thanks, that was it" in words_in(done.messages, "user")
        assert done.report.excluded == {"orphan-result": 1}


def test_b002_an_interrupted_call_is_left_out_and_named() -> None:
    """Escape during a tool call left it without a result for good.

    The report allows an invented result; decisions.md does not: the call is left out.
    """
    messages = [
        ask("Run the tests"),
        say(text("Running them."), use("t1", "Bash", command="make test")),
        ask("stop"),
    ]
    for request in (None, "Try again"):
        done = compacted(messages, request)
        assert blocks_in(done.messages, "tool_use") == []
        assert words_in(done.messages)[:3] == ["Run the tests", "Running them.", "stop"]
        assert done.report.excluded == {"open-call": 1}
        assert done.report.dialect == "anthropic"


def test_b003_parallel_calls_and_all_their_results_are_one_block() -> None:
    """A budget that held only the second of two results kept it without the first."""
    messages = [
        {"role": "user", "content": "Look at both files"},
        *chat_step(["c1", "c2"], "x" * 5000, "y" * 200),
        {"role": "assistant", "content": "Both seen."},
    ]
    tight = compacted(messages, "Go on", retention="0.1")
    (tools,) = (d for d in tight.selection.decisions() if d.kind == "tools")
    assert (tools.is_kept, tools.cost_chars > 5200) == (False, True)
    assert [m["role"] for m in tight.messages if m["role"] == "tool" or "tool_calls" in m] == []
    wide = compacted(messages, "Go on")
    assert wide.messages[1:4] == messages[1:4]


@pytest.mark.parametrize(
    "answer",
    [
        result("t1", "The user doesn't want to proceed with this tool use.", is_error=True),
        result("t1", [{"type": "text", "text": "a picture"}, image()]),
        result("t1", ""),
        result("t1", []),
        {"type": "tool_result", "tool_use_id": "t1"},
        result("t1", "Traceback: boom", is_error=True),
    ],
)
def test_b005_every_form_of_result_answers_its_call(answer: Any) -> None:
    """A rejection, an error or a list of blocks was not seen as the result of its call."""
    messages = [ask("Try it"), say(use("t1")), ask(answer), say("Tried.")]
    done = compacted(messages, "And now?")
    assert done.messages[:4] == messages
    assert done.report.excluded == {}


def test_b007_a_result_written_before_its_call_is_paired(tmp_path: Path) -> None:
    """A real result ahead of its call in the file was replaced by an invented error."""
    data = logs.log(
        logs.user("u1", None, "Read it"),
        logs.answer("r1", "a1", "t1"),
        logs.agent("a1", "u1", logs.use("t1")),
        logs.agent("a2", "r1", logs.said("It says hello.")),
    )
    done = compacted_log(data, tmp_path, "And now?")
    assert [m["role"] for m in done.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert done.messages[1]["content"] == [logs.use("t1")]
    assert done.messages[2]["content"] == [logs.result("t1", "result of t1")]
    assert done.report.excluded == {}


def test_b009_results_of_server_tools_obey_the_same_rule() -> None:
    """A new kind of server result lost the call before it, and the session was dead."""
    pair = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "advisor", "input": {}},
        {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    ]
    new = {"type": "hologram", "data": [1]}
    lone = {"type": "foo_tool_result", "tool_use_id": "srvtoolu_9", "content": []}
    messages = [
        ask("Advise me"),
        say(*pair, new, text("Do this.")),
        ask("More"),
        say(pair[1], lone, text("Do that.")),
    ]
    done = compacted(messages, "Go")
    assert done.messages[1] is messages[1]
    assert done.messages[3] == say(text("Do that."))
    assert done.report.excluded == {"orphan-result": 2}


def test_b011_a_call_id_repeated_in_one_message_goes_out_once() -> None:
    """A stream put together wrongly stored one call twice, and every request was refused."""
    messages = [
        ask("Look"),
        say(use("t1", path="a"), use("t2", path="b"), use("t1", path="a")),
        ask(result("t1"), result("t2")),
        say("Seen."),
    ]
    before = copy_of(messages)
    done = compacted(messages, "Go on")
    assert [block["id"] for block in blocks_in(done.messages, "tool_use")] == ["t1", "t2"]
    assert done.report.excluded == {"duplicate-call": 1}
    assert messages == before
    assert "duplicate-call-id" in {finding.code for finding in recap.check(messages)}


@pytest.mark.parametrize(
    "arguments",
    ['{"path": "src/alpha.py"}{"path": "src/beta_lexer.py"}', "", "not json: beta_lexer"],
)
def test_b013_arguments_that_are_no_json_are_text(arguments: str) -> None:
    """Two parallel calls glued into one argument string broke every later load."""
    call = {"role": "assistant", "content": None, "tool_calls": [chat_call("c1", arguments)]}
    messages = [
        {"role": "user", "content": "Look"},
        call,
        {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
        {"role": "assistant", "content": "Seen."},
    ]
    done = compacted(messages, "What is in beta_lexer?", policy="paper")
    assert done.messages[1] is call
    (tools,) = (d for d in done.selection.decisions() if d.kind == "tools")
    assert tools.cost_chars == len('{"id":"c1","type":"function","function":}') + len(
        '{"name":"read","arguments":""}'
    ) + len(arguments) + arguments.count('"') + len("nothing")
    assert (tools.relevance > 0) == ("beta_lexer" in arguments)


def test_b015_pairing_holds_in_both_directions() -> None:
    """Only results whose call stood before a compaction were looked at; all others passed."""
    messages = [
        ask("Go"),
        ask(result("never"), text("by the way")),
        say(text("I check."), use("t9")),
    ]
    done = compacted(messages, "And?")
    assert blocks_in(done.messages, "tool_use") == blocks_in(done.messages, "tool_result") == []
    assert words_in(done.messages) == ["Go", "by the way", "I check.", "And?"]
    assert done.report.excluded == {"open-call": 1, "orphan-result": 1}
