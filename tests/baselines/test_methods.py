"""What holds of every method: P is whole, nothing passes for verbatim that is not, costs are true."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from recap.baselines.method import verbatim
from tests.baselines.histories import demo_task, histories, task_of
from tests.testing import reply, step, user

if TYPE_CHECKING:
    from recap.baselines.method import Context, Method, Task
    from recap.transcript.model import Message

few = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(task: Task, context: Context) -> None:
    """Assert what a context promises of a task."""
    protected = set(np.flatnonzero(task.is_protected).tolist())
    assert protected <= context.kept
    for block in context.kept:
        of_block = [piece for piece in context.pieces if piece.block == block]
        assert of_block == verbatim(task, [block])
    blocks = [piece.block for piece in context.pieces if piece.block >= 0]
    assert blocks == sorted(blocks)
    for piece in context.pieces:
        if piece.is_verbatim:
            texts = [part.text() for part in task.parts(piece.block)]
            assert piece.text in texts
    check_cost(task, context)


def check_cost(task: Task, context: Context) -> None:
    """Assert that blocks kept whole and every character beside them are paid for."""
    whole = sum(int(task.table.cost_chars[block]) for block in context.kept)
    rest = [piece for piece in context.pieces if piece.block not in context.kept]
    cut = sum(len(piece.text) for piece in rest if not piece.is_verbatim)
    assert context.cost_chars >= whole + cut
    if all(not piece.is_verbatim for piece in rest):
        assert context.cost_chars == whole + cut
    # a call costs its JSON, of which its text may be more (by its name) or less
    least = sum(len(piece.text) for piece in rest if piece.is_verbatim and not is_call(task, piece))
    assert context.cost_chars >= whole + cut + least


def is_call(task: Task, piece: object) -> bool:
    parts = task.parts(piece.block)  # type: ignore[attr-defined]
    return any(part.kind == "call" and part.text() == piece.text for part in parts)  # type: ignore[attr-defined]


@few
@given(history=histories())
@pytest.mark.parametrize("retention", ["0.05", "0.5", "1"])
def test_every_method_keeps_its_promises(method: Method, history: list[Message], retention: str):
    task = task_of(history, retention)
    check(task, method.shorten(task))


def test_the_session_that_ships(method: Method):
    task = demo_task("0.3")
    context = method.shorten(task)
    check(task, context)
    assert method.help
    assert context.pieces


def test_the_same_task_gives_the_same_context(method: Method):
    task = demo_task("0.3")
    once, again = method.shorten(task), method.shorten(task)
    assert once.pieces == again.pieces
    assert (once.kept, once.cost_chars) == (again.kept, again.cost_chars)


def test_an_empty_history_gives_an_empty_context(method: Method):
    context = method.shorten(task_of([], "0.3"))
    assert context.pieces == ()
    assert context.cost_chars == 0


def test_an_empty_request_is_one(method: Method):
    task = replace(demo_task("0.3"), request="")
    check(task, method.shorten(task))


def test_a_budget_of_nothing_leaves_p(method: Method):
    task = replace(demo_task("0.3"), budget_chars=0)
    context = method.shorten(task)
    check(task, context)
    assert context.cost_chars >= task.protected_chars


def test_p_above_the_budget_is_whole(method: Method):
    long = "please keep this requirement_of_mine\n" * 200
    history = [user(long), *step("1", "out " * 300), reply("fine"), user("and go on")]
    task = task_of(history, "0.1")
    assert task.protected_chars > task.budget_chars
    context = method.shorten(task)
    check(task, context)
    assert any(piece.text == long for piece in context.pieces)


def test_all_of_a_history_that_fits_stays(method: Method):
    task = replace(demo_task("1"), budget_chars=10**9)
    if method.name == "summary" or method.name.startswith(("coverage", "paper")):
        pytest.skip("makes something else of every history: a summary, units without thinking")
    assert len(method.shorten(task).kept) == len(task.table)
