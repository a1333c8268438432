from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import recap
from recap.blocks.segment import segment
from recap.select.render import Rendering, RenderOptions, render
from recap.transcript.tree import to_bytes, to_object
from tests.testing import (
    call,
    conversation,
    message,
    read_messages,
    reply,
    result,
    text,
    thinking,
    user,
)

if TYPE_CHECKING:
    from recap.transcript.model import Dialect, Message


def rendered(
    messages: list[Message],
    kept: list[int],
    tail_start: int,
    dialect: Dialect = "anthropic",
    **options: Any,
) -> Rendering:
    return render(messages, segment(messages), kept, tail_start, RenderOptions(dialect, **options))


def objects(rendering: Rendering) -> list[Any]:
    return [to_object(tree) for tree in rendering.messages]


def test_kept_messages_are_the_same_objects():
    given_messages = conversation(3)
    transcript = read_messages(given_messages)
    blocks = segment(transcript.messages).blocks
    tail = max(i for i, m in enumerate(transcript.messages) if m.role == "user")
    kept = [i for i, b in enumerate(blocks) if b.refs[0].message < tail]
    out = objects(rendered(list(transcript.messages), kept, tail))
    assert len(out) == len(given_messages)
    assert all(new is old for new, old in zip(out, given_messages, strict=True))


def test_a_dropped_block_takes_its_results_along():
    messages = [
        user("go"),
        message("assistant", call("a")),
        message("tool", result("a")),
        user("on"),
    ]
    assert objects(rendered(messages, [0], 3)) == [
        {"role": "user", "content": "go"},
        {"role": "user", "content": "on"},
    ]


def test_words_beside_a_dropped_result_stay():
    """B001: the text in a user message survived only with the result beside it."""
    mixed = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
            {"type": "text", "text": "thanks"},
        ],
    }
    transcript = read_messages(
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]},
            mixed,
            {"role": "user", "content": "next"},
        ]
    )  # fmt: skip
    messages = list(transcript.messages)
    blocks = segment(messages).blocks
    steering = next(i for i, b in enumerate(blocks) if b.refs[0].message == 3)
    out = objects(rendered(messages, [0, steering], 4))
    assert out[1] == {"role": "user", "content": [mixed["content"][1]]}
    whole = objects(rendered(messages, [0, 1, steering], 4))
    assert whole[2] is mixed


def test_an_open_call_of_the_current_turn_is_left_out_with_its_thinking():
    """B016: thinking of the unfinished turn goes out unchanged or not at all."""
    messages = [
        user("go"),
        message("assistant", thinking("hm"), text("I run it", "agent"), call("a")),
    ]
    rendering = rendered(messages, [], 0)
    assert objects(rendering) == [{"role": "user", "content": "go"}]
    assert rendering.notes == {"unfinished-message": 1}


def test_words_in_a_refused_call_outweigh_an_open_call_beside_it():
    refusal = (
        "The user doesn't want to proceed with this tool use. The user said: x, the user said:\nNo"
    )
    messages = [
        user("go"),
        message("assistant", thinking("hm"), call("a"), call("b")),
        message("tool", result("a", refusal)),
    ]
    assert objects(rendered(messages, [], 0))[-1]["content"][0]["content"] == refusal


def test_thinking_of_the_current_turn_is_untouched():
    messages = [
        user("go"),
        message("assistant", thinking("hm"), call("a"), model="m1"),
        message("tool", result("a")),
    ]
    out = objects(rendered(messages, [], 0))
    assert out[1]["content"][0] is messages[1].parts[0].raw.load()


def test_thinking_of_another_model_or_without_signature_is_left_out():
    """B018: signatures are bound to the model that made them."""
    messages = [
        user("go"),
        message("assistant", thinking("a"), text("one", "agent"), model="old"),
        message("assistant", thinking("b"), text("two", "agent"), model="new"),
        message("assistant", thinking("c", signature=""), text("three", "agent"), model="new"),
        user("on"),
    ]
    rendering = rendered(messages, [0, 1, 2, 3], 4)
    contents = [m["content"] for m in objects(rendering) if m["role"] == "assistant"]
    assert [content[0]["type"] if isinstance(content, list) else content for content in contents] == [
        "one", "thinking", "three",
    ]  # fmt: skip
    assert rendering.notes == {"thinking-of-another-model": 1, "thinking-unsigned": 1}


def test_an_answer_before_the_first_user_message_does_not_go_to_anthropic():
    messages = [reply("hello"), user("go"), user("on")]
    rendering = rendered(messages, [0, 1], 2)
    assert [m["role"] for m in objects(rendering)] == ["user", "user"]
    assert rendering.notes == {"before-first-user": 1}


