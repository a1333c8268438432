from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript import openai, openhands
from recap.transcript.formats import read_bytes
from recap.transcript.sample import Sample
from recap.transcript.tree import to_bytes, to_object
from tests.transcript.agents import assert_contexts, assert_exact, parts, said, shape
from tests.transcript.handles import JUNK, WORDS, file, held
from tests.transcript.trajectories import MANGLE, assert_read_or_refused, found, tools, user_authors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.transcript.model import Transcript


def act(event_id: Any, action: str, source: str = "agent", **more: Any) -> dict[str, Any]:
    """An action; what is no field of an event is one of its arguments."""
    fields = {key: more.pop(key) for key in ("tool_call_metadata",) if key in more}
    return {"id": event_id, "source": source, "message": "", "action": action, **fields,
            "args": more}  # fmt: skip


def seen(event_id: Any, observation: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"id": event_id, "source": "agent", "observation": observation, "content": content,
            "extras": {}, **more}  # fmt: skip


def answer(call_id: str, *calls: str, words: str | None = None, response: str = "r1") -> Any:
    """Metadata of the call of an answer with these calls, "execute_bash" each."""
    tools = [
        {"index": 1, "id": each, "type": "function",
         "function": {"name": "execute_bash", "arguments": json.dumps({"command": each})}}
        for each in calls or (call_id,)
    ]  # fmt: skip
    message = {"content": words, "role": "assistant", "tool_calls": tools, "function_call": None}
    return {
        "function_name": "execute_bash",
        "tool_call_id": call_id,
        "model_response": {"id": response, "model": "m", "choices": [{"message": message}]},
        "total_calls_in_response": len(tools),
    }


def read(*events: Any) -> Transcript:
    return openhands.read(file(list(events)))


REQUEST = act(1, "message", "user", content="fix it", image_urls=None)
SESSION = (
    act(0, "system", content="you are OpenHands", tools=[]),
    REQUEST,
    act(2, "recall", "user", query="fix it", recall_type="workspace_context"),
    act(5, "run", command="ls", thought="look", tool_call_metadata=answer("a", words="look")),
    seen(6, "run", "a.py", cause=5, success=True, tool_call_metadata=answer("a", words="look")),
    act(7, "message", content="done", wait_for_response=True),
)


def test_events_become_messages():
    transcript = read(*SESSION)
    assert shape(transcript) == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["text", "call"]),
        ("tool", ["result"]),
        ("assistant", ["text"]),
    ]
    assert [message.line for message in transcript.messages] == [1, 2, 4, 5, 6]
    assert [part.text() for part in parts(transcript, "text")] == [
        "you are OpenHands", "fix it", "look", "done",
    ]  # fmt: skip
    assert user_authors(transcript) == ["human"]
    assert (transcript.messages[2].model, transcript.messages[2].uid) == ("m", "r1")
    assert transcript.counts == {"other_events": 1}


def test_a_call_is_the_very_one_the_model_made():
    transcript = read(*SESSION)
    made = SESSION[3]["tool_call_metadata"]["model_response"]["choices"][0]["message"]
    step = transcript.messages[2]
    assert to_object(openai.write_message("assistant", step.parts)) == [
        {"role": "assistant", "content": "look", "tool_calls": made["tool_calls"]}
    ]
    result = transcript.messages[3]
    assert to_object(openai.write_message("tool", result.parts)) == [
        {"role": "tool", "tool_call_id": "a", "content": "a.py"}
    ]


def test_the_calls_of_one_answer_are_one_message():
    transcript = read(
        REQUEST,
        act(3, "run", command="a", tool_call_metadata=answer("a", "a", "b", words="both")),
        seen(4, "run", "x", tool_call_metadata=answer("a")),
        act(5, "run", command="b", tool_call_metadata=answer("b", "a", "b", words="both")),
        seen(6, "run", "y", tool_call_metadata=answer("b")),
        act(7, "run", command="c", tool_call_metadata=answer("c", response="r2")),
        seen(8, "run", "z", tool_call_metadata=answer("c")),
    )
    assert shape(transcript)[1:] == [
        ("assistant", ["text", "call", "call"]),
        ("tool", ["result"]),
        ("tool", ["result"]),
        ("assistant", ["call"]),
        ("tool", ["result"]),
    ]
    assert [p.call_id for p in tools(transcript)] == list("ababcc")


