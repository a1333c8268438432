from __future__ import annotations

from typing import Any

import pytest

import recap
from recap.config import Settings
from recap.transcript import opencode
from recap.transcript.formats import read_bytes
from recap.transcript.lists import read_messages
from recap.transcript.tree import to_bytes
from tests.transcript.dialect_examples import oc, opened, ran, text
from tests.transcript.handles import PNG, file, held, in_file

KEEP_ALL = Settings(retention="1", markers=False)
DATA_URL = f"data:image/png;base64,{PNG}"
START, FINISH = (
    {"type": "step-start"},
    {"type": "step-finish", "reason": "tool-calls", "tokens": {}},
)


def read(*messages: Any) -> Any:
    return opencode.read(held({"info": {"id": "ses_1"}, "messages": list(messages)}))


def kinds(messages: Any) -> list[tuple[str, list[str]]]:
    return [(m.role, [part.kind for part in m.parts]) for m in messages]


def kept(messages: list[Any], **options: Any) -> Any:
    return recap.compact(messages, settings=KEEP_ALL, **options)


def test_a_tool_part_is_a_call_and_its_result():
    thought = {"type": "reasoning", "text": "Hm.", "metadata": {"openai": {}}}
    messages = opened(oc("assistant", START, thought, text("Looking."), ran("a"), ran("b"), FINISH))
    found = read(*messages).messages
    assert kinds(found) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "call", "call"]),
        ("tool", ["result", "result"]),
    ]
    assert found[1].envelope is found[2].envelope
    assert found[1].envelope.size == 6
    whole = [*messages, oc("assistant", text("Done.")), *opened()]
    assert all(out is given for out, given in zip(kept(whole).messages, whole, strict=True))


def test_the_call_costs_what_is_sent_of_it():
    state = {"output": "x" * 500, "input": {"path": "a"}, "metadata": {"diff": "y" * 900}}
    call, result = (m.parts[0] for m in read(oc("assistant", ran("c1", **state))).messages)
    assert call.cost_chars == len('{"callID":"c1","tool":"read","input":{"path":"a"}}')
    assert result.cost_chars == 500


def test_a_pruned_result_costs_what_is_sent_and_keeps_what_is_stored():
    pruned = oc(
        "assistant", ran("c1", output="x" * 900, time={"start": 1, "end": 2, "compacted": 3})
    )
    result = read(pruned).messages[1].parts[0]
    assert (result.cost_chars, result.text()) == (33, "[Old tool result content cleared]")
    messages = [*opened(pruned), *opened()]
    assert kept(messages).messages[1] is pruned
    chat = kept(messages, to="openai").messages
    assert chat[2] == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "[Old tool result content cleared]",
    }


@pytest.mark.parametrize(
    ("state", "content", "is_error"),
    [
        ({"status": "error", "error": "no"}, "no", True),
        (
            {"status": "error", "error": "no", "metadata": {"interrupted": True, "output": "half"}},
            "half",
            False,
        ),
        ({"output": ""}, "", False),
    ],
)
def test_a_result_is_what_opencode_sends(state: Any, content: str, is_error: bool):
    result = read(oc("assistant", ran("c", **state))).messages[1].parts[0]
    assert (result.text(), result.is_error) == (content, is_error)


@pytest.mark.parametrize("status", ["pending", "running", "from_the_future"])
def test_a_call_that_never_finished_is_open(status: str):
    messages = opened(
        oc("assistant", text("Hm."), ran("a"), ran("b", status=status, output=None)), *opened()
    )
    done = kept(messages)
    assert done.report.excluded == {"open-call": 1}
    assert done.messages[1] == {"info": {"role": "assistant"}, "parts": [text("Hm."), ran("a")]}
    assert done.messages[1]["parts"][1] is messages[1]["parts"][1]


def test_attached_images_are_part_of_the_result():
    shot = ran("c", attachments=[{"type": "file", "mime": "image/png", "url": DATA_URL}])
    messages = opened(oc("assistant", shot), *opened())
    result = read(*messages).messages[2].parts[0]
    assert result.images == ((24, 18, len(PNG)),)
    assert kept(messages).messages[1] is messages[1]
    block = kept(messages, to="anthropic").messages[2]["content"][0]["content"][1]
    assert block["source"]["data"] == PNG


