"""Requests that real clients sent, and real sessions, in the dialects of Responses and its neighbours.

What is expected is counted in the raw JSON, without recap.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import recap
from recap.config import Settings
from recap.session import compact_transcript
from recap.transcript.dialects import DIALECTS
from recap.transcript.formats import read_bytes
from recap.transcript.tree import to_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Message, Transcript

pytestmark = pytest.mark.corpus

RUNS = {
    "codex": "input",
    "codex-large-usage": "input",
    "forwarded-codex": "input",
    "opencode-responses": "input",
    "gemini-cli": "contents",
    "forwarded-gemini-cli": "contents",
}
"""Captured run -> key of the request's list."""

REPEATED = {"gemini-cli": 2}
"""Responses that the client sent twice after it resumed its session."""


class Counts(NamedTuple):
    """What a list holds: requests of the person, calls, results."""

    turns: int
    calls: int
    results: int


class Body(NamedTuple):
    """A request: its run, its list, and the bytes of its elements and of all of it."""

    run: str
    items: list[Any]
    texts: list[bytes]
    data: bytes


@pytest.fixture(scope="module")
def bodies(corpus: Path) -> list[Body]:
    folder = corpus.parent / "cases" / "gateway" / "captures"
    if not folder.is_dir():
        pytest.skip(f"captured requests not found at {folder}")
    found = []
    for run, key in RUNS.items():
        for path in sorted((folder / run).glob("*.json")):
            body = json.loads(path.read_bytes())["body"]
            texts = [json.dumps(item, indent=1).encode() for item in body[key]]
            rest = json.dumps({k: v for k, v in body.items() if k != key}).encode()
            data = b'{"%b": [ %b ],%b' % (key.encode(), b" ,\n".join(texts), rest[1:])
            found.append(Body(run, body[key], texts, data))
    return found


def raw_counts(items: list[Any]) -> Counts:
    """Return the counts of a list of either form."""
    turns = calls = results = 0
    for item in items:
        parts = item.get("parts") or item.get("content") or []
        texts = [p["text"] for p in parts if isinstance(p, dict) and "text" in p]
        is_typed = any(
            not t.startswith(("<environment_context>", "<session_context>")) for t in texts
        )
        turns += item.get("role") == "user" and is_typed
        calls += item.get("type") == "function_call" or sum("functionCall" in p for p in parts)
        results += item.get("type") == "function_call_output"
        results += sum("functionResponse" in p for p in parts)
    return Counts(turns, calls, results)


def read_counts(messages: tuple[Message, ...]) -> Counts:
    parts = [part for message in messages for part in message.parts]
    turns = sum(any(p.author == "human" and p.kind == "text" for p in m.parts) for m in messages)
    return Counts(
        turns, sum(p.kind == "call" for p in parts), sum(p.kind == "result" for p in parts)
    )


def errors(messages: Any, dialect: Any) -> list[str]:
    return [f.code for f in recap.check(messages, dialect) if f.severity == "error"]


def test_captured_requests_hold_what_the_raw_json_holds(bodies: list[Body]) -> None:
    total = [0, 0, 0]
    for body in bodies:
        transcript = read_bytes(body.data)
        expected = raw_counts(body.items)
        assert (read_counts(transcript.messages), transcript.findings) == (expected, ())
        total = [a + b for a, b in zip(total, expected, strict=True)]
    assert (len(bodies), total) == (40, [65, 63, 69])


def test_captured_requests_are_valid_but_for_responses_sent_twice(bodies: list[Body]) -> None:
    for body in bodies:
        found = errors(json.loads(body.data), "auto")
        assert set(found) <= ({"response-count"} if body.run in REPEATED else set()), body.run


def test_captured_requests_go_out_byte_for_byte(bodies: list[Body]) -> None:
    rewritten = 0
    for body in bodies:
        transcript = read_bytes(body.data)
        done = compact_transcript(transcript, settings=Settings(retention="1", markers=False))
        out = [to_bytes(tree) for tree in done.rendering.messages]
        assert len(out) == len(body.texts)
        changed = sum(a != b for a, b in zip(out, body.texts, strict=True))
        assert changed <= REPEATED.get(body.run, 0)
        rewritten += changed
    assert rewritten == 2 * 3  # the history of three requests after the resumption


@pytest.mark.parametrize("to", DIALECTS)
def test_captured_requests_are_valid_in_every_dialect(bodies: list[Body], to: Any) -> None:
    for body in bodies:
        transcript = read_bytes(body.data)
        for retention in ("0.05", "0.1", "0.3"):
            done = compact_transcript(transcript, settings=Settings(retention=retention), to=to)
            assert errors(done.messages, to) == []


def element_bytes(data: bytes) -> list[bytes]:
    """Return the bytes of the elements of the list ``messages``."""
    text, decoder = data.decode(), json.JSONDecoder()
    at = text.index("[", text.index('"messages"')) + 1
    found = []
    while True:
        at = len(text) - len(text[at:].lstrip(" \n\r\t,"))
        if text[at] == "]":
            return found
        end = decoder.raw_decode(text, at)[1]
        found.append(text[at:end].encode())
        at = end


def session(corpus: Path, name: str) -> tuple[bytes, Transcript]:
    data = (corpus / "sessions" / name).read_bytes()
    return data, read_bytes(data)


SESSIONS = {
    "langchain/langchain-messages_to_dict-tau3.json": Counts(11, 20, 20),
    "opencode/swarm-1turn-file.json": Counts(1, 33, 33),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_hold_what_the_raw_json_holds(corpus: Path, name: str) -> None:
    data, transcript = session(corpus, name)
    messages = json.loads(data)["messages"]
    fields = [message.get("data", message.get("info")) for message in messages]
    parts = [part for message in messages for part in message.get("parts", ())]
    tools = sum(part["type"] == "tool" for part in parts)
    calls = tools + sum(len(each.get("tool_calls") or ()) for each in fields)
    results = tools + sum("tool_call_id" in each for each in fields)
    typed = [
        m for m in messages if m.get("type") == "human" or m.get("info", {}).get("role") == "user"
    ]
    assert Counts(len(typed), calls, results) == SESSIONS[name]
    assert read_counts(transcript.messages) == SESSIONS[name]
    assert transcript.findings == ()


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_go_out_byte_for_byte(corpus: Path, name: str) -> None:
    data, transcript = session(corpus, name)
    done = compact_transcript(transcript, settings=Settings(retention="1", markers=False))
    expected = element_bytes(data)
    if transcript.format == "opencode":
        expected.pop()  # the answer that had only begun: nothing but thinking
        assert done.report.excluded == {"thinking-only": 1}
    assert [to_bytes(tree) for tree in done.rendering.messages] == expected


@pytest.mark.parametrize("to", DIALECTS)
@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_are_valid_in_every_dialect(corpus: Path, name: str, to: Any) -> None:
    _, transcript = session(corpus, name)
    for retention in ("0.05", "0.1", "0.3"):
        done = compact_transcript(transcript, settings=Settings(retention=retention), to=to)
        assert errors(done.messages, to) == []
