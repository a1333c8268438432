from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from recap.baselines.chat import edited, rest_of
from recap.baselines.method import Piece, of_blocks
from tests.baselines.histories import demo_task, histories, task_of
from tests.testing import call, message, result, step, text, thinking, user

if TYPE_CHECKING:
    from recap.transcript.model import Message


@given(history=histories())
def test_messages_left_alone_are_the_whole_history(history: list[Message]):
    task = task_of(history)
    messages = rest_of(task)
    context = edited(task, messages, [each.content for each in messages])
    whole = of_blocks(task, range(len(task.table)))
    assert context.pieces == whole.pieces
    assert (context.kept, context.cost_chars) == (whole.kept, whole.cost_chars)


@given(history=histories())
def test_messages_cost_what_their_blocks_cost(history: list[Message]):
    task = task_of(history)
    rest = int(task.table.cost_chars[~task.is_protected].sum())
    assert sum(each.cost_chars for each in rest_of(task)) == rest


@given(history=histories())
def test_a_result_answers_a_call_of_the_message_before(history: list[Message]):
    task = task_of(history)
    calls: tuple[str, ...] = ()
    for each in rest_of(task):
        if each.role == "tool":
            assert each.call_ids[0] in calls
        else:
            calls = each.call_ids


def test_parallel_results_find_their_own_calls():
    calls = [call("a", "Read", path="1"), call("b", "Read", path="2")]
    results = message("tool", result("b", "two"), result("a", "one"))
    task = task_of([user("go"), message("assistant", *calls), results])
    said, *answers = rest_of(task)
    of_call = dict(zip(said.call_ids, said.calls, strict=True))
    for answer in answers:
        assert of_call[answer.call_ids[0]].call_id == answer.parts[0].call_id


def test_a_message_that_lost_its_words_keeps_its_calls_and_drops_its_thinking():
    said = message("assistant", thinking("hm"), text("I read it", "agent"), call("a", path="x.py"))
    task = task_of([user("go"), said, message("tool", result("a", "content"))])
    first, second = rest_of(task)
    context = edited(task, [first, second], ["[gone]", second.content])
    left = [piece for piece in context.pieces if piece.block == 1]
    assert [piece.text for piece in left] == ["[gone]", first.calls[0].text(), "content"]
    assert [piece.is_verbatim for piece in left] == [False, True, True]
    assert context.kept == {0}
    paid = len("[gone]") + first.calls_chars + len("content")
    assert context.cost_chars == task.protected_chars + paid


def test_a_message_that_is_gone_costs_nothing():
    task = task_of([user("go"), *step("a", "content")])
    context = edited(task, rest_of(task), [None, None], before=[Piece("system", "a tool")])
    assert context.kept == {0}
    assert context.cost_chars == task.protected_chars + len("a tool")


def test_the_session_that_ships_is_cut_into_messages():
    task = demo_task()
    roles = {each.role for each in rest_of(task)}
    assert roles == {"assistant", "tool"}