def test_synthetic_text_is_a_machines():
    synthetic = text("Called the Read tool with a.py", synthetic=True)
    marker = text("[recap: 1 block of turn 1 omitted]", synthetic=True)
    parts = read(oc("user", text("fix it"), synthetic, marker)).messages[0].parts
    assert [part.author for part in parts] == ["human", "injected", "marker"]


def test_what_is_not_sent_is_no_part_and_goes_with_its_message():
    plain = {"type": "file", "mime": "text/plain", "url": "file:///a.py", "source": {"text": {}}}
    message = oc(
        "user", plain, text("fix it"), text("a note", ignored=True), {"type": "agent", "name": "x"}
    )
    assert kinds(read(message).messages) == [("user", ["text"])]
    assert kept([message]).messages[0] is message


def test_images_and_files_of_the_person():
    image = {"type": "file", "mime": "image/png", "url": DATA_URL, "source": {"text": {}}}
    pdf = {"type": "file", "mime": "application/pdf", "url": "data:application/pdf;base64,eA=="}
    parts = read(oc("user", image, pdf, text("look"))).messages[0].parts
    assert [(p.kind, p.author) for p in parts] == [
        ("image", "human"),
        ("other", "human"),
        ("text", "human"),
    ]
    assert kept([oc("user", image)], to="openai").messages[0]["content"] == [
        {"type": "image_url", "image_url": {"url": DATA_URL}}
    ]


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("compaction", "What did we do so far?"),
        ("subtask", "The following tool was executed by the user"),
    ],
)
def test_parts_that_stand_for_a_text(kind: str, sent: str):
    message = oc("user", {"type": kind, "prompt": "x"})
    part = read(message).messages[0].parts[0]
    assert (part.kind, part.author, part.text()) == ("text", "injected", sent)
    assert kept([*opened(), message, *opened()]).messages[1] is message
    chat = kept([*opened(), message, *opened()], to="openai").messages
    assert chat[1] == {"role": "user", "content": sent}


COMPACTED = [
    oc("user", text("first"), id="m1"),
    oc("assistant", text("one"), id="m2", parentID="m1"),
    oc("user", text("second"), id="m3"),
    oc("assistant", text("two"), id="m4", parentID="m3"),
    oc("user", {"type": "compaction", "auto": True}, id="m5"),
    oc("assistant", text("what was done"), id="m6", parentID="m5", summary=True, finish="stop"),
    oc("user", text("third"), id="m7"),
]


def actives(messages: list[Any]) -> list[bool]:
    return [m.is_active for m in read(*messages).messages]


def test_a_native_compaction_leaves_what_was_before():
    assert actives(COMPACTED) == [False] * 4 + [True] * 3
    done = recap.compact(COMPACTED, retention="0.3")
    assert recap.check(done.messages, "opencode") == []


def test_a_compaction_may_keep_a_tail():
    tail = [*COMPACTED]
    tail[4] = oc("user", {"type": "compaction", "auto": True, "tail_start_id": "m3"}, id="m5")
    assert actives(tail) == [False] * 2 + [True] * 5


def test_a_compaction_that_failed_or_is_not_done_leaves_all():
    failed = [*COMPACTED]
    failed[5] = oc(
        "assistant",
        text("x"),
        id="m6",
        parentID="m5",
        summary=True,
        finish="stop",
        error={"name": "APIError"},
    )
    assert all(actives(failed))
    assert all(actives(COMPACTED[:5]))


def test_blanked_ids_fall_back_to_positions():
    blank = [
        m | {"info": m["info"] | {"id": "REDACTED", "parentID": "REDACTED"}} for m in COMPACTED
    ]
    assert actives(blank) == [False] * 4 + [True] * 3
    tools = opened(
        oc("assistant", ran("REDACTED"), ran("REDACTED")),
        oc("assistant", ran("REDACTED")),
        *opened(),
    )
    assert kept(tools).messages == tools
    for to in ("anthropic", "openai", "responses", "langchain", "gemini"):
        done = kept(tools, to=to)
        assert [f for f in recap.check(done.messages, to) if f.severity == "error"] == []
        assert done.report.excluded == {}


def test_a_failed_answer_is_not_context_unless_it_was_aborted_on_its_way():
    failed = oc("assistant", text("x"), error={"name": "APIError"})
    aborted = oc("assistant", START, ran("c"), error={"name": "MessageAbortedError"})
    silent = oc("assistant", START, error={"name": "MessageAbortedError"})
    transcript = read(*opened(failed, aborted, silent))
    assert kinds(transcript.messages) == [
        ("user", ["text"]),
        ("assistant", ["call"]),
        ("tool", ["result"]),
    ]
    assert transcript.counts == {"failed_messages": 2}


