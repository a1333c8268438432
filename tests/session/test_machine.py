"""Whatever happens to a session, in whatever process: what is served keeps every promise."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import recap
from recap.config import Settings
from recap.session import Compaction, Session
from recap.store import Store

SUMMARY = "This session is being continued from a previous conversation that ran out of context."
REPLIES = ("Done.", "OK", "I have fixed it, all tests pass now.")
COMMON = ("continue", "go on")
BASE = Settings(retention="0.3", context_tokens=None)
CHOICES = (
    BASE,
    BASE.replace(retention="0.05", policy="paper"),
    BASE.replace(mode="epoch", epoch_start_tokens=50, epoch_step_tokens=100),
    BASE.replace(mode="observe"),
    BASE.replace(context_tokens=1000, near_limit=0.5),
)
USAGES = (
    {"input_tokens": 10, "cache_read_input_tokens": 900, "output_tokens": 5},
    {"input_tokens": 10, "cache_read_input_tokens": 0, "output_tokens": 5},
    {"prompt_tokens": 10**12, "completion_tokens": -4},
    {"input_tokens": 5000, "cache_creation": {"ephemeral_1h_input_tokens": 50}},
)


@dataclass
class Process:
    """A process: its view of the session, and what it served last."""

    session: Session
    settings: Settings


def is_prefix(short: list[Any], long: list[Any]) -> bool:
    return long[: len(short)] == short


def words_of(messages: list[Any]) -> set[str]:
    """Return the unique words of persons in a list."""
    text = json.dumps(messages)
    return {word for word in text.replace('"', " ").split() if word.startswith("human_")}


class Life(RuleBasedStateMachine):
    """One session of one client, seen by any number of processes over one store."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now = 1_000_000.0
        self.store = Store.open(Path(self.folder.name), clock=lambda: self.now)
        self.processes: list[Process] = []
        self.last: Process | None = None
        self.live: list[dict[str, Any]] = []
        self.count = 0
        self.rewritten = 0
        self.said: set[str] = set()
        self.condensed: set[str] = set()
        self.chosen: dict[Any, tuple[str, ...]] = {}
        self.served: dict[Any, tuple[list[Any], int]] = {}

    @initialize()
    def begin(self) -> None:
        self.ask("fresh")
        self.start(0)

    def unique(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count}"

    # what the client does

    @rule(words=st.sampled_from(("fresh", "fresh", *COMMON)))
    def ask(self, words: str) -> None:
        if words == "fresh":
            word = self.unique("human")
            self.said.add(word)
            words = f"please {word} in module_{self.count % 4}.py"
        self.live.append({"role": "user", "content": words})

    @rule(steps=st.integers(1, 4), reply=st.sampled_from((None, *REPLIES)), batch=st.booleans())
    def work(self, steps: int, reply: str | None, batch: bool) -> None:
        for at in range(steps):
            ids = [self.unique("toolu") for _ in range(2 if batch else 1)]
            calls = [
                {
                    "type": "tool_use", "id": id, "name": "Edit" if at == 2 else "Read",
                    "input": {"file_path": f"src/module_{at}.py"},
                }
                for id in ids
            ]  # fmt: skip
            thought = {"type": "thinking", "thinking": "hm " * at, "signature": f"s{self.count}"}
            self.live.append({"role": "assistant", "content": [thought, *calls]})
            body = " ".join(f"name_{self.count}_{i}" for i in range(10 * (at + 1)))
            results = [{"type": "tool_result", "tool_use_id": id, "content": body} for id in ids]
            self.live.append({"role": "user", "content": results})
        if reply is not None:
            self.live.append({"role": "assistant", "content": reply})

    @precondition(lambda self: len(self.live) > 1 and self.live[-1]["role"] == "user")
    @rule()
    def steer(self) -> None:
        content = self.live[-1]["content"]
        if isinstance(content, list):
            word = self.unique("human")
            self.said.add(word)
            self.live[-1] = {
                "role": "user",
                "content": [*content, {"type": "text", "text": f"no, {word} first"}],
            }

    @precondition(lambda self: len(self.live) > 2)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        starts = [at for at, m in enumerate(self.live) if isinstance(m["content"], str) and at]
        if starts:
            del self.live[data.draw(st.sampled_from(starts)) :]
            self.rewritten += 1
            self.ask("fresh")
            for process in self.processes:
                self.judge(process.session.compact(list(self.live), dialect="anthropic"))

    @precondition(lambda self: len(self.live) > 8)
    @rule(data=st.data())
    def condense(self, data: st.DataObject) -> None:
        starts = [at for at, m in enumerate(self.live) if m["role"] == "user"]
        starts = [at for at in starts if isinstance(self.live[at]["content"], str)]
        if len(starts) > 2:
            low = data.draw(st.integers(0, len(starts) - 2))
            high = data.draw(st.integers(low + 1, len(starts) - 1))
            gone = self.live[starts[low] + 1 : starts[high]]
            self.condensed |= words_of(gone)
            del self.live[starts[low] + 1 : starts[high]]
            self.rewritten += 1

    @precondition(lambda self: len(self.live) > 4)
    @rule()
    def compact_natively(self) -> None:
        self.condensed |= words_of(self.live)
        self.live = [{"role": "user", "content": f"{SUMMARY} Then {self.unique('summary')}."}]
        self.live.append({"role": "assistant", "content": "OK"})
        self.ask("fresh")
        self.rewritten += 1

    # what processes do

    @rule(which=st.integers(0, len(CHOICES) - 1))
    def start(self, which: int) -> None:
        session = Session("s", store=self.store, settings=CHOICES[which], clock=lambda: self.now)
        self.processes.append(Process(session, CHOICES[which]))
        del self.processes[:-4]

    @rule(seconds=st.sampled_from((1, 60, 290, 400, 5000, -10, -100_000)))
    def wait(self, seconds: int) -> None:
        self.now = max(self.now + seconds, 0.0)

    @rule(which=st.integers(0, 3), usage=st.sampled_from(USAGES), after=st.sampled_from((0, 9e9)))
    def respond(self, which: int, usage: dict[str, Any], after: float) -> None:
        self.at(which).session.responded(usage, self.now + after if after else None)

    @rule(which=st.integers(0, 3))
    def observe(self, which: int) -> None:
        self.at(which).session.observe(list(self.live))

    @rule(which=st.integers(0, 3))
    def look(self, which: int) -> None:
        done = self.at(which).session.compact(list(self.live), dialect="anthropic", keep=False)
        self.judge(done)

    @rule(which=st.integers(0, 3))
    def ask_apart(self, which: int) -> None:
        word = self.unique("human")
        done = self.at(which).session.compact(
            list(self.live), f"and {word} please", dialect="anthropic"
        )
        assert word in words_of(done.messages)
        self.judge(done)

    @rule(which=st.integers(0, 3), is_cold=st.booleans())
    def request(self, which: int, is_cold: bool) -> None:
        process = self.at(which)
        done = process.session.compact(list(self.live), dialect="anthropic", is_cold=is_cold)
        assert process.session.failure is None
        self.judge(done)
        self.judge_turn(process, done)

    @rule(which=st.integers(0, 3), steps=st.integers(1, 3))
    def turn(self, which: int, steps: int) -> None:
        self.ask("fresh")
        self.request(which, False)
        self.respond(which, USAGES[0], 0)
        self.work(steps, None, False)
        self.request(which, False)
        self.work(1, REPLIES[0], False)

    def at(self, which: int) -> Process:
        process = self.processes[which % len(self.processes)]
        # What a client took out is known to the process that saw it, and to no other.
        if self.rewritten and process is not self.last:
            self.served.clear()
        self.last = process
        return process

    # what has to hold

    def judge(self, done: Compaction) -> None:
        findings = recap.check(done.messages, done.report.dialect)
        assert [each.code for each in findings if each.severity == "error"] == []
        live, out = words_of(self.live), words_of(done.messages)
        assert live <= out
        assert not (out & self.said) - live - self.condensed
        chosen = done.selection
        if done.report.action == "select":
            assert chosen.cost_chars <= max(chosen.limit_chars, chosen.protected_chars)

    def judge_turn(self, process: Process, done: Compaction) -> None:
        """Hold what a turn was given against what it was given before, by any process."""
        if not done.report.turn_key or process.settings.mode == "epoch":
            return
        who = id(process) if self.rewritten else 0
        key = (done.report.turn_key, process.settings, self.rewritten, who)
        kept = done.selection.is_kept & done.table.is_active
        ids = tuple(done.table.ids[int(at)] for at in kept.nonzero()[0])
        assert self.chosen.setdefault(key, ids) == ids
        before = self.served.get(process.settings)
        if (
            before is not None
            and before[1] == self.rewritten
            and (done.report.action in ("extend", "reuse"))
        ):
            assert is_prefix(before[0][:-1], done.messages)
        self.served[process.settings] = (done.messages, self.rewritten)

    def teardown(self) -> None:
        faults = self.store.verify()
        self.store.close()
        self.folder.cleanup()
        assert faults == ()


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=25, stateful_step_count=25)
