from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from recap.transcript import openai, swe_agent
from recap.transcript.formats import read_bytes
from recap.transcript.sample import Sample
from recap.transcript.tree import to_bytes, to_object
from tests.transcript.agents import assert_contexts, assert_exact, parts, said, shape
from tests.transcript.handles import MANGLED, file, held
from tests.transcript.trajectories import MANGLE, assert_read_or_refused, found, tools, user_authors

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Transcript


def says(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "agent": "main", **more}


def call(call_id: str, name: str = "open", **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def read(*history: Any, **fields: Any) -> Transcript:
    return swe_agent.read(file({"history": list(history), **fields}))


def read_mini(*messages: Any) -> Transcript:
    return swe_agent.read_mini(file(list(messages)))


SYSTEM = says("system", "you are an agent", message_type="system_prompt")
TASK = says("user", "We're solving the following issue: ...", message_type="observation")
TEXT = (
    SYSTEM,
    TASK,
    says("assistant", "look\n```\nls\n```", thought="look\n", action="ls\n"),
    says("user", "a.py\r\nb.py\n(Open file: n/a)", message_type="observation"),
    says("assistant", "done\n```\nsubmit\n```", thought="done\n", action="submit\n"),
)
CALLS = (
    SYSTEM,
    TASK,
    says("assistant", "look", tool_calls=[call("a", path="a.py")], action="open a.py"),
    says("tool", "1:x\r\n", tool_call_ids=["a"]),
    says("assistant", "done", tool_calls=None),
)


def test_observations_in_the_user_role_are_machine_text():
    transcript = read(*TEXT)
    assert shape(transcript) == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
        ("assistant", ["text"]),
    ]
    assert user_authors(transcript) == ["human", "tool"]
    assert said(transcript) == [TASK["content"]]


def test_results_name_their_call_in_a_list():
    transcript = read(*CALLS)
    assert shape(transcript)[2:4] == [("assistant", ["text", "call"]), ("tool", ["result"])]
    use, result = tools(transcript)
    assert (use.call_id, use.name, use.dialect) == ("a", "open", "openai")
    assert (result.call_id, result.text()) == ("a", "1:x\r\n")


def test_messages_never_go_out_with_the_agents_own_fields():
    transcript = read(*CALLS)
    assert all(message.envelope.raw is None for message in transcript.messages)
    written = [
        to_object(tree)
        for message in transcript.messages
        for tree in openai.write_message(message.role, message.parts)
    ]
    assert written[2:4] == [
        {"role": "assistant", "content": "look", "tool_calls": [call("a", path="a.py")]},
        {"role": "tool", "tool_call_id": "a", "content": "1:x\r\n"},
    ]
    assert {key for message in written for key in message} == {
        "role", "content", "tool_calls", "tool_call_id"
    }  # fmt: skip


def test_a_result_of_several_calls_is_read_as_that_of_the_first():
    calls = says("assistant", "", tool_calls=[call("a"), call("b")])
    transcript = read(TASK, calls, says("tool", "x", tool_call_ids=["a", "b"]))
    assert found(transcript) == [("shared-result", 3)]
    assert [part.call_id for part in parts(transcript, "result")] == ["a"]


@pytest.mark.parametrize("ids", [{}, {"tool_call_ids": []}, {"tool_call_ids": [7]}])
def test_a_result_without_the_id_of_a_call_is_kept(ids):
    transcript = read(TASK, says("tool", "x", **ids))
    assert [(part.call_id, part.text()) for part in parts(transcript, "result")] == [("", "x")]


def test_a_tool_message_without_content_is_an_empty_result():
    message = {"role": "tool", "tool_call_ids": ["a"]}
    assert [part.text() for part in parts(read(TASK, message), "result")] == [""]


