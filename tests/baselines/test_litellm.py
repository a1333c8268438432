from __future__ import annotations

import pytest

from recap.baselines.litellm import LitellmCompress
from tests.baselines.histories import demo_task, task_of
from tests.testing import reply, step, user

pytest.importorskip("litellm", reason="LiteLLM is not installed: pip install litellm")

STUB = "[Compressed:"


def history(steps: int = 30):
    messages = [user("look at the files")]
    for at in range(steps):
        messages += step(str(at), f"content of file_{at}.py " * 60, file_path=f"file_{at}.py")
    return [*messages, reply("that is all")]


def test_messages_that_lose_are_stubs_beside_the_tool_that_lists_them():
    context = LitellmCompress().shorten(task_of(history(), "0.5", "what of file_7.py?"))
    stubs = [piece for piece in context.pieces if piece.text.startswith(STUB)]
    assert stubs
    assert context.pieces[0].role == "system"
    assert "litellm_content_retrieve" in context.pieces[0].text
    assert context.memory_bytes >= 60 * len("content of file_0.py ")


def test_the_request_decides_what_stays():
    context = LitellmCompress().shorten(task_of(history(), "0.5", "what of file_7.py?"))
    assert any(piece.text == "content of file_7.py " * 60 for piece in context.pieces)


def test_exchanges_stay_or_go_whole():
    task = task_of(history(), "0.3", "what of file_7.py?")
    context = LitellmCompress(form="anthropic").shorten(task)
    assert {piece.block for piece in context.pieces if piece.block >= 0} == context.kept
    assert 1 < len(context.kept) < len(task.table)
    assert context.cost_chars <= task.budget_chars


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_greater_budget_keeps_no_less(form: str):
    sizes = [
        LitellmCompress(form=form).shorten(demo_task(share)).cost_chars
        for share in ("0.1", "0.4", "0.8", "1")
    ]
    assert sizes[0] < sizes[-1] == int(demo_task().table.cost_chars.sum())
