"""Reported bugs about gain: what cannot be made smaller is said to be so, once, and stays whole."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import recap
from tests.bugs.cases import ask, compacted, say, step, words_in

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bugs.cases import Json


def test_b068_a_history_of_which_all_is_protected_gains_nothing() -> None:
    """A compression that saved under one percent was tried again for ever."""
    messages = [ask(f"request {number}: " + "x" * 90) for number in range(30)]
    done = compacted(messages, "now", retention="0.1")
    assert done.messages[:-1] == messages
    assert not done.report.is_effective
    assert done.report.kept_chars == done.report.history_chars
    assert compacted(messages, "now", retention="0.1").to_json() == done.to_json()


def pasted(number: int) -> str:
    lines = "".join(f"2026-01-01 12:00 line {i:4} of log {number}\n" for i in range(280))
    return f"Why does test {number} fail?\n\n{lines}\nDo not touch config.py"


def test_b070_a_protected_set_over_the_budget_is_seen_and_can_be_bounded() -> None:
    """192 protected user messages of pasted logs left a context of 187,000 tokens.

    By default every word of a person stays; the setting paste_limit clips what was pasted.
    """
    messages: list[Json] = []
    for number in range(200):
        messages += [ask(pasted(number)), say(f"Answer {number}")]
    whole = compacted(messages, "now", retention="0.1")
    assert words_in(whole.messages, "user")[:-1] == [pasted(number) for number in range(200)]
    assert whole.report.over_budget
    assert 9 < whole.report.protected_share < 11
    bounded = compacted(messages, "now", settings=recap.Settings(paste_limit=1000), retention="0.1")
    texts = words_in(bounded.messages, "user")[:-1]
    assert all("Why does test" in each and "Do not touch config.py" in each for each in texts)
    assert max(map(len, texts)) < 1200
    removed = sum(len(pasted(number)) for number in range(200)) - sum(map(len, texts))
    assert bounded.report.notes["pasted-characters-clipped"] == removed


def test_b072_a_history_longer_than_any_window_is_compacted() -> None:
    """Compression was impossible when it was needed: the history no longer fit its own model."""

    prose = "the parser reads a line and the index keeps what it saw " * 160

    def seconds(turns: int) -> tuple[float, recap.Compaction]:
        messages: list[Json] = []
        for turn in range(turns):
            messages.append(ask(f"Fix module_{turn}.py"))
            for number in range(5):
                call_id = f"t_{turn}_{number}"
                messages += step(call_id, prose, file_path=f"a/f_{turn}_{number}.py")
            messages.append(say(f"module_{turn}.py is fixed"))
        begin = time.process_time()
        done = compacted(messages, "Now fix module_3.py", retention="0.02")
        return time.process_time() - begin, done

    small = min(seconds(15)[0] for _ in range(3))
    runs = [seconds(120) for _ in range(3)]
    large, done = min(time for time, _ in runs), runs[0][1]
    assert done.report.history_chars > 5_200_000
    assert done.report.kept_chars < 0.03 * done.report.history_chars
    assert large < 0.1 + 24 * small  # a square would be 64 times


def test_b073_a_run_without_gain_says_so_once(tmp_path: Path) -> None:
    """A pruner reported activity in 900 cycles and freed not one byte."""
    from tests.cli.conftest import Cli

    (tmp_path / "list.json").write_bytes(compacted([ask("one"), ask("two")], "three").to_json())
    out = Cli(tmp_path)("compact", str(tmp_path / "list.json"), "--dry-run").out
    assert out.count("no gain") == 1


def test_b101_a_second_run_changes_nothing() -> None:
    """Compacting twice in a row wiped the visible history."""
    messages = [ask("go"), *step("t1", "x" * 5000), say("done " * 50), ask("on"), say("ok")]
    first = compacted(messages, "now", retention="0.1")
    assert first.report.is_effective
    assert compacted(messages, "now", retention="0.1").to_json() == first.to_json()
    again = compacted(first.messages, retention="1")
    kept = [m for m in first.messages if not str(m["content"]).startswith("[recap: ")]
    assert again.messages == kept
    assert not again.report.is_effective
