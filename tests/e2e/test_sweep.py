"""Every turn boundary of every real session: valid, within budget, whole pairs, no human word lost.

CI runs a fixed sample; `pytest --full-sweep tests/e2e` runs all of it and prints the number of
boundaries. The expected words come from the raw JSON (`raw.py`), not through recap.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any

import pytest

import recap
from recap.config import Settings
from recap.session import Compaction, compact_transcript
from recap.transcript.formats import read_bytes
from tests.e2e.raw import Step, read_steps, texts_of, words_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDERS = (
    "sessions/claude-code",
    "sessions/claude-web",
    "sessions/openai-chat",
    "sessions/anthropic-messages",
    "sessions/swe-together",
    "swe-together",
)
TWICE = frozenset(  # the same sessions as in swe-together/, in another byte layout
    (
        "sessions/swe-together/A-agent-swarm-task-ea4bd8.json",
        "sessions/swe-together/A-lock-code-manager-fix-7c955a.json",
        "sessions/swe-together/B-comfyui-lumina2-lora-prefix.json",
    )
)
SAMPLE = frozenset(
    (
        "sessions/claude-code/ah-fork-fixture.jsonl",
        "sessions/claude-code/entire-fc99-compact-image.jsonl",
        "sessions/claude-code/entire-7d66-badline.jsonl",
        "sessions/claude-code/entire-ec38-orphan-open.jsonl",
        "sessions/openai-chat/tau-airline-t3-trial0.json",
        "sessions/anthropic-messages/anthropic-messages-48b4.json",
        "sessions/swe-together/C-pi-mono-auto-e86a388c.json",
        "sessions/swe-together/D-hyperswitch-9063.json",
        "swe-together/nunchaku-quantize-bugfix.json",
        "swe-together/rudel-task-d1ddb8.json",
    )
)
REWOUND = {
    "sessions/claude-code/ah-fork-fixture.jsonl": {3: 7},
    "sessions/claude-code/lcm-v21153-attachments.jsonl": {65: 67},
}
"""Words the person took back: their line, and the line that stands in their place in the chain."""

N_FULL = 512
N_SAMPLE = 97
"""Boundaries in all files, and in those of the sample."""

RETENTIONS = ("0.05", "0.1", "0.3")
POLICIES = ("paper", "coverage")


def files(corpus: Path) -> list[str]:
    """Return the files of the sweep, relative to the corpus."""
    found = [
        f"{folder}/{p.name}" for folder in FOLDERS for p in sorted((corpus / folder).iterdir())
    ]
    return [name for name in found if name not in TWICE]


def runs(steps: list[Step], thin: bool) -> Iterator[tuple[Step, str, str]]:
    """Yield (step, retention, policy); a thin run takes every combination at five steps."""
    stride = max(1, len(steps) // 5) if thin else 1
    for step in steps[::-1][::stride]:
        for retention in RETENTIONS:
            for policy in POLICIES:
                yield step, retention, policy


def run(data: bytes, retention: str, policy: str) -> Compaction:
    return compact_transcript(
        read_bytes(data), settings=Settings(retention=retention), policy=policy
    )


def assert_paired(messages: list[Any]) -> None:
    """Calls and results are whole, by a count of ids that shares no code with the validator."""
    calls: Counter[str] = Counter()
    results: Counter[str] = Counter()
    for message in messages:
        calls.update(call["id"] for call in message.get("tool_calls") or [])
        if message["role"] == "tool":
            results[message["tool_call_id"]] += 1
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block.get("type") == "tool_use":
                calls[block["id"]] += 1
            if block.get("type") == "tool_result":
                results[block["tool_use_id"]] += 1
    assert calls == results


def assert_words(messages: list[Any], said: tuple[str, ...]) -> None:
    """Every text of a person stands in a user message, as often as it was said."""
    out = [w for m in messages if m["role"] == "user" for w in words_in(m["content"])]
    missing = Counter(said) - Counter(out)
    assert not missing, [words[:80] for words in missing]


def assert_budget(done: Compaction, retention: str) -> None:
    selection, table = done.selection, done.table
    base = sum(b.cost_chars for b in table.blocks if b.is_active)
    budget = floor(Fraction(retention) * base)
    limit = floor((1 + Fraction("0.2")) * budget)
    kept = [b for b, is_kept in zip(table.blocks, selection.is_kept, strict=True) if is_kept]
    expanded = sum(
        d.cost_chars for d in selection.decisions() if d.is_kept and d.rule == "expanded"
    )
    protected = sum(d.cost_chars for d in selection.decisions() if d.rule.startswith("protected"))
    cost = sum(block.cost_chars for block in kept)
    assert (selection.budget_chars, selection.protected_chars) == (budget, protected)
    assert cost - expanded <= max(budget, protected)
    assert cost == selection.cost_chars <= max(limit, protected)
    assert done.report.marker_chars <= budget // 20


def sweep(path: Path, name: str, *, thin: bool) -> int:
    """Run one file; return the number of boundaries."""
    steps = read_steps(path, REWOUND.get(name))
    for step, retention, policy in runs(steps, thin):
        done = run(step.data, retention, policy)
        errors = [
            f for f in recap.check(done.messages, done.report.dialect) if f.severity == "error"
        ]
        assert errors == []
        assert_paired(done.messages)
        assert_words(done.messages, step.said)
        assert_budget(done, retention)
        assert json.loads(done.to_json()) == (
            {"system": done.system, "messages": done.messages} if done.system else done.messages
        )
    return len(steps)


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_boundary_gives_a_valid_context_with_every_human_word(
    corpus: Path, pytestconfig: pytest.Config, record_property: Any
):
    full = pytestconfig.getoption("--full-sweep")
    total = 0
    for name in files(corpus):
        if full or name in SAMPLE:
            try:
                total += sweep(corpus / name, name, thin=not full)
            except Exception as err:
                err.add_note(f"in {name}")
                raise
    record_property("boundaries", total)
    assert total == (N_FULL if full else N_SAMPLE)


DIGEST = """
import hashlib, sys
from pathlib import Path
from recap.config import Settings
from recap.session import compact_transcript
from recap.transcript.formats import read_bytes
for name in sys.argv[1:]:
    transcript = read_bytes(Path(name).read_bytes())
    for policy in ("paper", "coverage", "recency", "bm25", "random"):
        done = compact_transcript(transcript, settings=Settings(), policy=policy)
        print(policy, hashlib.sha256(done.to_json()).hexdigest())
"""


@pytest.mark.corpus
@pytest.mark.slow
def test_every_process_and_hash_seed_gives_the_same_bytes(corpus: Path):
    """B076: sets and dicts in hash order broke prefix caches."""
    names = [str(corpus / name) for name in sorted(SAMPLE)]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", DIGEST, *names],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("\n") == len(names) * 5


@pytest.mark.corpus
def test_steering_beside_a_result_is_kept(corpus: Path):
    """The two lines where the person typed while the agent worked, pinned word for word."""
    path = corpus / "sessions/claude-code/entire-fc99-compact-image.jsonl"
    lines = path.read_bytes().split(b"\n")
    for number in (206, 566):
        content = json.loads(lines[number - 1])["message"]["content"]
        words = next(block["text"] for block in content if block["type"] == "text")
        done = run(path.read_bytes(), "0.05", "coverage")
        assert words in [t for m in done.messages for t in texts_of(m["content"])]