def test_answers_whose_ids_were_blanked_out_stay_apart():
    same = answer("REDACTED", response="REDACTED")
    step = (
        act("x", "run", tool_call_metadata=same),
        seen("x", "run", "y", tool_call_metadata=same),
    )
    assert shape(read(*step, *step)) == [("assistant", ["call"]), ("tool", ["result"])] * 2


@pytest.mark.parametrize("as_text", [False, True])
def test_an_observation_names_its_action_as_its_cause(as_text):
    known = (lambda n: str(n)) if as_text else (lambda n: n)
    transcript = read(
        REQUEST,
        act(known(3), "read", path="a.py", thought="look"),
        seen(known(4), "read", "x = 1", cause=3),
    )
    use, result = tools(transcript)
    assert (use.name, use.payload(), use.call_id) == ("read", {"path": "a.py"}, "event_3")
    assert result.call_id == "event_3"
    assert shape(transcript)[1] == ("assistant", ["text", "call"])


def test_an_action_without_its_answer_is_a_call_of_its_arguments():
    metadata = {"function_name": "str_replace_editor", "tool_call_id": "a", "model_response": None}
    transcript = read(act(3, "edit", path="a.py", tool_call_metadata=metadata))
    call = parts(transcript, "call")[0]
    assert (call.name, call.call_id, call.payload()) == (
        "str_replace_editor", "a", {"path": "a.py"},
    )  # fmt: skip


def test_actions_alone_are_open_calls_beside_what_the_agent_thought():
    transcript = read(REQUEST, act(2, "run", command="ls", thought="look"), act(3, "finish"))
    assert shape(transcript)[1:] == [("assistant", ["text", "call"]), ("assistant", ["call"])]


def test_the_last_words_of_an_agent_stand_beside_its_open_call():
    final = act(9, "finish", thought="", final_thought="all done", outputs={},
                tool_call_metadata=answer("z"))  # fmt: skip
    transcript = read(*SESSION, final)
    assert shape(transcript)[-1] == ("assistant", ["call", "text"])
    assert parts(transcript)[-1].text() == "all done"


@pytest.mark.parametrize(
    ("observation", "is_error"),
    [
        (seen(4, "run", "x", success=True), False),
        (seen(4, "run", "x", success=False), True),
        (seen(4, "error", "no such tool"), True),
        (seen(4, "user_rejected", "not now"), True),
        (seen(4, "edit", "ERROR:\nNo replacement was performed"), True),
        (seen(4, "run", "ERROR: 3"), False),
        (seen(4, "call_of_tomorrow", [{"type": "text", "text": "x"}]), False),
        ({"id": 4, "observation": "run"}, False),
    ],
)
def test_any_observation_answers_its_call(observation, is_error):
    action = act(3, "run", tool_call_metadata=answer("a"))
    result = parts(read(action, {**observation, "cause": 3}), "result")[0]
    assert (result.call_id, result.is_error) == ("a", is_error)


def test_the_result_of_an_edit_is_what_the_model_saw():
    shown = {"formatted_output_and_error": "File created"}
    action = act(3, "edit", tool_call_metadata=answer("a"))
    for extras, expected in ((shown, "File created"), ({}, "--- a.py")):
        transcript = read(action, seen(4, "edit", "--- a.py", cause=3, extras=extras))
        assert parts(transcript, "result")[0].text() == expected


def test_what_the_client_recalled_is_injected():
    extras = {
        "repo_instructions": "use tabs",
        "microagent_knowledge": [{"name": "github", "content": "use gh"}, {"content": ""}, 7],
        "date": "2025-01-01",
    }
    transcript = read(REQUEST, seen(4, "recall", "Added workspace context", extras=extras))
    assert user_authors(transcript) == ["human", "injected", "injected"]
    assert [part.text() for part in parts(transcript)[1:]] == ["use tabs", "use gh"]


