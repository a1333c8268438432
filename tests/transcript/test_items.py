from __future__ import annotations

from typing import Any

import pytest

from recap.transcript import anthropic, openai
from recap.transcript.items import is_message_list, items_of, list_in
from recap.transcript.model import Held
from tests.transcript.handles import file, held, in_file

USER = {"role": "user", "content": "fix it"}


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ([USER], [USER]),
        ({"messages": [USER], "traj": []}, [USER]),
        ({"messages": 5, "traj": [USER]}, [USER]),
        ({"messages": None}, None),
        ({}, None),
        ("text", None),
        (None, None),
    ],
)
def test_a_document_is_a_list_or_holds_one(document, found):
    assert list_in(document) == found


@pytest.mark.parametrize(
    ("document", "is_list"),
    [
        ([None, USER], True),
        ({"traj": [USER]}, True),
        ([{"role": ["user"]}], False),
        ([{"role": "human"}], False),
        ([{"type": "human"}], False),
        ([], False),
    ],
)
def test_a_message_list_shows_a_role_of_a_vendor(document, is_list):
    assert is_message_list(document) is is_list


@pytest.mark.parametrize("handle", [held, file])
def test_handles_on_the_elements_and_the_fields_beside_them(handle):
    items, fields = items_of(handle({"system": "x", "messages": [USER, 5]}))
    assert [item.load() for item in items] == [USER, 5]
    assert fields["system"].load() == "x"
    items, fields = items_of(handle([USER]))
    assert [item.load() for item in items] == [USER]
    assert not fields


@pytest.mark.parametrize("document", [{}, [], 5, "x", None, {"messages": 5}])
@pytest.mark.parametrize("handle", [held, file])
def test_a_document_without_a_list_has_no_elements(document, handle):
    assert items_of(handle(document))[0] == []


@pytest.mark.parametrize("read", [anthropic.read, openai.read])
def test_a_file_nested_without_end_is_reported(read):
    deep = b"[" * 100_000 + b"]" * 100_000
    transcript = read(in_file(b'[{"role":"user","content":' + deep + b"}]"))
    assert transcript.messages == ()
    assert "no-messages" in [finding.code for finding in transcript.findings]


def test_a_message_that_cannot_be_encoded_costs_only_itself():
    loop: list[Any] = []
    loop.append(loop)
    answer = {"role": "tool", "tool_call_id": "a", "content": loop}
    transcript = openai.read(Held([USER, answer, USER], False))
    assert [message.line for message in transcript.messages] == [1, 3]
    assert ("unreadable-message", 2) in [(f.code, f.line) for f in transcript.findings]


@pytest.mark.parametrize("read", [anthropic.read, openai.read])
def test_a_block_that_cannot_be_encoded_costs_only_itself(read):
    block: dict[str, Any] = {"type": "odd"}
    block["again"] = block
    message = {"role": "user", "content": [block, {"type": "text", "text": "fix it"}]}
    transcript = read(Held([message], False))
    assert [part.text() for part in transcript.messages[0].parts] == ["fix it"]
    assert transcript.messages[0].envelope.size == 2
    assert [f.code for f in transcript.findings] == ["malformed-block", "not-strict-json"]
