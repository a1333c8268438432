"""Mode turn and epoch inside the server: what a turn is served, and what the client is told of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from recap.sglang.routes import session_row
from tests.sglang.small_server import (
    TOOLS,
    ChatRequest,
    Message,
    SmallServer,
    assistant,
    call,
    result,
    user,
)

Start = Callable[..., SmallServer]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    def started(**config: object) -> SmallServer:
        return SmallServer(monkeypatch, {"mode": "turn", "retention": 0.2, **config})

    return started


def history(turns: int = 4) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for turn in range(turns):
        found.append(user(f"look at part {turn}"))
        for step in range(3):
            name = f"t{turn}s{step}"
            found += [call(name, f'{{"path": "{name}.py"}}'), result(name, f"{name} " * 60)]
        found.append(assistant(f"part {turn} is fine"))
    return found


def test_a_turn_is_served_a_shorter_prompt_and_the_response_says_why(start: Start) -> None:
    server = start()
    messages = [*history(), user("change part 1")]
    whole = start(mode="off").chat(messages, tools=TOOLS)
    server = start()
    response = server.chat(messages, tools=TOOLS, return_meta_info=True)
    assert len(response.prompt) < 0.5 * len(whole.prompt)
    assert "change part 1" in response.prompt
    told = response.meta_info["recap_compaction"]
    assert (told["action"], told["reason"]) == ("select", "unknown")
    assert told["chars_after"] < told["chars_before"]
    (live,) = server.front.sessions.of("default")
    assert session_row(live)["action"] == "select"


def test_tokens_of_a_shorter_prompt_are_attributed_to_what_is_left(start: Start) -> None:
    server = start()
    response = server.chat([*history(), user("change part 1")], tools=TOOLS)
    assert response.payload is not None
    ids = response.payload.segments.ids
    assert response.words(ids[-1]) == "change part 1"
    assert 1 < len(ids) < 21
    assert response.payload.turn == 4
    assert server.front.counts.of("prepared") == {"asked": 1}


def test_messages_that_are_kept_whole_are_the_clients_own_objects(start: Start) -> None:
    server = start()
    request = ChatRequest(
        [Message(item) for item in [*history(), user("go on")]], session_id="s", tools=TOOLS
    )
    sent = list(request.messages)
    server.convert(request, {})
    kept = [message for message in request.messages if any(message is one for one in sent)]
    assert len(kept) > 3
    assert request.messages[-1] is sent[-1]


def test_the_steps_of_a_turn_are_served_the_same_blocks(start: Start) -> None:
    server = start()
    messages = [*history(), user("change part 1")]
    first = server.chat(messages, tools=TOOLS)
    for step in range(3):
        messages += [call(f"n{step}", "{}"), result(f"n{step}", "done " * 50)]
        server.clock += 1000
        response = server.chat(messages, tools=TOOLS, return_meta_info=True)
        assert response.prompt.startswith(first.prompt.removesuffix("<|im_start|>assistant\n"))
        assert response.meta_info["recap_compaction"]["reason"] == "same_turn"


def test_a_warm_cache_keeps_what_was_served_and_appends(start: Start) -> None:
    server = start()
    messages = [*history(), user("change part 1")]
    first = server.chat(messages, tools=TOOLS)
    messages += [assistant("changed"), user("and part 2")]
    response = server.chat(messages, tools=TOOLS, return_meta_info=True)
    assert response.meta_info["recap_compaction"]["reason"] == "warm"
    assert response.prompt.startswith(first.prompt.removesuffix("<|im_start|>assistant\n"))


def test_fewer_cached_tokens_than_before_make_the_next_turn_select_anew(start: Start) -> None:
    server = start()
    messages = [*history(), user("change part 1")]
    for cached in (0, 900, 100):
        server.cached = cached
        response = server.chat(messages, tools=TOOLS)
        messages += [assistant("changed"), user(f"and then {cached}")]
    response = server.chat(messages, tools=TOOLS, return_meta_info=True)
    assert response.meta_info["recap_compaction"]["reason"] == "cache_fell"


@pytest.mark.parametrize(
    ("headers", "tools", "is_shorter"),
    [
        ({}, None, False),
        ({"x-recap-mode": "turn"}, None, True),
        ({"x-recap-mode": "off"}, TOOLS, False),
        ({"x-recap-mode": "observe"}, TOOLS, False),
        ({}, TOOLS, True),
    ],
)
def test_a_client_may_ask_for_less_and_a_request_without_tools_has_to_ask(
    start: Start, headers: dict[str, str], tools: Any, is_shorter: bool
) -> None:
    server = start()
    messages = [*history(), user("change part 1")]
    response = server.chat(messages, headers, tools=tools)
    assert ("t1s1 t1s1" in response.prompt) != is_shorter
    assert (response.payload is None) == (headers.get("x-recap-mode") == "off")


def test_a_client_that_summarises_is_given_everything(start: Start) -> None:
    server = start()
    asks = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools. Summarise."
    response = server.chat([*history(), user(asks)], tools=TOOLS)
    assert "t1s1 t1s1" in response.prompt
    assert server.front.counts.of("kept_whole") == {"native_compaction": 1}


def test_a_first_turn_goes_out_as_it_came(start: Start) -> None:
    server = start()
    request = ChatRequest([Message(user("hello"))], session_id="s", tools=TOOLS)
    sent = request.messages
    server.convert(request, {})
    assert request.messages is sent


class Strict(SmallServer):
    """Refuses what is not as the client sent it."""

    sent = 0

    def _convert(self, request: ChatRequest, raw: Any = None) -> Any:
        if len(request.messages) != self.sent:
            raise ValueError("the template wants something else")
        return super()._convert(request, raw)


def test_messages_that_the_server_refuses_are_replaced_by_the_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    from recap.sglang import chat

    server = Strict(monkeypatch, {"mode": "turn"})
    messages = [*history(), user("change part 1")]
    server.sent = len(messages)
    request = ChatRequest([Message(item) for item in messages], session_id="s", tools=TOOLS)
    adapted, served = chat.convert(Strict._convert, server, request, SimpleNamespace(headers={}))
    assert len(served.messages) == len(messages)
    assert adapted.input_ids
    assert server.front.counts.of("errors") == {"refused-messages": 1}


class Choosy(ChatRequest):
    """Takes no message that it did not get from its client."""

    @classmethod
    def model_validate(cls, fields: Any) -> ChatRequest:
        raise ValueError("no such message")


def test_a_fault_while_compacting_leaves_the_clients_messages(start: Start) -> None:
    server = start()
    sent: list[Any] = [Message(item) for item in [*history(), user("change part 1")]]
    request = Choosy(sent, session_id="s", tools=TOOLS)
    response = server.convert(request, {})
    assert request.messages is sent
    assert response.payload is not None
    assert server.front.counts.of("errors") == {"ValueError": 1}
    (live,) = server.front.sessions.of("default")
    assert (live.action, live.reason) == ("pass", "error")


class Lacking(ChatRequest):
    """A request of another version, without a field that is read last."""

    @property
    def return_meta_info(self) -> bool:
        raise AttributeError("return_meta_info")

    @return_meta_info.setter
    def return_meta_info(self, _: bool) -> None:
        pass


def test_a_fault_after_compacting_leaves_the_clients_messages(start: Start) -> None:
    server = start()
    sent: list[Any] = [Message(item) for item in [*history(), user("change part 1")]]
    request = Lacking(sent, session_id="s", tools=TOOLS)
    response = server.convert(request, {})
    assert request.messages is sent
    assert response.payload is None
    assert server.front.counts.of("errors") == {"AttributeError": 1}


def test_a_request_that_the_server_refuses_as_it_came_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    from recap.sglang import chat

    server = Strict(monkeypatch, {"mode": "turn"})
    request = ChatRequest([Message(user("hello"))], session_id="s", tools=TOOLS)
    with pytest.raises(ValueError, match="template wants"):
        chat.convert(Strict._convert, server, request, SimpleNamespace(headers={}))
    assert server.front.counts.of("prepared") == {"refused-messages": 1}


def test_mode_epoch_selects_in_an_open_turn_and_keeps_that(start: Start) -> None:
    server = start(mode="epoch", epoch_start_tokens=500, epoch_step_tokens=400)
    messages = [user("work"), *history()[1:]]
    first = server.chat(messages, tools=TOOLS, return_meta_info=True)
    assert first.meta_info["recap_compaction"]["reason"] == "epoch"
    messages += [call("n", "{}"), result("n", "more " * 20)]
    then = server.chat(messages, tools=TOOLS, return_meta_info=True)
    assert then.meta_info["recap_compaction"]["reason"] == "fixed"
    assert then.prompt.startswith(first.prompt.removesuffix("<|im_start|>assistant\n"))
    assert then.payload is not None
