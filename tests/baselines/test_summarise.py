from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recap.baselines.summarise import Summary
from recap.errors import MethodError
from tests.baselines.histories import demo_task
from tests.baselines.servers import Answer, completion, serving

SECRET = "sk-test-secret"


def test_user_words_stay_and_one_summary_follows():
    task = demo_task("0.3")
    with serving() as endpoint:
        context = Summary(endpoint.url, "small", SECRET).shorten(task)
    assert context.kept == set(np.flatnonzero(task.is_protected).tolist())
    assert context.pieces[-1].text.endswith("what was done, in short")
    assert [piece.block for piece in context.pieces].count(-1) == 1
    assert context.model_calls == 1
    sent = endpoint.asked[0]["messages"][0]["content"]
    assert (context.input_tokens, context.output_tokens) == (len(sent) // 4, 5)
    assert endpoint.paths == ["/v1/chat/completions"]
    assert endpoint.keys == [f"Bearer {SECRET}"]


def test_the_summary_is_bounded_by_what_p_leaves():
    task = demo_task("0.3")
    with serving() as endpoint:
        Summary(endpoint.url, "small").shorten(task)
    assert 0 < 4 * endpoint.asked[0]["max_tokens"] <= task.free_chars
    assert endpoint.keys == [None]


def test_a_history_over_the_window_loses_its_oldest_blocks():
    task = demo_task("0.3")
    with serving() as endpoint:
        Summary(endpoint.url, "small", input_chars=3000).shorten(task)
        Summary(endpoint.url, "small").shorten(task)
    short, whole = (asked["messages"][0]["content"] for asked in endpoint.asked)
    assert len(short) < 4000 < len(whole)
    assert whole.endswith(short)


def test_nothing_is_asked_where_no_summary_can_be_paid(endpoint: Any):
    before = len(endpoint.asked)
    task = replace(demo_task("0.3"), budget_chars=0)
    assert Summary(endpoint.url, "small").shorten(task).model_calls == 0
    assert len(endpoint.asked) == before


def test_without_an_endpoint_nothing_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RECAP_SUMMARY_URL", raising=False)
    monkeypatch.delenv("RECAP_SUMMARY_MODEL", raising=False)
    assert "name an OpenAI-compatible endpoint" in Summary().missing()
    assert "name the model" in Summary("http://127.0.0.1:1/v1").missing()
    assert "http or https" in Summary("file:///etc/passwd", "small").missing()
    with pytest.raises(MethodError, match="name an OpenAI-compatible endpoint"):
        Summary().shorten(demo_task())


def test_the_environment_names_an_endpoint(monkeypatch: pytest.MonkeyPatch):
    with serving() as endpoint:
        monkeypatch.setenv("RECAP_SUMMARY_URL", endpoint.url)
        monkeypatch.setenv("RECAP_SUMMARY_MODEL", "of-the-environment")
        monkeypatch.setenv("RECAP_SUMMARY_KEY", SECRET)
        Summary().shorten(demo_task())
    assert endpoint.asked[0]["model"] == "of-the-environment"
    assert endpoint.keys == [f"Bearer {SECRET}"]


def test_a_redirect_is_not_followed():
    with serving() as other:
        moved = {"Location": f"{other.url}/chat/completions"}
        with (
            serving(lambda _: (302, moved, b"")) as endpoint,
            pytest.raises(MethodError, match="status 302"),
        ):
            Summary(endpoint.url, "small", SECRET).shorten(demo_task())
    assert other.asked == []


def broken(*answer: Any) -> Answer:
    return 200, {}, json.dumps(answer[0]).encode()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda body: (500, {}, body["messages"][0]["content"].encode()), "status 500"),
        (lambda _: (200, {}, b"no json"), "no message, or no usage"),
        (lambda _: broken([]), "no message, or no usage"),
        (lambda _: broken({"choices": [{"message": {"content": "x"}}]}), "no message, or no usage"),
        (lambda body: broken({**json.loads(completion(body)[2]), "choices": []}), "no message"),
    ],
)
def test_a_bad_answer_is_an_error_that_tells_nothing_of_the_conversation(answer: Any, said: str):
    task = demo_task()
    with serving(answer) as endpoint, pytest.raises(MethodError, match=said) as caught:
        Summary(endpoint.url, "small", SECRET).shorten(task)
    assert len(str(caught.value)) < 100
    assert SECRET not in str(caught.value) + repr(Summary(endpoint.url, "small", SECRET))


def test_an_endpoint_that_is_not_there_is_an_error():
    with serving() as endpoint:
        pass
    with pytest.raises(MethodError, match="does not answer"):
        Summary(endpoint.url, "small").shorten(demo_task())
