"""Read, keep everything, write in the same dialect: every message is the very bytes of the file.

The slices a message is compared with are cut out of the file's text by the test itself. Where a
message holds what no vendor takes, such as a call without its result, the number that stay as they
are is pinned.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from recap.config import Settings
from recap.session import compact_transcript
from recap.transcript.formats import read_bytes
from recap.transcript.tree import to_bytes
from tests.e2e.raw_slices import elements, members

if TYPE_CHECKING:
    from pathlib import Path

LISTS = {
    "openai-chat/tau-airline-t14-trial2.json": ("openai", 22, 22),
    "openai-chat/tau-airline-t3-trial0.json": ("openai", 62, 62),
    "openai-chat/tau-airline-t31-trial0.json": ("openai", 36, 36),
    "anthropic-messages/anthropic-messages-48b4.json": ("anthropic", 94, 87),  # 7 open calls
    "langchain/langchain-messages_to_dict-tau3.json": ("langchain", 62, 62),
    "opencode/swarm-1turn-file.json": ("opencode", 26, 25),  # one holds nothing but thinking
}
"""File -> its dialect, the messages in it, and those that come out with their bytes."""

ITEMS = {
    "agentv-10turns-2compacted.jsonl": (581, 581),
    "agentv-13turns-compacted.jsonl": (943, 939),  # 2 open calls and what was said with them
    "agentv-26turns-aborted.jsonl": (550, 462),  # reasoning that was emptied, 1 open call
    "agentv-2turns-open.jsonl": (65, 53),  # the same, 2 open calls
    "ah-escalation-fixture.jsonl": (17, 14),  # 2 open calls
}
"""Rollout of Codex -> the items in it, and those that come out with their bytes."""

CAPTURES = 134
DOUBLED = ("gemini-cli/003.json", "gemini-cli/004.json", "gemini-cli/005.json")
"""Requests in which a client sent two results of one call twice: those messages change."""


def written(data: bytes, dialect: str) -> list[str]:
    """Return the messages that come out when everything is kept."""
    settings = Settings(retention="1", markers=False)
    done = compact_transcript(read_bytes(data), settings=settings)
    assert done.report.dialect == dialect
    return [to_bytes(tree).decode() for tree in done.rendering.messages]


def unchanged(given: list[str], out: list[str]) -> int:
    """Return how many of the messages are among the given ones, in their order."""
    rest = iter(given)
    known = set(given)
    same = [message for message in out if message in known]
    assert all(message in rest for message in same)
    return len(same)


@pytest.mark.corpus
@pytest.mark.parametrize("name", LISTS)
def test_messages_of_a_list_keep_their_bytes(corpus: Path, name: str):
    data = (corpus / "sessions" / name).read_bytes()
    dialect, count, exact = LISTS[name]
    document = members(data.decode())
    given = elements(document["traj" if "traj" in document else "messages"])
    out = written(data, dialect)
    assert (len(given), unchanged(given, out)) == (count, exact)
    assert out == given or exact < count


@pytest.mark.corpus
@pytest.mark.parametrize("name", ITEMS)
def test_items_of_the_responses_api_keep_their_bytes(corpus: Path, name: str):
    """The items that a client stored, as the list it sends."""
    lines = (corpus / "sessions" / "codex" / name).read_bytes().decode().split("\n")
    records = [members(line) for line in lines if line]
    given = [each["payload"] for each in records if each["type"] == '"response_item"']
    document = '{"input": [\n' + ",\n".join(given) + "]}"
    out = written(document.encode(), "responses")
    assert (len(given), unchanged(given, out)) == ITEMS[name]
    assert len(out) == ITEMS[name][1]


@pytest.mark.corpus
def test_messages_of_captured_requests_keep_their_bytes(corpus: Path):
    captures = corpus.parent / "cases" / "gateway" / "captures"
    if not captures.is_dir():
        pytest.skip(f"captured requests not found at {captures}")
    keys = {"messages": None, "input": "responses", "contents": "gemini"}
    paths = sorted(captures.glob("*/*.json"))
    for path in paths:
        body = members(path.read_bytes().decode())["body"]
        key = next(key for key in keys if key in json.loads(body))
        is_anthropic = "claude-code" in path.parent.name or "anthropic" in path.parent.name
        out = written(body.encode(), keys[key] or ("anthropic" if is_anthropic else "openai"))
        given = elements(members(body)[key])
        if f"{path.parent.name}/{path.name}" in DOUBLED:
            assert unchanged(given, out) == len(given) - 2
        else:
            assert out == given, path
    assert len(paths) == CAPTURES