def test_a_command_of_the_person_is_no_request():
    transcript = read(
        REQUEST, act(3, "run", "user", command="git status"), seen(4, "run", "clean", cause=3)
    )
    assert user_authors(transcript) == ["human", "local", "local"]
    assert shape(transcript) == [("user", ["text"])] * 3


def test_an_error_that_answers_no_call_is_machine_text():
    transcript = read(*SESSION, seen(8, "error", "expected to be one of"))
    assert user_authors(transcript) == ["human", "tool"]


def test_what_is_typed_into_an_open_loop_is_steering_until_the_agent_stops():
    later = act(8, "message", "user", content="the tests too")
    assert user_authors(read(*SESSION[:5], later)) == ["human", "steering"]
    stop = seen(7, "agent_state_changed", "", extras={"agent_state": "stopped"})
    assert user_authors(read(*SESSION[:5], stop, later)) == ["human", "human"]
    goes_on = seen(7, "agent_state_changed", "", extras={"agent_state": "running"})
    assert user_authors(read(*SESSION[:5], goes_on, later)) == ["human", "steering"]
    assert user_authors(read(*SESSION, later)) == ["human", "human"]


def test_a_rejection_ends_the_loop():
    action = act(3, "run", tool_call_metadata=answer("a"))
    rejected = seen(4, "user_rejected", "no", cause=3)
    later = act(5, "message", "user", content="use tabs")
    assert user_authors(read(REQUEST, action, rejected, later)) == ["human", "human"]


def test_images_of_the_person_are_read():
    urls = ["https://x/a.png", "", 7]
    transcript = read(act(1, "message", "user", content="see", image_urls=urls))
    assert shape(transcript) == [("user", ["text", "image"])]
    assert user_authors(transcript) == ["human", "human"]


@pytest.mark.parametrize(
    "event",
    [
        act(9, "condensation", forgotten_event_ids=[1, 3]),
        act(9, "condensation_request"),
        seen(9, "condense", "summary"),
    ],
)
def test_condensations_are_counted_and_not_followed(event):
    transcript = read(*SESSION, event)
    assert shape(transcript) == shape(read(*SESSION))
    assert transcript.counts["condensations"] == 1
    assert found(transcript) == [("condensation", 7)]


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"id": 9},
        {"action": None},
        {"action": 7, "observation": []},
        act(9, "dance", x=1),
        act(9, "dance", "user"),
        act(9, "message", "environment", content="x"),
        seen(9, "null", ""),
        seen(9, "null", None),
        act(9, "change_agent_state", agent_state=["stopped"]),
    ],
)
def test_other_events_are_counted(event):
    transcript = read(*SESSION, event)
    assert shape(transcript) == shape(read(*SESSION))
    assert (transcript.findings, transcript.counts) == ((), {"other_events": 2})


def test_an_event_without_words_is_counted():
    blank = (act(9, "message", "user", content=" "), act(9, "message"), seen(9, "recall", "x"))
    assert read(*SESSION, *blank).counts == {"other_events": 1, "empty_events": 3}


@pytest.mark.parametrize("broken", [None, 7, "x", []])
def test_what_is_no_event_is_reported_and_left_out(broken):
    assert found(read(broken, *SESSION)) == [("not-a-message", 1)]


def row(name: Any, *events: Any) -> dict[str, Any]:
    return {"instance_id": name, "instruction": "x", "history": list(events), "metrics": {}}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in rows)


def test_of_several_rows_the_first_is_read():
    data = lines(row("a", *SESSION), row("b", REQUEST), row("c"))
    transcript = read_bytes(data)
    assert (transcript.format, transcript.session_id) == ("openhands", "a")
    assert shape(transcript) == shape(read(*SESSION))
    assert transcript.counts == {"other_events": 1, "sessions": 3}
    assert [finding.detail for finding in transcript.findings] == [
        "the file holds 2 more sessions, which are not read"
    ]


