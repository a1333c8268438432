"""Reported bugs about prompt caches: what was sent before is sent again byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys

from recap.transcript.tree import to_bytes
from tests.bugs.cases import ask, compacted, step
from tests.testing import conversation

PROGRAM = """
import hashlib, json, sys
import recap
messages = json.loads(sys.stdin.read())
for policy in ("coverage", "paper", "recency", "bm25", "random"):
    done = recap.compact(messages, "Fix module_2.py", policy=policy, retention="0.3")
    print(policy, hashlib.sha256(done.to_json()).hexdigest())
"""


def test_b074_the_prefix_is_the_same_in_all_steps_of_a_turn() -> None:
    """Pruning in the middle of a turn emptied the cache: less was sent, and it cost more."""
    history = conversation(10, size=900)
    turn = [ask("Now fix module_3.py")]
    before: list[bytes] = []
    sizes = set()
    for number in range(6):
        done = compacted([*history, *turn], retention="0.2")
        sent = [to_bytes(tree) for tree in done.rendering.messages]
        assert sent[: len(before)] == before
        assert done.messages[-len(turn) :] == turn
        before = sent
        sizes.add(done.report.kept_blocks)
        turn += step(f"now_{number}", "x" * 400, file_path=f"a/f_{number}.py")
    assert len(sizes) == 1


def test_b076_every_process_sends_the_same_bytes() -> None:
    """Keys and tools in the order of a hash broke the cache of every replica."""
    messages = conversation(8, size=900)
    outputs = set()
    for seed in ("0", "1", "4711"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=json.dumps(messages), env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        outputs.add(done.stdout)
    (output,) = outputs
    here = compacted(messages, "Fix module_2.py", policy="random", retention="0.3").to_json()
    assert output.splitlines()[-1] == f"random {hashlib.sha256(here).hexdigest()}"


def test_b076_another_turn_draws_anew() -> None:
    """The seed is that of session and turn: it is fixed within a turn and not for ever."""
    messages = conversation(8, size=900)
    kept = {
        compacted(messages, request, policy="random", retention="0.6").selection.is_kept.tobytes()
        for request in ("one", "two", "three", "four")
    }
    assert len(kept) > 1
