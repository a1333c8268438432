"""Histories to shorten: the session that ships, and random ones."""

from __future__ import annotations

from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st

import recap
from recap.baselines.method import Task, protected_mask
from recap.blocks.table import build_table
from recap.config import Settings
from recap.graph.state import ContextGraph
from recap.session.known import known_of
from recap.transcript.formats import open_log
from tests.testing import call, message, result, step, text, thinking, user

if TYPE_CHECKING:
    from recap.transcript.model import Message

DEMO = Path(recap.__file__).with_name("demo")

WORDS = st.sampled_from(
    (
        "parse_row",
        "src/api.py",
        "the error",
        "ENOENT",
        "naïve",
        "日本語",
        "x" * 40,
        "a < b",
        "\ud800",
    )
)
LINES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join) | st.sampled_from(
    ("", "   ", "```py", "```", "~~~~", "# Head", "- item", "<|endoftext|>")
)
TEXTS = st.lists(LINES, min_size=1, max_size=12).map("\n".join)


def task_of(
    messages: list[Message], retention: str = "0.3", request: str = "fix src/api.py please"
) -> Task:
    """Return the task of a history that nothing was measured of."""
    table = build_table(messages)
    settings = Settings(retention=retention)
    return Task(
        table=table,
        is_protected=protected_mask(table, settings),
        request=request,
        budget_chars=floor(settings.beta * table.active_chars),
        seed=b"seed",
        graph=ContextGraph.empty("reuse"),
        settings=settings,
    )


def demo_task(retention: str = "0.3") -> Task:
    """Return the task of the session that ships, with its graph."""
    settings = Settings(retention=retention)
    request = (DEMO / "request.txt").read_text()
    known = known_of(open_log(DEMO / "session.jsonl"), request, settings)
    return Task(
        table=known.table,
        is_protected=protected_mask(known.table, settings),
        request=request,
        budget_chars=floor(settings.beta * known.table.active_chars),
        seed=known.moment.seed,
        graph=known.graph,
        settings=settings,
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Random turns: words of the person, thinking, text with parallel calls, edits, replies."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(user(draw(TEXTS) + f"\nrequest {turn}"))
        for at in range(draw(st.integers(0, 4))):
            messages += draw(steps(f"{turn}.{at}"))
        if draw(st.booleans()):
            messages.append(message("assistant", text(draw(TEXTS) + "\ndone", "agent")))
    return messages


@st.composite
def steps(draw: st.DrawFn, call_id: str) -> list[Message]:
    """A message with one call or two, and their results, in either order."""
    if draw(st.booleans()):
        name = draw(st.sampled_from(("Read", "Edit", "Bash")))
        return step(call_id, draw(TEXTS), name, file_path="src/api.py", new_string=draw(TEXTS))
    said = [thinking(draw(TEXTS))] if draw(st.booleans()) else []
    said.append(text(draw(TEXTS) + "\nlooking", "agent"))
    calls = [call(f"{call_id}.{i}", "Read", file_path=f"src/{i}.py") for i in range(2)]
    results = [result(f"{call_id}.{i}", draw(TEXTS)) for i in draw(st.permutations(range(2)))]
    return [message("assistant", *said, *calls), message("tool", *results)]