def test_one_row_alone_is_a_session():
    transcript = read_bytes(lines(row(7, *SESSION)))
    assert (transcript.session_id, transcript.findings) == ("", ())
    assert transcript.bytes_read == len(lines(row(7, *SESSION)))


def test_a_row_without_events_gives_way_to_the_next():
    data = lines({**row("a"), "history": None}, row("b"), row("c", *SESSION))
    assert read_bytes(data).session_id == "c"
    empty = openhands.read(file([row("a"), row("b")]))
    assert (empty.session_id, found(empty)) == (
        "a", [("more-sessions", 0), ("no-messages", 0)]
    )  # fmt: skip


def test_bad_rows_are_reported_and_the_others_read():
    data = b'{"instance_id": "a", "history": [{"sour\n' + lines(row("b", *SESSION), 7)
    transcript = read_bytes(data)
    assert transcript.session_id == "b"
    assert found(transcript) == [("bad-line", 1)]


def test_events_may_stand_one_a_line_or_in_an_answer_of_the_server():
    expected = shape(read(*SESSION))
    assert shape(read_bytes(lines(*SESSION))) == expected
    assert shape(read_bytes(lines({"trajectory": list(SESSION)}))) == expected


def document(value: Any) -> Sample:
    return Sample("", value, ((1, value),) if isinstance(value, dict) else ())


@pytest.mark.parametrize(
    ("sample", "evidence"),
    [
        (document([REQUEST]), "events with a source"),
        (document({"trajectory": [REQUEST]}), "events with a source"),
        (document(row("a", REQUEST)), "line 1: instance_id with a history of events"),
        (Sample("", None, ((4, row("a", REQUEST)),)),
         "line 4: instance_id with a history of events"),
        (Sample("", None, ((1, SESSION[4]),)), "events with a source"),
        (document([{"source": "agent", "action": {"kind": "x"}}]), None),
        (document({"trajectory": [{"action": "ls"}]}), None),
        (document({"instance_id": "a", "history": 7}), None),
        (document([7]), None),
        (Sample(""), None),
    ],
)  # fmt: skip
def test_events_are_recognised(sample, evidence):
    assert openhands.detect(sample) == evidence


def test_what_json_forbids_is_kept_and_reported():
    data = lines(row("a", *SESSION)).replace(b"a.py", rb"\ud83d").replace(b"true", b"NaN")
    transcript = read_bytes(data.replace(b"fix it", b"fix \xff"))
    assert {code for code, _ in found(transcript)} == {"not-strict-json"}
    assert said(transcript) == ["fix \ufffd"]
    assert parts(transcript, "result")[0].text() == "\ud83d"
    assert_contexts(transcript)


@pytest.mark.parametrize("mangle", MANGLE)
@pytest.mark.parametrize(
    "data",
    [
        json.dumps(SESSION, indent=1).encode(),
        json.dumps(SESSION).encode(),
        lines(row("a", *SESSION), row("b", *SESSION), row("c", REQUEST)),
        lines(*SESSION),
    ],
)
def test_a_broken_file_is_read_or_refused_in_one_line(data, mangle):
    for name in (None, "openhands"):
        assert_read_or_refused(mangle(data), name)


NAMES = st.sampled_from(["run", "edit", "message", "system", "finish", "recall", "error", "x"])
METADATA = st.builds(answer, WORDS, WORDS, words=WORDS, response=st.sampled_from(["", "r"]))
DEEP = st.fixed_dictionaries(
    {"model_response": JUNK | st.fixed_dictionaries({"choices": JUNK | st.lists(JUNK)})},
    optional={"tool_call_id": JUNK | WORDS, "function_name": JUNK},
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": JUNK | st.integers(0, 3),
    "cause": JUNK | st.integers(0, 3),
    "source": JUNK | st.sampled_from(["user", "agent", "environment"]),
    "action": JUNK | NAMES,
    "observation": JUNK | NAMES,
    "content": JUNK | WORDS,
    "args": JUNK | st.dictionaries(st.sampled_from(["content", "command", "thought"]), JUNK),
    "extras": JUNK | st.fixed_dictionaries({"microagent_knowledge": JUNK}),
    "tool_call_metadata": JUNK | METADATA | DEEP,
}