@pytest.mark.parametrize("mark", [{"is_demo": True}, {"message_type": "demonstration"}])
def test_demonstrations_are_counted_and_left_out(mark):
    demo = says("user", "Here is a demonstration", **mark)
    transcript = read(SYSTEM, demo, says("assistant", "ls", **mark), *TEXT[1:])
    assert transcript.counts == {"demonstrations": 2}
    assert [message.line for message in transcript.messages] == [1, 4, 5, 6, 7]
    assert said(transcript) == [TASK["content"]]


def test_the_task_may_be_given_in_parts_and_with_an_image():
    image = {"type": "image_url", "image_url": {"url": "https://x/a.png"}}
    transcript = read(says("user", [{"type": "text", "text": "fix it"}, image]), *CALLS[2:])
    assert user_authors(transcript) == ["human", "human"]
    assert shape(transcript)[0] == ("user", ["text", "image"])


def test_signed_thinking_is_read():
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "other"}, 7]
    message = read(TASK, says("assistant", "x", thinking_blocks=blocks)).messages[1]
    assert [part.kind for part in message.parts] == ["thinking", "text"]
    assert (message.parts[0].text(), message.parts[0].has_signature) == ("hm", True)


STEPS = [
    {
        "query": [SYSTEM, TASK],
        "response": "look\n```\nls\n```",
        "thought": "look\n",
        "action": "ls\n",
        "observation": "a.py\r\n",
        "state": '{"open_file": "n/a"}',
    },
    {
        "query": [SYSTEM, TASK, says("assistant", "look"), says("user", "a.py")],
        "response": "",
        "thought": "done\n",
        "action": "submit\n",
        "observation": "",
        "state": {},
    },
]


@pytest.mark.parametrize("history", [{}, {"history": []}, {"history": None}])
@pytest.mark.parametrize("key", ["query", "messages"])
def test_a_trajectory_is_read_where_there_is_no_history(history, key):
    steps = [{key if name == "query" else name: step[name] for name in step} for step in STEPS]
    transcript = swe_agent.read(file({"trajectory": steps, **history}))
    assert [part.text() for part in parts(transcript)] == [
        "you are an agent", TASK["content"], "look\n```\nls\n```", "a.py\r\n", "done\n", "submit\n",
    ]  # fmt: skip
    assert user_authors(transcript) == ["human", "tool"]
    assert [message.line for message in transcript.messages] == [1, 1, 1, 1, 2]


def test_a_step_of_a_trajectory_may_be_empty():
    transcript = swe_agent.read(file({"trajectory": [{}, {"observation": "x"}]}))
    assert found(transcript) == [("empty-step", 1)]
    assert shape(transcript) == [("user", ["text"])]


def test_a_trajectory_repeats_nothing_beside_a_history():
    assert len(read(*TEXT, trajectory=STEPS).messages) == len(TEXT)


@pytest.mark.parametrize("document", [[], {}, {"history": {}}, {"trajectory": 7}])
def test_a_document_without_messages_is_reported(document):
    assert found(swe_agent.read(file(document))) == [("no-messages", 0)]


