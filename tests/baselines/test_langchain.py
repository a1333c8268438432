from __future__ import annotations

import pytest

from recap.baselines.langchain import LangChainEditing
from tests.baselines.histories import task_of
from tests.testing import reply, step, user

pytest.importorskip("langchain", reason="LangChain is not installed: pip install langchain")


def task(retention: str):
    messages = [user("look at the files")]
    for at in range(30):
        messages += step(str(at), f"content of file_{at}.py " * 60, file_path=f"file_{at}.py")
    return task_of([*messages, reply("that is all")], retention)


def test_the_oldest_results_are_cleared_until_the_rest_fits():
    given = task("0.5")
    context = LangChainEditing().shorten(given)
    assert context.cost_chars <= given.budget_chars
    whole = sorted(context.kept - {0})
    assert whole == list(range(whole[0], len(given.table)))
    one_more = int(given.table.cost_chars[whole[0] - 1])
    assert context.cost_chars + one_more > given.budget_chars


def test_calls_stay_where_results_are_cleared():
    given = task("0.1")
    context = LangChainEditing().shorten(given)
    first = [piece for piece in context.pieces if piece.block == 1]
    assert [piece.text for piece in first] == ["Read\nfile_0.py", "[cleared]"]


def test_the_newest_results_can_be_kept():
    given = task("0.01")
    assert sorted(LangChainEditing(keep=3).shorten(given).kept)[1:] == [28, 29, 30, 31]
