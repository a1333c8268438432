"""Sessions taken from the raw bytes alone: the sweep's own oracle of what a person wrote, and when.

Nothing here, nor in the modules beside it, imports recap. The rules are those of the formats as the
vendors write them, in their simplest form; where a file needs judgement the expectation is pinned in
the test.
"""

from __future__ import annotations

import json
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from tests.e2e import raw_lists, raw_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.e2e.raw_words import Session

REQUEST = "Please go on with the next step."
"""Arrives after the last line of each file."""

LEFT_OUT: Mapping[str, range] = {
    "ah-fork-fixture.jsonl": range(3, 7),  # the person took them back
    "lcm-v21153-attachments.jsonl": range(65, 67),  # the same
    "entire-ec38-orphan-open.jsonl": range(1, 3),  # the end of another session
}
"""Lines of a file that are no part of its conversation, once the line after them is there."""

LOGS: Mapping[str, Callable[[bytes], Session]] = {
    "claude-code": raw_logs.claude_code,
    "codex": raw_logs.codex,
    "copilot-cli": raw_logs.copilot_cli,
    "gemini-cli": raw_logs.gemini_cli,
    "pi": raw_logs.pi,
    "aider": raw_logs.aider,
}
"""Formats with a line for each event, by the folder of their files."""


class Step(NamedTuple):
    """A boundary of a session: the raw bytes up to it, and the words of the person so far.

    The file ends with the person's message, or with what the agent last did: then the person's next
    message is ``request``.
    """

    data: bytes
    said: tuple[str, ...]
    request: str | None = None


def read_sessions(path: Path) -> list[Session]:
    """Return the sessions of a file of the corpus: one, or one for each row of a benchmark."""
    data, folder = path.read_bytes(), path.parent.name
    if folder == "openhands":
        rows = [data] if path.suffix == ".json" else data.splitlines()
        return [raw_lists.openhands(json.loads(row)) for row in rows]
    if folder in LOGS and not (folder == "gemini-cli" and path.suffix == ".json"):
        return [LOGS[folder](data)]
    return [raw_lists.READERS[folder](json.loads(data))]


def read_steps(path: Path) -> list[Step]:
    """Return the boundaries of a file of the corpus, and its end with a request after it."""
    left_out = LEFT_OUT.get(path.name, range(0))
    steps: list[Step] = []
    for session in read_sessions(path):
        said = [(at, left_out.stop if at in left_out else inf, words) for at, words in session.said]
        for at in sorted({start for start, _, _ in said}):
            words = tuple(words for start, end, words in said if start <= at < end)
            steps.append(Step(session.cut(at), words))
        words = tuple(words for _, end, words in said if end == inf)
        steps.append(Step(session.cut(session.size), (*words, REQUEST), REQUEST))
    return steps
