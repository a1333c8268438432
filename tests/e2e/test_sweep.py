"""Every turn boundary of every real session: valid, within budget, whole pairs, no human word lost.

CI runs a fixed sample; `pytest --full-sweep tests/e2e` runs all of it. The expected words come from
the raw bytes (`raw.py`), and what a context holds from the vendor's JSON (`raw_out.py`), not through
recap.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, NamedTuple

import pytest

import recap
from recap.config import Settings
from recap.session import Compaction, compact_transcript
from recap.transcript.dialects import DIALECTS
from recap.transcript.formats import read_bytes
from tests.e2e.raw import Step, read_steps
from tests.e2e.raw_out import context_of, request_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.graph.state import ContextGraph
    from recap.transcript.model import Transcript

TWICE = frozenset(  # the same sessions as in swe-together/, in another byte layout
    (
        "sessions/swe-together/A-agent-swarm-task-ea4bd8.json",
        "sessions/swe-together/A-lock-code-manager-fix-7c955a.json",
        "sessions/swe-together/B-comfyui-lumina2-lora-prefix.json",
    )
)
SAMPLE = frozenset(
    (
        "sessions/aider/aider-30sessions-a.md",
        "sessions/aider/zen-mcp.md",
        "sessions/anthropic-messages/anthropic-messages-48b4.json",
        "sessions/claude-code/ah-fork-fixture.jsonl",
        "sessions/claude-code/entire-7d66-badline.jsonl",
        "sessions/claude-code/entire-ec38-orphan-open.jsonl",
        "sessions/claude-code/entire-fc99-compact-image.jsonl",
        "sessions/claude-web/simonw-sample_session.json",
        "sessions/codex/agentv-10turns-2compacted.jsonl",
        "sessions/codex/ah-escalation-fixture.jsonl",
        "sessions/copilot-cli/agentv-550KB.jsonl",
        "sessions/gemini-cli/ah-toolerror-fixture.jsonl",
        "sessions/gemini-cli/entire-12cb.json",
        "sessions/langchain/langchain-messages_to_dict-tau3.json",
        "sessions/mini-swe-agent/github_issue.traj.json",
        "sessions/openai-chat/tau-airline-t3-trial0.json",
        "sessions/opencode/swarm-1turn-file.json",
        "sessions/openhands/multi-swe-bench-output.jsonl",
        "sessions/pi/pimono-large-session.jsonl",
        "sessions/swe-agent/marshmallow-fc-replace-from-source.traj",
        "sessions/swe-together/C-pi-mono-auto-e86a388c.json",
        "sessions/swe-together/D-hyperswitch-9063.json",
        "swe-together/nunchaku-quantize-bugfix.json",
        "swe-together/rudel-task-d1ddb8.json",
    )
)
STEPS_OF_A_SAMPLE = 4

RETENTIONS = ("0.05", "0.1", "0.3")
POLICIES = ("paper", "coverage")


class Tally(NamedTuple):
    """Boundaries that were swept, and contexts that were rendered there."""

    boundaries: int
    contexts: int


FULL = Tally(853, 5928)
SAMPLED = Tally(103, 858)
"""Of all files, and of the sample."""


def files(corpus: Path) -> list[str]:
    """Return the files of the sweep, relative to the corpus."""
    with (corpus / "MANIFEST.tsv").open(encoding="utf-8", newline="") as manifest:
        listed = [row["file"] for row in csv.DictReader(manifest, delimiter="\t")]
    more = [f"swe-together/{path.name}" for path in sorted((corpus / "swe-together").iterdir())]
    return [name for name in (*listed, *more) if name not in TWICE]


def compactions(transcript: Transcript, request: str | None) -> Iterator[tuple[str, Compaction]]:
    """Yield (retention, compaction) for every retention and policy; the graph is built once."""
    graph = None
    for retention in RETENTIONS:
        for policy in POLICIES:
            done = compact_transcript(
                transcript,
                request,
                settings=Settings(retention=retention),
                policy=policy,
                graph=graph,
            )
            graph = done.graph
            yield retention, done


def conversions(
    transcript: Transcript, request: str | None, graph: ContextGraph
) -> Iterator[Compaction]:
    """Yield compactions in every other dialect, of a part of the history and of all of it."""
    for dialect in DIALECTS:
        for retention in ("0.3", "1") if dialect != transcript.dialect else ():
            yield compact_transcript(
                transcript, request, settings=Settings(retention=retention), graph=graph, to=dialect
            )


def assert_sound(done: Compaction, said: tuple[str, ...]) -> None:
    """The vendor would take it, calls have their results, every text was kept as often as said."""
    dialect = done.report.dialect
    errors = [f for f in recap.check(done.messages, dialect) if f.severity == "error"]
    assert errors == []
    context = context_of(dialect, done.messages)
    assert context.is_paired
    missing = +Counter(said)
    missing.subtract(context.words)
    assert not +missing, [words[:80] for words in +missing]
    request = request_of(dialect, done.system, done.messages)
    assert json.loads(done.to_json()) == request


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


def sweep(steps: list[Step]) -> Tally:
    """Run the boundaries of a file; the last one is converted to every other dialect as well."""
    contexts = 0
    for step in steps:
        transcript = read_bytes(step.data)
        graph = None
        for retention, done in compactions(transcript, step.request):
            assert_sound(done, step.said)
            assert_budget(done, retention)
            contexts += 1
            graph = done.graph
        if graph is not None and step is steps[-1]:
            for done in conversions(transcript, step.request, graph):
                assert_sound(done, step.said)
                contexts += 1
    return Tally(len(steps), contexts)


def thinned(steps: list[Step]) -> list[Step]:
    """Return a few steps, the last one among them."""
    return steps[:: -max(1, len(steps) // STEPS_OF_A_SAMPLE)][::-1]


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_boundary_gives_a_valid_context_with_every_human_word(
    corpus: Path, pytestconfig: pytest.Config
):
    is_full = pytestconfig.getoption("--full-sweep")
    boundaries = contexts = 0
    for name in files(corpus):
        if is_full or name in SAMPLE:
            steps = read_steps(corpus / name)
            try:
                tally = sweep(steps if is_full else thinned(steps))
            except Exception as err:
                err.add_note(f"in {name}")
                raise
            boundaries += tally.boundaries
            contexts += tally.contexts
    assert (boundaries, contexts) == (FULL if is_full else SAMPLED)


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
    names = [str(corpus / name) for name in sorted(SAMPLE)[::3]]
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
        done = compact_transcript(
            read_bytes(path.read_bytes()), settings=Settings(retention="0.05")
        )
        assert words in context_of("anthropic", done.messages).texts