MINI = (
    {"role": "system", "content": "you are an agent"},
    {"role": "user", "content": "Please solve this issue: ..."},
    {"role": "assistant", "content": "look\n\n```bash\nls\n```"},
    {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
    {"role": "assistant", "content": "nothing to do"},
    {"role": "user", "content": "Please always provide EXACTLY ONE action in triple backticks"},
)


def test_mini_swe_agent_has_one_request():
    transcript = read_mini(*MINI)
    assert user_authors(transcript) == ["human", "tool", "tool"]
    assert transcript.format == "mini-swe-agent"
    document = {"messages": list(MINI), "info": {}, "trajectory_format": "mini-swe-agent-1"}
    assert shape(swe_agent.read_mini(file(document))) == shape(transcript)


@pytest.mark.parametrize(
    ("words", "author"),
    [
        ("Interrupted by user: use tabs", "human"),
        ("Interrupted by user: Temporary interruption caught.", "marker"),
        ("Command not executed. The user rejected your command with the following message: no",
         "human"),
        ("Commands not executed. The user rejected your commands with the following message: no",
         "human"),
        ("Command not executed: use tabs", "human"),
        ("Commands not executed. Switching to human mode", "marker"),
        ("Switched to human mode.", "marker"),
        ("The user added a new task: the tests too", "human"),
        ("User command: \n```bash\nls\n```", "local"),
        ("<returncode>0</returncode>\nInterrupted by user: x", "tool"),
    ],
)  # fmt: skip
def test_what_the_person_typed_into_a_running_agent_is_the_persons(words, author):
    assert user_authors(read_mini(*MINI, {"role": "user", "content": words}))[-1] == author


def test_newer_mini_swe_agent_answers_calls():
    transcript = read_mini(
        *MINI[:2],
        {"role": "assistant", "content": None, "tool_calls": [call("a", "bash", command="ls")],
         "function_call": None, "extra": {"response": {}}},
        {"role": "tool", "tool_call_id": "a", "content": "a.py", "extra": {"raw_output": "a.py"}},
        {"role": "exit", "content": "Submitted", "extra": {"exit_status": "Submitted"}},
    )  # fmt: skip
    assert shape(transcript)[2:] == [("assistant", ["call"]), ("tool", ["result"])]
    assert transcript.counts == {"exits": 1}
    assert transcript.findings == ()
    result = to_object(openai.write_message("tool", transcript.messages[3].parts))
    assert result == [{"role": "tool", "tool_call_id": "a", "content": "a.py"}]


def document(value: Any) -> Sample:
    return Sample("", value, ((1, value),) if isinstance(value, dict) else ())


@pytest.mark.parametrize(
    ("value", "evidence"),
    [
        ({"trajectory": [{"action": "ls"}], "history": []}, "trajectory with history"),
        ({"trajectory": [{"observation": "x"}], "info": {}}, "trajectory"),
        ({"history": [SYSTEM]}, "history of messages with an agent"),
        ({"trajectory": [{"action": "run", "source": "agent"}]}, None),
        ({"trajectory": [], "history": [{"role": "user", "content": "x"}]}, None),
        ({"trajectory": 7, "history": {}}, None),
        ([{"action": "ls"}], None),
        (None, None),
    ],
)
def test_a_trajectory_is_recognised(value, evidence):
    assert swe_agent.detect(document(value)) == evidence


@pytest.mark.parametrize(
    ("value", "evidence"),
    [
        ({"messages": [], "trajectory_format": "mini-swe-agent-1.1"}, "trajectory_format"),
        (list(MINI), "observations that begin with <returncode>"),
        (list(MINI[:3]), None),
        ([{"role": "assistant", "content": "<returncode>"}, {"role": "user", "content": 7}], None),
        ({"messages": list(MINI)}, None),
        (None, None),
    ],
)
def test_a_trajectory_of_mini_swe_agent_is_recognised(value, evidence):
    assert swe_agent.detect_mini(document(value)) == evidence


@pytest.mark.parametrize("broken", [None, 7, "x", {}, {"role": "narrator"}, {"role": ["user"]}])
def test_what_is_no_message_is_reported_and_left_out(broken):
    for transcript in (read(*TEXT[:2], broken, *TEXT[2:]), read_mini(MINI[0], broken, *MINI[1:])):
        assert [finding.severity for finding in transcript.findings] == ["error"]
        assert user_authors(transcript)[0] == "human"


def test_what_json_forbids_is_kept_and_reported():
    data = json.dumps({"history": list(TEXT), "trajectory": STEPS}).encode()
    data = data.replace(b"(Open file", rb"\ud83d(Open \xff".replace(rb"\xff", b"\xff"))
    transcript = read_bytes(data)
    assert found(transcript) == [("not-strict-json", 4)]
    assert parts(transcript)[3].text() == "a.py\r\nb.py\n\ud83d(Open \ufffd: n/a)"
    assert_contexts(transcript)


def test_a_number_that_is_none_does_no_harm():
    data = b'{"history": [{"role": "user", "agent": NaN, "content": "fix it"}]}'
    assert said(read_bytes(data)) == ["fix it"]


def test_a_message_whose_members_cannot_be_told_apart_is_reported():
    deep = b'{"role": "user", "content": "x", "n": NaN, "deep": ' + b"[" * 500 + b"]" * 500 + b"}"
    rows = [json.dumps(message).encode() for message in MINI]
    transcript = read_bytes(b"\n".join([deep, *rows]), format="mini-swe-agent")
    assert ("unreadable-message", 1) in found(transcript)
    assert said(transcript) == [MINI[1]["content"]]


@pytest.mark.parametrize("mangle", MANGLE)
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("value", [{"history": list(CALLS), "trajectory": STEPS}, list(MINI)])
def test_a_broken_file_is_read_or_refused_in_one_line(value, indent, mangle):
    data = mangle(json.dumps(value, indent=indent).encode())
    for name in (None, "swe-agent", "mini-swe-agent"):
        assert_read_or_refused(data, name)


@given(MANGLED)
def test_no_history_makes_the_reader_fail_and_what_it_keeps_can_be_written(messages):
    for read_any, value in (
        (swe_agent.read, {"history": messages}),
        (swe_agent.read, {"trajectory": messages}),
        (swe_agent.read_mini, messages),
    ):
        for handle in (held(value), file(value)):
            for message in read_any(handle).messages:
                parts = [part for part in message.parts if part.kind != "thinking"]
                for tree in openai.write_message(message.role, parts):
                    json.loads(to_bytes(tree), parse_constant=pytest.fail)


# The counts below are taken from the raw JSON, by the rules of the formats alone.


def sessions(corpus: Path) -> list[Path]:
    return sorted([*corpus.glob("sessions/swe-agent/*"), *corpus.glob("sessions/mini-swe-agent/*")])


def raw_messages(value: Any) -> list[dict[str, Any]]:
    return value["history"] if isinstance(value, dict) else value


@pytest.mark.corpus
def test_every_trajectory_of_the_corpus_is_read_whole(corpus: Path):
    paths = sessions(corpus)
    assert len(paths) == 3
    for path in paths:
        data = path.read_bytes()
        messages = raw_messages(json.loads(data))
        transcript = read_bytes(data)
        assert transcript.format == path.parent.name
        assert (transcript.findings, transcript.counts) == ((), {}), path.name
        assert [part.text() for part in parts(transcript) if part.kind != "call"] == [
            message["content"] for message in messages
        ]
        calls = [call for message in messages for call in message.get("tool_calls") or []]
        assert [part.raw.load() for part in parts(transcript, "call")] == calls
        assert [part.call_id for part in parts(transcript, "result")] == [
            message["tool_call_ids"][0] for message in messages if message["role"] == "tool"
        ]
        task = next(message["content"] for message in messages if message["role"] == "user")
        assert said(transcript) == [task]
        assert_exact(transcript, data)


@pytest.mark.corpus
def test_every_trajectory_of_the_corpus_gives_valid_contexts(corpus: Path):
    for path in sessions(corpus):
        assert_contexts(read_bytes(path.read_bytes()))


@pytest.mark.corpus
def test_any_message_of_the_corpus_may_be_missing(corpus: Path):
    for path in sessions(corpus):
        value = json.loads(path.read_bytes())
        messages = raw_messages(value)
        for at in range(len(messages)):
            cut = [*messages[:at], *messages[at + 1 :]]
            rest = {**value, "history": cut, "trajectory": []} if isinstance(value, dict) else cut
            transcript = read_bytes(json.dumps(rest).encode(), format=path.parent.name)
            assert len(transcript.messages) == len(messages) - 1
            if at % 5 == 0:
                assert_contexts(transcript)
