"""What the chat hook adds to a request, by prompt length: CPU milliseconds beside SGLang's own work.

    python -m bench.sglang.bench_chat_hook TOKENIZER_FOLDER

No server is started: messages go through SGLang's order of calls with a real tokenizer (the one of
the folder), a template with tools, and the hook of ``recap.sglang``.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.sglang import small_server as small

LENGTHS = (1_000, 10_000, 30_000)
STEPS = 6
TEXT = "".join(
    path.read_text() for path in sorted(Path(__file__).parents[2].glob("recap/session/*.py"))
)


def words(number: int, length: int) -> str:
    """Return a piece of a real text."""
    at = number * 7919 % (len(TEXT) - length)
    return TEXT[at : at + length]


def step(number: int, length: int) -> list[dict[str, Any]]:
    """Return a call and its result."""
    arguments = json.dumps({"path": words(number, 40)})
    return [small.call(f"c{number}", arguments), small.result(f"c{number}", words(number, length))]


def session(tokenizer: Any, tokens: int) -> list[dict[str, Any]]:
    """Return an agent's session of about so many tokens that ends with a person's message."""
    messages: list[dict[str, Any]] = []
    size = turn = 0
    while size < tokens:
        new = [small.user(f"do {turn} {words(turn, 300)}")]
        for at in range(3):
            new += step(turn * 3 + at, 1500)
        new.append(small.assistant(words(turn, 400)))
        size += len(tokenizer.encode("".join(str(message["content"]) for message in new)))
        messages += new
        turn += 1
    return [*messages, small.user("go on")]


class Bench:
    """A small server with a tokenizer from disk."""

    def __init__(self, patch: pytest.MonkeyPatch, tokenizer: Any) -> None:
        self.server = small.SmallServer(patch, {})
        self.server.manager.tokenizer = tokenizer

    def request(self, messages: list[dict[str, Any]]) -> small.ChatRequest:
        fresh = json.loads(json.dumps(messages))  # every request brings new objects
        return small.ChatRequest([small.Message(item) for item in fresh], "m", small.TOOLS,
                                 session_id="s")  # fmt: skip

    def added(self, messages: list[dict[str, Any]]) -> tuple[float, float, int]:
        """Return CPU milliseconds of SGLang's own conversion, those added, and the tokens."""
        request = self.request(messages)
        start = time.process_time()
        adapted, _ = self.server._convert(request)
        own = time.process_time() - start
        request = self.request(messages)
        start = time.process_time()
        response = self.server.convert(request, {})
        both = time.process_time() - start
        assert response.payload is not None, self.server.front.counts.of("prepared")
        self.server.finish(response)
        return own * 1e3, (both - own) * 1e3, len(adapted.input_ids or ())


def main(folder: str) -> None:
    """Print one line for each length."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = small.TEMPLATE
    for length in LENGTHS:
        with pytest.MonkeyPatch.context() as patch:
            bench = Bench(patch, tokenizer)
            messages = session(tokenizer, length)
            _, first, tokens = bench.added(messages)
            steps = []
            for number in range(STEPS):
                messages += step(10_000 + number, 800)
                steps.append(bench.added(messages))
            messages += [small.assistant("done"), small.user("next")]
            _, boundary, _ = bench.added(messages)
        own, later = (statistics.median(row[at] for row in steps) for at in (0, 1))
        sys.stdout.write(
            f"{tokens} tokens, {len(messages)} messages: own {own:.1f} ms; added first {first:.1f}, "
            f"step {later:.1f}, new turn {boundary:.1f}\n"
        )


if __name__ == "__main__":
    main(sys.argv[1])
