from __future__ import annotations

import copy
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from recap.errors import UsageError
from recap.transcript import anthropic, openai
from recap.transcript.lists import read_messages
from recap.transcript.tree import to_bytes, to_object
from tests.transcript.handles import ANTHROPIC, MANGLED, OPENAI, kept

if TYPE_CHECKING:
    from recap.transcript.model import Transcript

USE = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
WRITERS = {"anthropic": anthropic, "openai": openai}


def user(content: Any = "fix it") -> dict[str, Any]:
    return {"role": "user", "content": content}


def words(transcript: Transcript) -> list[str]:
    return [part.text() for message in transcript.messages for part in message.parts]


def codes(transcript: Transcript) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in transcript.findings]


@pytest.mark.parametrize(
    ("messages", "dialect"),
    [
        ([user(), {"role": "assistant", "content": [USE]}], "anthropic"),
        ([user(), {"role": "assistant", "content": None, "tool_calls": [CALL]}], "openai"),
        ([user(), {"role": "tool", "tool_call_id": "a", "content": "x"}], "openai"),
        ([user([{"type": "image_url", "image_url": {"url": "u"}}])], "openai"),
        ([user([{"type": "image", "source": {"type": "url", "url": "u"}}])], "anthropic"),
        ([{"role": "system", "content": "x"}, user()], "openai"),
        ([{"role": "developer", "content": "x"}, user()], "openai"),
        (
            [{"role": "system", "content": "x"}, {"role": "assistant", "content": [USE]}],
            "anthropic",
        ),
        ([user()], "openai"),
        ([user([{"type": "text", "text": "x"}])], "openai"),
        ({"messages": [user()], "system": "x"}, "anthropic"),
        ({"messages": [user()]}, "openai"),
        ([], "openai"),
    ],
)
def test_the_dialect_is_the_one_the_messages_show(messages, dialect):
    transcript = read_messages(messages)
    assert transcript.dialect == dialect
    assert transcript.evidence


@pytest.mark.parametrize("dialect", ["anthropic", "openai"])
def test_the_caller_may_name_the_dialect(dialect):
    transcript = read_messages([user()], dialect)
    assert (transcript.dialect, words(transcript)) == (dialect, ["fix it"])


def test_an_unknown_dialect_is_refused():
    with pytest.raises(UsageError, match="unknown dialect 'cohere'"):
        read_messages([user()], "cohere")


@pytest.mark.parametrize("messages", ["fix it", b"fix it", 5, None])
def test_what_is_no_list_is_refused(messages):
    with pytest.raises(UsageError, match="messages must be"):
        read_messages(messages)


@pytest.mark.parametrize("wrap", [list, tuple, iter])
def test_any_collection_of_messages_is_read(wrap):
    assert words(read_messages(wrap([user("a"), user("b")]))) == ["a", "b"]


def test_a_request_document_is_read_with_its_system_text():
    request = {"model": "m", "system": "be brief", "messages": (user(),), "tools": [object()]}
    transcript = read_messages(request)
    assert [message.role for message in transcript.messages] == ["system", "user"]
    assert words(transcript) == ["be brief", "fix it"]


@pytest.mark.parametrize("document", [[], {}, user(), {"messages": "fix it"}])
def test_a_document_without_a_list_is_reported(document):
    transcript = read_messages(document)
    assert transcript.messages == ()
    assert codes(transcript) == [("no-messages", 0)]


def test_messages_that_are_other_mappings_are_read_from_a_copy():
    content = (MappingProxyType({"type": "text", "text": "fix it"}),)
    transcript = read_messages([MappingProxyType(user(content))], "anthropic")
    assert words(transcript) == ["fix it"]
    assert codes(transcript) == [("not-plain-json", 1)]
    block = {"type": "text", "text": "fix it"}
    [message] = transcript.messages
    assert to_object(anthropic.write_message("user", message.parts)) == [user([block])]


class Model:
    """A message object of a vendor's SDK."""

    def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
        fields = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        return {
            key: value for key, value in fields.items() if value is not None or not exclude_none
        }


def test_objects_of_the_vendors_libraries_are_read():
    transcript = read_messages([user(), Model()])
    assert [p.call_id for p in transcript.messages[1].parts] == ["a"]
    assert codes(transcript) == [("not-plain-json", 2)]


def test_a_cycle_is_cut_and_the_words_beside_it_stay():
    block: dict[str, Any] = {"type": "text", "text": "fix it"}
    block["again"] = block
    looped: list[Any] = [block, {"type": "tool_use", "id": "a", "name": "f", "input": {}}]
    looped[1]["input"]["list"] = looped
    transcript = read_messages([{"role": "assistant", "content": looped}])
    assert words(transcript)[0] == "fix it"
    assert codes(transcript) == [("not-plain-json", 1)]
    json.loads(to_bytes(anthropic.write_message("assistant", transcript.messages[0].parts)[0]))


def test_values_json_does_not_have_become_text():
    odd = {"when": {1, 2}, "data": b"x", 5: object()}
    transcript = read_messages([{"role": "assistant", "content": [{**USE, "input": odd}]}])
    assert codes(transcript) == [("not-plain-json", 1)]
    payload = transcript.messages[0].parts[0].payload()
    assert set(payload) == {"when", "data", "5"}
    assert all(isinstance(value, str) for value in payload.values())


@pytest.mark.parametrize("depth", [150, 500, 5_000, 200_000])
def test_nesting_without_end_costs_no_words(depth):
    deep: Any = "x"
    for _ in range(depth):
        deep = [deep]
    transcript = read_messages(
        [{"role": "assistant", "content": [{**USE, "input": {"d": deep}}]}, user()]
    )
    assert words(transcript)[-1] == "fix it"
    for message in transcript.messages:
        to_bytes(anthropic.write_message(message.role, message.parts)[0])


def test_lone_surrogates_are_read_as_they_are_and_reported():
    """B050: a text cut in the middle of a pair made every later request invalid JSON."""
    raw = user("a\ud83d")
    transcript = read_messages([raw, user("b")])
    assert codes(transcript) == [("not-strict-json", 1)]
    assert words(transcript) == ["a\ud83d", "b"]
    assert to_object(transcript.messages[0].envelope.raw) == user("a\ufffd")
    assert to_object(transcript.messages[1].envelope.raw) == user("b")
    assert raw == user("a\ud83d")


@given(ANTHROPIC | OPENAI)
def test_everything_kept_is_the_same_list_of_the_same_objects(messages):
    before = copy.deepcopy(messages)
    transcript = read_messages(messages)
    out = to_object(kept(transcript.messages, transcript.dialect, WRITERS[transcript.dialect]))
    assert messages == before
    assert len(out) == len(messages)
    for sent, given_message in zip(out, messages, strict=True):
        assert sent is given_message


@given(MANGLED)
def test_no_list_makes_it_fail_and_none_is_changed(messages):
    before = repr(messages)
    transcript = read_messages(messages)
    assert repr(messages) == before
    assert transcript.lines == len(messages)
    for finding in transcript.findings:
        assert 1 <= finding.line <= len(messages)