def test_repeated_call_ids_are_told_apart_on_both_halves():
    messages = [user("go")]
    for body in ("first", "second"):
        messages += [
            message("assistant", call("REDACTED")),
            message("tool", result("REDACTED", body)),
        ]
    messages.append(user("on"))
    rendering = rendered(messages, [0, 1, 2], 5)
    out = objects(rendering)
    ids = [m["content"][0]["id"] for m in out if m["role"] == "assistant"]
    answered = [m["content"][0]["tool_use_id"] for m in (out[2], out[4])]
    assert ids == answered == ["REDACTED", "REDACTED_2"]
    assert [m["content"][0]["content"] for m in (out[2], out[4])] == ["first", "second"]
    assert rendering.notes == {"call-id-replaced": 1}


def test_old_images_give_way_when_there_are_too_many():
    """B054: one image too many made every later request fail."""
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
    }
    given_messages = [
        {"role": "user", "content": [{"type": "text", "text": f"look {i}"}, image]}
        for i in range(130)
    ]
    done = recap.compact(given_messages, "what do you see?", retention="1")
    kinds = [[b["type"] for b in m["content"]] for m in done.messages[:-1]]
    assert kinds.count(["text", "image"]) == 100
    assert kinds[:30] == [["text", "text"]] * 30
    assert done.report.notes["image-over-limit"] == 30


def test_markers_say_what_is_missing_and_never_part_a_pair():
    transcript = read_messages(conversation(4, steps=4))
    messages = list(transcript.messages)
    tail = max(i for i, m in enumerate(messages) if m.role == "user")
    blocks = [b for b in segment(messages).blocks if b.refs[0].message < tail]
    kept = [i for i, b in enumerate(blocks) if b.kind == "user" or i % 3 == 0]
    rendering = rendered(messages, kept, tail, marker_budget_chars=100_000)
    out = objects(rendering)
    markers = [m for m in out if str(m["content"]).startswith("[recap: ")]
    assert len(markers) == rendering.markers > 0
    assert recap.check(out, "anthropic") == []
    assert rendering.marker_chars == sum(len(m["content"]) for m in markers)


def test_the_prefix_stays_the_same_while_the_turn_goes_on():
    """B074, B076: a prefix that changes within a turn empties the provider's cache."""
    given_messages = conversation(5)
    start = max(i for i, m in enumerate(given_messages) if "Please fix" in m["content"])
    first = recap.compact(given_messages[: start + 1], retention="0.2")
    prefix = first.to_json().split(b"\n")[: len(first.messages)]
    assert len(prefix) > 5
    for end in range(start + 2, len(given_messages) + 1):
        done = recap.compact(given_messages[:end], retention="0.2")
        assert done.to_json().split(b"\n")[: len(prefix)] == prefix


@given(st.data())
def test_any_choice_of_blocks_renders_validly_in_both_dialects(data: st.DataObject):
    transcript = read_messages(conversation(3))
    messages = list(transcript.messages)
    tail = max(i for i, m in enumerate(messages) if m.role == "user")
    blocks = [b for b in segment(messages).blocks if b.refs[0].message < tail]
    kept = [i for i, b in enumerate(blocks) if b.kind == "user" or data.draw(st.booleans())]
    for dialect in ("anthropic", "openai"):
        first = rendered(messages, kept, tail, dialect, marker_budget_chars=2000)
        again = rendered(messages, kept, tail, dialect, marker_budget_chars=2000)
        assert recap.check(objects(first), dialect) == []
        assert [to_bytes(t) for t in first.messages] == [to_bytes(t) for t in again.messages]


def test_a_run_of_answers_before_a_call_is_one_model_turn_for_gemini():
    call_message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "r", "arguments": "{}"}}
        ],
    }
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "one"},
        {"role": "assistant", "content": "two"},
        call_message,
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    done = recap.compact(messages, to="gemini", retention="1")
    assert [content["role"] for content in done.messages] == ["user", "model", "user"]


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        pytest.param({"a": 1}, {"content": "x"}, id="arguments that are no text"),
        pytest.param("{}", {"content": 7}, id="a result that is no text"),
        pytest.param("{}", {"content": None}, id="a result of nothing"),
    ],
)
def test_a_call_of_the_old_form_and_its_result_go_out_in_one_form(arguments: Any, answer: Any):
    """One of them went out anew, so that the vendor found no partner for the other."""
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "function_call": {"name": "f", "arguments": arguments}},
        {"role": "function", "name": "f", **answer},
    ]
    done = recap.compact(messages, "on", dialect="openai", retention="1")
    assert recap.check(done.messages, "openai") == []
    assert [m["role"] for m in done.messages] == ["user", "assistant", "tool", "user"]


def test_a_function_message_that_names_its_call_goes_out_as_a_tool_message():
    call_message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    }
    answer = {"role": "function", "name": "f", "tool_call_id": "c", "content": "x"}
    messages = [{"role": "user", "content": "go"}, call_message, answer]
    done = recap.compact(messages, "on", dialect="openai", retention="1")
    assert recap.check(done.messages, "openai") == []
    assert done.messages[2] == {"role": "tool", "tool_call_id": "c", "content": "x"}
