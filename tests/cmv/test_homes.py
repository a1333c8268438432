"""How an agent is told to go on with a session, wherever its file is."""

from __future__ import annotations

from pathlib import Path

import pytest

from recap.cmv.facts import CLAUDE_CODE, CODEX, OPENCODE
from recap.cmv.homes import resume_words

ID = "5e551044-0000-4000-8000-000000000001"
ROLLOUT = f"rollout-2026-01-02T00-00-00-{ID}.jsonl"


@pytest.mark.parametrize(
    ("format", "path", "words"),
    [
        (CLAUDE_CODE, f"/h/.claude/projects/-srv/{ID}.jsonl", ("claude", "--resume", ID)),
        (CLAUDE_CODE, "/h/.claude/projects/-srv/x.jsonl", ("claude", "--resume", "/h/.claude/projects/-srv/x.jsonl")),
        (CLAUDE_CODE, f"/tmp/{ID}.jsonl", ("claude", "--resume", f"/tmp/{ID}.jsonl")),
        (CODEX, f"/h/.codex/sessions/2026/01/02/{ROLLOUT}", ("codex", "resume", ID)),
        (CODEX, "/tmp/out.jsonl", ()),
        (OPENCODE, "/tmp/out.json", ("opencode", "import", "/tmp/out.json")),
        ("openai-chat", "/tmp/out.json", ()),
    ],
)  # fmt: skip
def test_a_session_is_resumed_where_its_agent_finds_it(
    format: str, path: str, words: tuple[str, ...]
) -> None:
    """Codex knows sessions by their id, of files in its own folder alone."""
    assert resume_words(format, ID, Path(path)) == words
