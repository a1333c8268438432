"""Requests made by hand: side calls, cross-checks, epochs, and bodies that are no requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.recognise import COMPACTION_PROMPTS, Recognised, recognise
from recap.turns import SessionKey

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
STEP = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
]


def said(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


def seen(*messages: dict[str, Any], headers: Any = None, **changes: Any) -> Recognised:
    previous = changes.pop("previous", None)
    body = {"model": "m", "messages": list(messages), "tools": TOOLS} | changes
    return recognise(body, headers or {}, previous=previous)


def codex(turn: str, **fields: str) -> dict[str, str]:
    return {"X-Codex-Turn-Metadata": json.dumps({"turn_id": turn, **fields})}


def test_a_request_and_its_steps_are_one_turn() -> None:
    first, step = seen(said("go")), seen(said("go"), *STEP)
    assert (first.is_boundary, first.step, first.action) == (True, 0, "select")
    assert (step.is_boundary, step.step, step.action) == (False, 1, "reuse")
    assert first.turn_key == step.turn_key == first.selection_key


def test_a_system_message_after_the_request_hides_no_boundary() -> None:
    assert seen(said("go"), {"role": "system", "content": "mind the time"}).opens_turn


def test_steering_is_a_boundary_that_opens_no_turn() -> None:
    step, steered = seen(said("go"), *STEP), seen(said("go"), *STEP, said("rather that"))
    assert (steered.is_boundary, steered.is_steering, steered.opens_turn) == (True, True, False)
    assert steered.turn_key != step.turn_key
    assert steered.selection_key == step.selection_key
    assert steered.action == "reuse"


def test_a_request_without_tools_is_a_side_call() -> None:
    title = seen(said("Write a title"), tools=[])
    assert (title.is_side_call, title.passes, title.action) == (True, "side_call", "pass")


@pytest.mark.parametrize("mode", ["turn", "epoch", "observe", " TURN "])
def test_the_mode_header_opts_in_without_tools(mode: str) -> None:
    plain = seen(said("go"), tools=None, headers={"X-Recap-Mode": mode})
    assert (plain.is_side_call, plain.mode, plain.action) == (False, mode.strip().lower(), "select")


def test_a_mode_that_does_not_exist_asks_for_nothing() -> None:
    plain = seen(said("go"), tools=None, headers={"x-recap-mode": "fast"})
    assert (plain.is_side_call, plain.mode) == (True, "")


@pytest.mark.parametrize("prompt", COMPACTION_PROMPTS)
def test_a_compaction_prompt_passes_even_with_tools(prompt: str) -> None:
    asked = seen(said("go"), *STEP, said(f"\n{prompt} and more"))
    assert (asked.is_side_call, asked.passes) == (False, "native_compaction")
    quoted = seen(said(f"What does this mean: {prompt}"))
    assert quoted.passes == ""


def test_without_a_real_user_message_it_passes() -> None:
    lost = seen(*STEP)
    assert (lost.passes, lost.turn_key, lost.session.root) == ("no_user_message", "", "")
    assert not lost.is_boundary


def test_the_clients_turn_and_ours_agree_or_the_field_says_so() -> None:
    first = seen(said("go"), headers=codex("t1"))
    step = seen(said("go"), *STEP, headers=codex("t1"), previous=first)
    done = {"role": "assistant", "content": "done"}
    later = seen(said("go"), *STEP, done, said("on"), headers=codex("t2"), previous=step)
    assert (first.claimed_turn, later.claimed_turn) == ("t1", "t2")
    assert [step.turn_disagrees, later.turn_disagrees] == [False, False]
    other_id = seen(said("go"), *STEP, headers=codex("t2"), previous=first)
    other_turn = seen(said("else"), headers=codex("t1"), previous=first)
    assert other_id.turn_disagrees
    assert other_turn.turn_disagrees
    assert other_id.turn_key == first.turn_key


def test_without_two_claims_nothing_disagrees() -> None:
    first = seen(said("go"), headers=codex("t1"))
    assert not seen(said("else"), previous=first).turn_disagrees


def test_the_plugins_turn_is_a_claim_too() -> None:
    headers = {"x-recap-turn": "msg_1", "x-recap-agent": "build"}
    first = seen(said("go"), headers=headers)
    assert (first.claimed_turn, first.agent_name) == ("msg_1", "build")
    assert first.session == seen(said("go")).session


def test_codex_metadata_is_found_in_the_body_too() -> None:
    metadata = json.dumps({"turn_id": "t1", "history_initialization": "cold_resume"})
    resumed = seen(said("go"), client_metadata={"x-codex-turn-metadata": metadata})
    assert (resumed.claimed_turn, resumed.is_cold_resume) == ("t1", True)
    assert not seen(said("go"), headers=codex("t1", history_initialization="new")).is_cold_resume


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"turn_id": 7}', "[" * 5000])
def test_broken_metadata_claims_nothing(text: str) -> None:
    assert seen(said("go"), headers={"x-codex-turn-metadata": text}).claimed_turn == ""


def test_a_new_root_under_the_same_id_is_a_new_epoch() -> None:
    headers = {"x-session-id": "s1"}
    first = seen(said("go"), headers=headers)
    assert seen(said("summary"), headers=headers, previous=first).is_new_epoch
    assert not seen(said("go"), said("on"), headers=headers, previous=first).is_new_epoch
    other = seen(said("summary"), headers={"x-session-id": "s2"}, previous=first)
    title = seen(said("summary"), headers=headers, previous=first, tools=[])
    assert [other.is_new_epoch, title.is_new_epoch] == [False, False]


def test_without_an_id_another_root_is_another_session() -> None:
    first = seen(said("go"))
    assert not seen(said("else"), previous=first).is_new_epoch


def test_responses_may_send_a_plain_string() -> None:
    asked = recognise({"input": "go", "tools": TOOLS}, {})
    assert (asked.user_messages, asked.action) == (1, "select")
    assert asked.turn_key == seen(said("go")).turn_key


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "text", "messages", "input", "contents", "tools",
                 "metadata", "user_id", "client_metadata", "model", "user", "parts"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(
    st.dictionaries(st.sampled_from(["messages", "input", "contents", "tools", "metadata"]), JSON),
    st.dictionaries(st.sampled_from(["x-codex-turn-metadata", "session-id"]), st.text(max_size=9)),
)
def test_any_json_body_is_recognised(body: dict[str, Any], headers: dict[str, str]) -> None:
    found = recognise(body, headers)
    assert isinstance(found.session, SessionKey)
    assert bool(found.turn_key) == (found.user_messages > 0)
