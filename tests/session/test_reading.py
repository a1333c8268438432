"""A growing list gives what the whole list gives, whatever part of it is read."""

from __future__ import annotations

import copy
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.session import reading
from recap.session.reading import GrowingList
from recap.transcript.lists import read_messages
from tests.testing import conversation

if TYPE_CHECKING:
    from recap.transcript.model import Message, Transcript


def shape(transcript: Transcript) -> Any:
    return (
        transcript.dialect,
        transcript.format,
        [_shape(m) for m in transcript.messages],
        [(each.code, each.line) for each in transcript.findings],
    )


def _shape(message: Message) -> Any:
    parts = [(part.kind, part.author, part.digest, part.cost_chars) for part in message.parts]
    return message.role, message.line, message.is_active, message.envelope.size, parts


def openai(turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "be short"}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"look at module_{turn}"})
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": f"m{turn}.py"})
        if turn % 3 == 2:
            messages.append({"role": "user", "content": "no, the other one"})
        messages.append({"role": "assistant", "content": f"done {turn}"})
    return messages


def responses(turns: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for turn in range(turns):
        items.append({"type": "message", "role": "user", "content": f"look at module_{turn}"})
        items.append({"type": "reasoning", "id": f"r{turn}", "summary": []})
        call = {"type": "function_call", "call_id": f"c{turn}", "name": "ls", "arguments": "{}"}
        items.append(call)
        items.append({"type": "function_call_output", "call_id": f"c{turn}", "output": "a.py"})
        items.append({"type": "message", "role": "assistant", "content": f"done {turn}"})
    return items


MADE = {"anthropic": conversation(6), "openai": openai(6), "responses": responses(6)}


@pytest.mark.parametrize("dialect", MADE)
@given(data=st.data())
def test_a_list_read_as_it_grows_equals_the_list_read_whole(
    dialect: str, data: st.DataObject
) -> None:
    messages = copy.deepcopy(MADE[dialect])
    growing = GrowingList()
    for end in sorted(data.draw(st.lists(st.integers(1, len(messages)), max_size=6))):
        assert shape(growing.read(messages[:end])) == shape(read_messages(messages[:end]))


@pytest.mark.parametrize("dialect", MADE)
@given(data=st.data())
def test_a_list_that_shows_its_dialect_late_is_read_in_it(
    dialect: str, data: st.DataObject
) -> None:
    talk: list[dict[str, Any]] = []
    for turn in range(4):
        talk.append({"role": "user", "content": f"what is {turn}?"})
        talk.append({"role": "assistant", "content": f"a number {turn}"})
    messages = [*talk, *copy.deepcopy(MADE[dialect]), *copy.deepcopy(talk)]
    growing = GrowingList()
    for end in data.draw(st.lists(st.integers(1, len(messages)), max_size=6)):
        assert shape(growing.read(messages[:end])) == shape(read_messages(messages[:end]))


@given(seed=st.integers(0, 10_000))
def test_messages_changed_in_place_are_read_again(seed: int) -> None:
    draw = random.Random(seed)
    messages = copy.deepcopy(MADE["openai"])
    growing = GrowingList()
    growing.read(messages)
    for _ in range(3):
        message = draw.choice(messages)
        message["content"] = f"changed {draw.random()}"
        assert shape(growing.read(messages)) == shape(read_messages(messages))


def test_only_the_last_turn_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = copy.deepcopy(MADE["openai"])
    growing = GrowingList()
    growing.read(messages)
    sizes: list[int] = []

    def counted(items: Any, dialect: str = "auto") -> Transcript:
        sizes.append(len(items))
        return read_messages(items, dialect)

    monkeypatch.setattr(reading, "read_messages", counted)
    growing.read([*messages, {"role": "user", "content": "and now?"}])
    assert sizes == [6]  # the last turn of five messages, and the new one


def test_other_objects_with_the_same_content_are_taken() -> None:
    messages = copy.deepcopy(MADE["anthropic"])
    growing = GrowingList()
    growing.read(messages)
    again = copy.deepcopy(messages)
    transcript = growing.read(again)
    assert all(
        message.envelope.raw is None or message.envelope.raw.load() is again[message.line - 1]
        for message in transcript.messages
    )


def test_what_is_no_plain_json_is_read_whole() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": [object()]},
    ]
    growing = GrowingList()
    assert shape(growing.read(messages)) == shape(read_messages(messages))
    assert shape(growing.read(messages)) == shape(read_messages(messages))
