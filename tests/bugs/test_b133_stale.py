"""Reported bugs about copies: the newest one stays, older ones give way."""

from __future__ import annotations

from tests.bugs.cases import ask, compacted, say, step

BODY = "\n".join(f"int counter_{i} = table_{i}[index_{i}];" for i in range(60))


def test_b133_the_newest_read_stays_and_older_ones_are_superseded() -> None:
    """One file was dropped at every step and read again, 66 times."""
    messages = [ask("Fix the counters in a.c")]
    for number in range(5):
        messages += step(f"r{number}", BODY, file_path="a.c")
    messages += [
        *step("e1", "edited", file_path="a.c", old_string="counter_7", new_string="counter_8"),
        say("Fixed counter_7."),
    ]
    for policy in ("coverage", "paper"):
        done = compacted(messages, "Now counter_9 in a.c", retention="0.35", policy=policy)
        reads = [d for d in done.selection.decisions() if d.kind == "tools"][:5]
        assert [d.is_kept for d in reads] == [False, False, False, False, True]
        assert [d.is_stale for d in reads] == [True, True, True, True, False]
        assert all(d.rule in ("stale", "dropped", "did-not-fit") for d in reads[:4])