def test_words_typed_while_the_agent_works_are_steering():
    messages = opened(oc("assistant", ran("a"), finish="tool-calls"), oc("user", text("use b")))
    assert read(*messages).messages[-1].parts[0].author == "steering"
    stopped = opened(oc("assistant", ran("a"), finish="stop"), oc("user", text("next")))
    assert read(*stopped).messages[-1].parts[0].author == "human"


CHAT = [
    {"role": "system", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "fix"},
            {"type": "image_url", "image_url": {"url": DATA_URL}},
        ],
    },
    {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"p": 1}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
    {"role": "user", "content": "<system-reminder>x</system-reminder>"},
    {"role": "user", "content": "next"},
]


def test_foreign_messages_become_messages_of_info_and_parts():
    done = kept(CHAT, to="opencode")
    state = {
        "status": "completed",
        "input": {"p": 1},
        "output": "done",
        "title": "",
        "metadata": {},
        "time": {"start": 0, "end": 0},
    }
    assert done.messages == [
        oc("user", text("fix"), {"type": "file", "mime": "image/png", "url": DATA_URL}),
        oc(
            "assistant",
            text("Looking."),
            {"type": "tool", "callID": "c1", "tool": "read", "state": state},
        ),
        oc("user", text("<system-reminder>x</system-reminder>", synthetic=True)),
        oc("user", text("next")),
    ]
    assert done.system == [text("Be brief.")]
    assert recap.check(done.messages, "opencode") == []
    assert [m.role for m in read(*done.messages).messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "user",
    ]


def test_a_foreign_error_stays_an_error():
    blocks = [{"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}]
    messages = [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
        },
        {"role": "user", "content": blocks},
        {"role": "user", "content": "next"},
    ]
    state = kept(messages, to="opencode").messages[1]["parts"][0]["state"]
    assert (state["status"], state["error"]) == ("error", "no")


def test_markers_are_synthetic_texts():
    messages = [*opened(oc("assistant", text("x" * 5000))), *opened()]
    done = recap.compact(messages, retention="0.4", policy="recency")
    assert done.report.markers == 1
    assert done.messages[1] == oc(
        "user", text("[recap: 1 block of turn 1 omitted]", synthetic=True)
    )


def test_kept_messages_leave_an_export_byte_for_byte():
    texts = [
        b'{ "info":{"role":"user"},"parts" : [{"type":"text","text":"caf\\u00e9","x":1.50}] }',
        b'{"info":{"role":"assistant"},"parts":[{"type":"step-start"},{"type":"tool","callID":"c",'
        b'"tool":"f","state":{"status":"completed","input":{ },"output":"\xe2\x80\xa8","time":{}}}]}',
        b'{"info":{"role":"user"},"parts":[{"type":"text","text":"next"}]}',
    ]
    data = b'{"info": {"id": "ses_1"}, "messages": [\n' + b" ,\n".join(texts) + b"]}"
    transcript = opencode.read(in_file(data))
    assert transcript.session_id == "ses_1"
    done = recap.session.compact_transcript(transcript, settings=KEEP_ALL)
    assert [to_bytes(tree) for tree in done.rendering.messages] == texts


def test_exports_and_lists_are_recognised():
    export = {"info": {"id": "ses_1"}, "messages": opened()}
    for document in (export, opened()):
        assert read_bytes(file(document).dump()).format == "opencode"
        assert read_messages(document).dialect == "opencode"
    assert opencode.detect({"info": {"id": "ses_1"}, "messages": []}) == "a session id ses_"
    assert opencode.detect({"info": {"id": "x"}}) is None


def test_faults_are_reported_and_left_out():
    faults = [
        5,
        {"info": {"role": "x"}, "parts": []},
        {"info": {"role": "user"}},
        oc("user", "bare", text(5)),
    ]
    found = read(*faults, oc("assistant", ran(part={"tool": ""}), {"type": "reasoning"}))
    assert [f.code for f in found.findings] == [
        "not-a-message", "unknown-role", "no-content", *["malformed-block"] * 4,
    ]  # fmt: skip
    assert not any(m.parts for m in found.messages)
