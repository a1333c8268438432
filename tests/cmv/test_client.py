"""What the real client sends when it resumes what we wrote; skipped where it is not installed.

``CLAUDE_BIN`` names the client; see the README of the harness in the shared cases. It talks to a stub of
the provider on this computer alone.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from recap.cmv.facts import slug
from recap.cmv.options import TrimOptions
from tests.cmv.raw_session import texts
from tests.cmv.worlds import CASES, World, dumped, tool_steps

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.client, pytest.mark.slow]

HARNESS = CASES / "claude_client"
EAGER = TrimOptions(keep_last=0, yes=True)
MOST_BYTES = 3_000_000


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """The real client beside a stub of the provider."""
    if not (HARNESS / "harness.py").is_file():
        pytest.skip(f"no harness in {HARNESS}")
    sys.path.insert(0, str(HARNESS))
    try:
        import harness
    finally:
        sys.path.remove(str(HARNESS))
    if harness.find_client() is None:
        pytest.skip(
            "the client is not installed: npm install @anthropic-ai/claude-code, CLAUDE_BIN"
        )
    with harness.ClaudeClient() as running:
        yield running


NOTICE = "<task-notification>"


def demand_same_texts(sent: Any, original: Any, data: bytes) -> None:
    """Demand equal texts, but for notices that the log does not hold.

    The client makes those up, of background tasks that a copy of a result (``toolUseResult``) says were
    launched; a trim takes such copies away.
    """
    is_made_up = NOTICE.encode() not in data
    assert sent.messages is not None, sent.explain()
    assert sent.errors == []
    for role in ("user", "assistant"):
        expected = original.texts(role)
        if is_made_up:
            expected = [text for text in expected if not text.startswith(NOTICE)]
        assert sent.texts(role) == expected


def crafted() -> list[Any]:
    """Return the crafted inputs that the client can resume."""
    inputs = sorted((CASES / "inputs").glob("*.jsonl"))
    return [pytest.param(path, id=path.stem[:3]) for path in inputs]


@pytest.mark.parametrize("path", crafted())
def test_a_trimmed_session_sends_the_texts_of_the_original(
    client: Any, world: World, path: Path
) -> None:
    original = client.resume(path)
    if original.messages is None:
        pytest.skip(f"the client does not resume the original: {original.explain()[:80]}")
    row = world.snap(path, "one")
    made = world.branch(row, trim=EAGER, project=client.cwd)
    sent = client.resume(made.path)
    demand_same_texts(sent, original, path.read_bytes())
    assert sent.chars() <= original.chars()


@pytest.mark.corpus
def test_real_sessions_send_the_texts_of_the_originals(
    client: Any, world: World, corpus: Path, record_property: pytest.RecordProperty
) -> None:
    seen = []
    for path in sorted(corpus.rglob("*.jsonl")):
        if path.stat().st_size > MOST_BYTES or b'"parentUuid"' not in path.read_bytes()[:65536]:
            continue
        original = client.resume(path)
        if original.messages is None:
            continue
        made = world.branch(world.snap(path, f"s{len(seen)}"), trim=EAGER, project=client.cwd)
        sent = client.resume(made.path)
        demand_same_texts(sent, original, path.read_bytes())
        seen.append(1 - sent.chars() / original.chars())
    assert seen
    record_property("sessions", len(seen))
    record_property("mean reduction of what is sent", round(sum(seen) / len(seen), 3))


def test_the_client_finds_a_branch_by_its_id_and_sends_the_orientation(
    client: Any, world: World
) -> None:
    """The file lies where we put it, not where the harness would: resumed as a person does it."""
    there = World(client.home, world.store)
    data = dumped(tool_steps(["long output " * 300, "short"]))
    made = there.branch(
        there.snap(there.session(data, project=str(client.cwd)), "one"),
        trim=EAGER, orientation="only auth now", project=client.cwd,
    )  # fmt: skip
    assert made.path.parent.name == slug(str(client.cwd))
    begun = len(client.api.requests)
    status, _, err = client.run("-p", *made.resume[1:], "and now?")
    assert status == 0, err
    body = client.api.messages_requests(begun)[-1]["body"]
    blocks = [
        block
        for message in body["messages"]
        for block in (
            message["content"]
            if isinstance(message["content"], list)
            else [{"type": "text", "text": message["content"]}]
        )
    ]
    said = [block["text"].rstrip("\n") for block in blocks if block["type"] == "text"]
    assert [text for text in said if text in ("please look", "only auth now", "and now?")] == [
        "please look", "only auth now", "and now?",
    ]  # fmt: skip
    results = [block for block in blocks if block["type"] == "tool_result"]
    assert "[Trimmed: ~3600 chars of Read /f0; restore: recap show" in str(results[0]["content"])
    assert results[1]["content"] in ("short", [{"type": "text", "text": "short"}])
    assert texts(made.path.read_bytes(), "user")[:2] == ["please look", "only auth now"]