@given(st.lists(JUNK | st.fixed_dictionaries({}, optional=FIELDS), max_size=4))
def test_no_event_makes_the_reader_fail_and_what_it_keeps_can_be_written(events):
    for handle in (held(events), file(events), file({"history": events})):
        for message in openhands.read(handle).messages:
            for tree in openai.write_message(message.role, message.parts):
                json.loads(to_bytes(tree), parse_constant=pytest.fail)


# The counts below are taken from the raw JSON, by the rules of the format alone.


def sessions(corpus: Path) -> Iterator[tuple[str, bytes, list[dict[str, Any]]]]:
    """Yield every session of the corpus by itself, with its events."""
    folder = corpus / "sessions/openhands"
    for line in (folder / "multi-swe-bench-output.jsonl").read_bytes().splitlines(keepends=True):
        value = json.loads(line)
        yield value["instance_id"], line, value["history"]
    data = (folder / "traj-basic.json").read_bytes()
    yield "", data, json.loads(data)


@pytest.mark.corpus
def test_every_session_of_the_corpus_is_read_whole(corpus: Path):
    assert len(list((corpus / "sessions/openhands").iterdir())) == 2
    for name, data, events in sessions(corpus):
        transcript = read_bytes(data)
        assert (transcript.session_id, transcript.findings) == (name, ())
        asked = [
            each["args"]["content"] for each in events
            if each["source"] == "user" and each.get("action") == "message"
        ]  # fmt: skip
        assert said(transcript) == asked
        metadata = [
            ("observation" in each, each["tool_call_metadata"]["tool_call_id"])
            for each in events
            if each.get("tool_call_metadata")
        ]
        pairs = [(p.kind == "result", p.call_id) for p in tools(transcript)]
        assert pairs == metadata
        results = [p.text() for p in parts(transcript, "result")]
        assert results == [
            each["extras"].get("formatted_output_and_error", each["content"])
            for each in events
            if "observation" in each and each.get("tool_call_metadata")
        ]
        thoughts = [
            thought for each in events if "action" in each and each["source"] == "agent"
            for key in ("thought", "final_thought") if (thought := each["args"].get(key))
        ]  # fmt: skip
        agent = [part.text() for part in parts(transcript, "text") if part.author == "agent"]
        # The action of the tool "think" repeats its argument behind what the model said.
        assert all(b.startswith(a) for a, b in zip(agent, thoughts, strict=True))
        assert_exact(transcript, data)


@pytest.mark.corpus
def test_the_benchmark_of_the_corpus_is_read_as_its_first_session(corpus: Path):
    data = (corpus / "sessions/openhands/multi-swe-bench-output.jsonl").read_bytes()
    transcript = read_bytes(data)
    assert (transcript.counts["sessions"], transcript.lines) == (3, 49)
    assert found(transcript) == [("more-sessions", 0)]


@pytest.mark.corpus
def test_every_session_of_the_corpus_gives_valid_contexts(corpus: Path):
    for _, data, _ in sessions(corpus):
        assert_contexts(read_bytes(data))


@pytest.mark.corpus
def test_any_event_of_the_corpus_may_be_missing(corpus: Path):
    for _, _, events in sessions(corpus):
        for at in range(len(events)):
            rest = events[:at] + events[at + 1 :]
            transcript = read_bytes(json.dumps(rest).encode())
            assert transcript.lines == len(rest)
            if at % 25 == 0 and said(transcript):
                assert_contexts(transcript)


@pytest.mark.corpus
def test_a_benchmark_of_the_corpus_may_be_cut_at_any_line(corpus: Path):
    data = (corpus / "sessions/openhands/multi-swe-bench-output.jsonl").read_bytes()
    rows = data.splitlines(keepends=True)
    for at in range(len(rows)):
        transcript = read_bytes(b"".join(rows[: at + 1]) + rows[at][:1000])
        assert transcript.counts["sessions"] == at + 1
