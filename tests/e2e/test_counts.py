"""What a person said, the calls and the results of every real session, as counted in the raw JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from recap.transcript.formats import open_log
from recap.transcript.model import HUMAN_AUTHORS
from tests.e2e.raw import LEFT_OUT, read_sessions
from tests.e2e.raw_counts import read_counts
from tests.e2e.raw_words import human, spoken
from tests.e2e.test_sweep import files

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Transcript

TOTALS = {
    "aider": (81, 0, 0),
    "anthropic-messages": (7, 47, 40),
    "claude-code": (168, 1173, 1171),
    "claude-web": (5, 12, 12),
    "codex": (56, 671, 664),
    "copilot-cli": (2, 68, 68),
    "gemini-cli": (7, 15, 15),
    "langchain": (11, 20, 20),
    "mini-swe-agent": (1, 0, 0),
    "openai-chat": (28, 32, 32),
    "opencode": (1, 33, 33),
    "openhands": (2, 25, 23),
    "pi": (88, 391, 373),
    "swe-agent": (2, 13, 13),
    "swe-together": (307, 3012, 2762),
}
"""Format -> messages with a person's words, calls and results in all its files."""


def spoken_in(transcript: Transcript) -> tuple[int, Counter[str]]:
    """Return how many messages hold words of a person, and the words."""
    said = [
        (index, spoken(text) if part.kind == "result" else human(text) or text)
        for index, message in enumerate(transcript.messages)
        for part in message.parts
        if part.kind in ("text", "result")
        and part.author in HUMAN_AUTHORS
        and not part.is_blank
        and (text := part.text())
    ]
    return len({index for index, _ in said}), Counter(words for _, words in said)


def counted_in(path: Path) -> tuple[int, Counter[str]]:
    """Return the same, from the raw bytes of the file."""
    said = [
        each for each in read_sessions(path)[0].said if each.at not in LEFT_OUT.get(path.name, ())
    ]
    return len({each.at for each in said}), Counter(each.words for each in said)


@pytest.mark.corpus
def test_requests_calls_and_results_are_those_of_the_raw_json(corpus: Path):
    totals: dict[str, Counter[str]] = {}
    for name in files(corpus):
        path = corpus / name
        transcript = open_log(path)
        kinds = Counter(part.kind for message in transcript.messages for part in message.parts)
        requests, words = spoken_in(transcript)
        assert transcript.format == path.parent.name
        assert (requests, words) == counted_in(path), name
        assert (kinds["call"], kinds["result"]) == read_counts(path), name
        totals.setdefault(transcript.format, Counter()).update(
            requests=requests, calls=kinds["call"], results=kinds["result"]
        )
    assert {name: tuple(each.values()) for name, each in totals.items()} == TOTALS
