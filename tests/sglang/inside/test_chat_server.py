"""Real servers, asked as clients ask them: sessions and graphs, tenants, keys, compaction."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recap.capture.spans import Segments
from recap.config import Settings
from recap.sglang.payload import Payload
from tests.sglang.inside.client import Client
from tests.sglang.inside.server import KEY, ROOM, SECONDS, Server
from tests.sglang.inside.tiny import attentions, expected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.slow
ROUTES = ("status", "metrics", "sessions", "sessions/0123")


@pytest.fixture(scope="module")
def observing(flagged: Client) -> Client:
    return flagged


@pytest.fixture(scope="module")
def compacting(
    another_server: None, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    config = json.dumps({"mode": "turn", "retention": 0.2})
    options = ("--enable-recap", "--recap-config", config, *ROOM)
    with Server(model, tmp_path_factory.mktemp("compacting"), *options) as server:
        yield Client(server)


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def turn(client: Client, session: str, text: str, headers: Mapping[str, str] = {}) -> list[Any]:
    """Serve two turns; return the metadata of both."""
    messages = [user(text)]
    first = client.chat(messages, session, headers)
    messages += [assistant("an answer"), user(f"more {text}")]
    return [first["meta_info"], client.chat(messages, session, headers)["meta_info"]]


def test_a_session_of_two_turns_has_a_graph(observing: Client) -> None:
    first, second = turn(observing, "two-turns", "read the file of the tests")
    assert second["cached_tokens"] > 0
    (result,) = second["recap"]
    assert result["dropped"] == ""
    assert result["rows"] == result["end"] - result["start"]
    shown = observing.session("two-turns")
    assert shown["results"] == {"recorded": 2}
    assert shown["turns"] == shown["graph"]["turns"] == 1
    ids = [block["id"] for block in shown["graph"]["blocks"]]
    assert ids == second["recap"][0]["ids"][:2]
    use = dict(zip(first["recap"][0]["ids"], first["recap"][0]["use"], strict=True))
    shares = [use[ids[0]], use["answer"]]
    importance = [block["importance"] for block in shown["graph"]["blocks"]]
    assert importance == pytest.approx([share / max(shares) / 2 for share in shares], rel=1e-5)


@pytest.mark.parametrize("shift", [0, 1])
def test_spans_of_a_chat_are_those_of_its_words(observing: Client, model: Path, shift: int) -> None:
    """Bytes are tokens here, so positions can be counted by hand."""
    from transformers import AutoTokenizer

    texts = [f"where is it {shift}", "it is in the file", "change it"]
    roles = ["user", "assistant", "user"]
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    meta = observing.chat(messages, f"spans{shift}")["meta_info"]
    result = meta["recap"][0]
    offsets, owner = [0], []
    for number, (role, text) in enumerate(zip(roles, texts, strict=True)):
        at = offsets[-1] + len(f"-{role}\n")  # the start mark is one token
        at += 1 if number else 0  # the line's end after the end mark
        offsets += [at + shift, at + len(text) + shift, at + len(text) + 1]
        owner += [-1, number, -1]
    tokenizer = AutoTokenizer.from_pretrained(model)
    ids = tokenizer.apply_chat_template(
        messages, tokenize=True, add_generation_prompt=True, return_dict=False
    )
    offsets[-1] = len(ids)
    blocks = tuple(result["ids"][:3])
    segments = Segments(blocks, np.array(offsets), np.array(owner, np.int32))
    asked = Payload("s", 0, 1, result["start"], segments, tail="answer")
    settings, end = Settings(), result["end"]
    # Seven of eight generated tokens have a key; what they are is in the response's ids.
    whole = observing.json(
        "/generate",
        {
            "input_ids": ids,
            "sampling_params": {"temperature": 0, "max_new_tokens": 8, "ignore_eos": True},
        },
    )["output_ids"]
    rows = np.arange(result["start"], end)
    assert len(rows) == result["rows"] <= settings.rows
    want = expected(attentions(model, [*ids, *whole][:end]), asked, rows, end, settings, 3)
    got = dict(zip(result["ids"], result["use"], strict=True))
    assert (got == pytest.approx(want.use, abs=1e-5)) == (shift == 0)


def test_claude_code_is_known_by_its_own_header(observing: Client) -> None:
    headers = {"x-claude-code-session-id": "from-claude"}
    body = {
        "model": "tiny",
        "max_tokens": 4,
        "system": "be brief",
        "messages": [user("hello from claude")],
    }
    shown = observing.json("/v1/messages", body, headers)
    assert "recap" not in json.dumps(shown)
    body["messages"] = [user("hello from claude"), assistant("yes"), user("again")]
    observing.json("/v1/messages", body, headers)
    session = observing.session("from-claude")
    assert session["results"] == {"recorded": 2}
    assert session["blocks"] == 2


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_stream_feeds_the_graph_and_shows_nothing(observing: Client, path: str) -> None:
    name = f"stream-{path.rpartition('/')[2]}"
    for messages in (
        [user("hello stream")],
        [user("hello stream"), assistant("yes"), user("again")],
    ):
        body = {"model": "tiny", "max_tokens": 5, "stream": True, "messages": messages}
        status, text = observing.send(path, body, {"x-recap-session": name})
        assert status == 200
        assert "recap" not in text
    shown = observing.session(name)
    assert shown["results"] == {"recorded": 2}
    assert (shown["turns"], shown["blocks"]) == (1, 2)


def test_the_same_name_under_two_tenants_never_meets(observing: Client) -> None:
    for tenant in ("red", "blue"):
        turn(observing, "shared-name", f"words of {tenant}", {"x-tenant": tenant})
    red, blue = (observing.session("shared-name", {"x-tenant": t}) for t in ("red", "blue"))
    assert red["id"] != blue["id"]
    assert {b["id"] for b in red["graph"]["blocks"]}.isdisjoint(
        {b["id"] for b in blue["graph"]["blocks"][:1]}
    )
    assert observing.send(f"/recap/sessions/{red['id']}", headers={"x-tenant": "blue"})[0] == 404
    assert "shared-name" not in observing.send("/recap/sessions")[1]


@pytest.mark.parametrize("label", ["x" * 200, "two words", "späte", ""])
def test_a_malformed_label_is_served_and_stores_nothing(observing: Client, label: str) -> None:
    before = observing.status()
    meta = observing.chat([user("hello label")], label)["meta_info"]
    assert meta["recap"][0]["session"] == ""
    after = observing.status()
    assert after["sessions"] == before["sessions"]
    malformed = after["malformed"].get("label", 0) - before["malformed"].get("label", 0)
    assert malformed == (1 if label else 0)


def test_a_header_too_long_is_served_and_stores_nothing(observing: Client) -> None:
    before = observing.status()["sessions"]
    headers = {"x-recap-session": "y" * 4000, "x-tenant": "z" * 4000}
    observing.chat([user("hello header")], None, headers)
    assert observing.status()["sessions"] == before


def test_a_client_that_hangs_up_leaves_nothing_behind(observing: Client) -> None:
    before = sum(observing.status()["results"].values())
    body = {
        "model": "tiny",
        "messages": [user("count up")],
        "max_tokens": 3000,
        "ignore_eos": True,
        "stream": True,
        "session_id": "hung-up",
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{observing.server.port}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        answer.readline()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and sum(observing.status()["results"].values()) == before:
        time.sleep(0.5)
    results = observing.status()["results"]
    assert sum(results.values()) == before + 1
    assert results.get("aborted", 0) + results.get("no-answer", 0) == 1
    turn(observing, "after", "the server goes on")


def test_eight_sessions_at_a_time_do_not_mix(observing: Client) -> None:
    def serve(number: int) -> Any:
        turn(observing, f"many-{number}", f"words of session {number}")
        return observing.session(f"many-{number}")

    with ThreadPoolExecutor(8) as pool:
        shown = list(pool.map(serve, range(8)))
    assert len({one["graph"]["blocks"][0]["id"] for one in shown}) == 8
    assert all(one["results"] == {"recorded": 2} and one["turns"] == 1 for one in shown)


@pytest.mark.parametrize("route", ROUTES)
def test_routes_want_the_key_of_the_server(observing: Client, route: str) -> None:
    for key in ("", "another"):
        assert Client(observing.server, key).send(f"/recap/{route}")[0] == 401
    assert observing.send(f"/recap/{route}")[0] == (404 if route == "sessions/0123" else 200)


def test_every_request_is_counted_once(observing: Client) -> None:
    status = observing.status()
    assert status["is_healthy"]
    assert status["workers"] == "answer"
    assert status["errors"] == {}
    assert status["requests"] == sum(status["prepared"].values())
    assert status["prepared"]["asked"] == sum(status["results"].values())
    text = observing.send("/recap/metrics")[1]
    assert f"recap_requests_total {status['requests']}\n" in text


def test_the_log_holds_no_words_and_no_fault(observing: Client) -> None:
    log = observing.server.log.read_text()
    assert "served without Recap" not in log
    assert "words of" not in log
    assert KEY not in log.replace(f"'api_key': '{KEY}'", "")


@pytest.mark.parametrize("route", ROUTES)
def test_a_server_without_the_flag_has_no_routes(plain: Client, route: str) -> None:
    assert plain.send(f"/recap/{route}")[0] == 404


def test_answers_are_the_same_with_and_without_the_flag(observing: Client, plain: Client) -> None:
    messages = [user("tell me of the sea"), assistant("it is wide"), user("and deep?")]
    options = {"max_tokens": 64, "logprobs": True, "top_logprobs": 3}
    for client in (observing, plain):  # a cached prefix is computed in other shapes
        assert client.send("/flush_cache", {})[0] == 200
    measured = observing.chat(messages, "identical", **options)
    without = plain.chat(messages, "identical", **options)
    assert measured["message"] == without["message"]
    assert measured["logprobs"] == without["logprobs"]
    assert set(measured["meta_info"]) == {*without["meta_info"], "recap"}


def long_history() -> list[dict[str, str]]:
    messages = []
    for number in range(4):
        messages += [user(f"question {number}"), assistant(f"answer {number} " * 30)]
    return messages


def test_a_turn_is_served_a_shorter_prompt_and_says_why(compacting: Client, plain: Client) -> None:
    headers = {"x-recap-mode": "turn"}
    messages = [*long_history(), user("and now?")]
    whole = plain.chat(messages, "short")["meta_info"]
    meta = compacting.chat(messages, "short", headers)["meta_info"]
    assert meta["prompt_tokens"] < 0.6 * whole["prompt_tokens"]
    told = meta["recap_compaction"]
    assert (told["action"], told["reason"]) == ("select", "unknown")
    assert told["chars_after"] < told["chars_before"]
    assert meta["recap"][0]["dropped"] == ""
    shown = compacting.session("short")
    assert (shown["action"], shown["reason"]) == ("select", "unknown")
    again = compacting.chat(messages, "short", headers)["meta_info"]
    assert again["prompt_tokens"] == meta["prompt_tokens"]
    assert again["recap_compaction"]["reason"] == "same_turn"
    messages += [assistant("now it is"), user("thanks")]
    warm = compacting.chat(messages, "short", headers)["meta_info"]
    assert warm["recap_compaction"]["reason"] == "warm"
    assert warm["cached_tokens"] >= meta["prompt_tokens"] - 20


def test_a_request_without_tools_is_left_alone(compacting: Client, plain: Client) -> None:
    messages = [*long_history(), user("and now?")]
    whole = plain.chat(messages, "whole")["meta_info"]
    assert (
        compacting.chat(messages, "whole")["meta_info"]["prompt_tokens"] == whole["prompt_tokens"]
    )
    assert compacting.status()["kept_whole"]["side_call"] >= 1


def test_calls_and_their_results_are_one_block(observing: Client) -> None:
    function = {"name": "read", "arguments": '{"path": "a.py"}'}
    messages = [
        user("read the file a"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "def f(): return 1"},
    ]
    tool = {"name": "read", "parameters": {"type": "object", "properties": {}}}
    tools = [{"type": "function", "function": tool}]
    first = observing.chat(messages[:1], "calls", tools=tools)["meta_info"]["recap"][0]
    step = observing.chat(messages, "calls", tools=tools)["meta_info"]["recap"][0]
    assert (first["dropped"], step["dropped"]) == ("", "")
    assert (first["turn"], step["turn"]) == (0, 0)
    assert step["ids"][0] == first["ids"][0]
    assert len(step["ids"]) == 3
    messages += [assistant("it returns 1"), user("good")]
    observing.chat(messages, "calls", tools=tools)
    shown = observing.session("calls")
    assert [block["id"] for block in shown["graph"]["blocks"]][:2] == step["ids"][:2]
    assert (shown["turns"], shown["blocks"]) == (1, 3)
