"""Chat requests through the hooks of the main process, up to the graph of their session."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from recap.blocks.segment import segment
from recap.sglang import chat
from recap.sglang.options import Options
from recap.sglang.refused import RefusedError
from recap.sglang.routes import graph_view, metrics, session_row, status
from recap.transcript.lists import read_messages
from tests.sglang.small_server import (
    TOOLS,
    Adapted,
    ChatRequest,
    Message,
    SmallServer,
    assistant,
    call,
    result,
    user,
)

if TYPE_CHECKING:
    from pathlib import Path

    from recap.sglang.sessions import Live

Start = Callable[..., SmallServer]

WORK = [
    {"role": "system", "content": "you are terse"},
    user("read the file"),
    call("c1", '{"path": "a.py"}'),
    result("c1", "def f(): return 'ä\u0301😀'"),
    assistant("it returns a letter "),
    user("äöü😀 and now?"),
]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Start:
    def started(api_key: str = "", **config: object) -> SmallServer:
        return SmallServer(monkeypatch, config, api_key)

    return started


def only(server: SmallServer) -> Live:
    (live,) = server.front.sessions.of("default")
    return live


def prepared(server: SmallServer) -> dict[str, int]:
    return server.front.counts.of("prepared")


def block_ids(messages: list[dict[str, Any]]) -> list[str]:
    return [block.id for block in segment(read_messages(messages, "openai").messages).blocks]


def test_tokens_of_a_block_are_its_own_words(start: Start) -> None:
    response = start().chat(WORK, tools=TOOLS)
    first, tools, reply, last = block_ids(WORK)
    assert response.words(first) == "read the file"
    assert response.words(tools) == """read {"path": "a.py"}def f(): return 'ä\u0301😀'"""
    assert response.words(reply) == "it returns a letter"
    assert response.words(last) == "äöü😀 and now?"


def test_rows_are_sampled_from_the_turns_first_word_on(start: Start) -> None:
    response = start().chat(WORK)
    assert response.payload is not None
    segments = response.payload.segments
    at = segments.owner.tolist().index(segments.ids.index(block_ids(WORK)[-1]))
    assert response.payload.start == segments.offsets[at]
    assert response.payload.turn == 1


def test_blank_messages_do_no_harm(start: Start) -> None:
    response = start().chat([user("hello"), assistant(""), user("again")])
    assert response.payload is not None
    assert len(response.payload.segments.ids) == 2


def test_a_closed_turn_is_in_the_graph_with_its_answer(start: Start) -> None:
    server = start()
    messages = [user("read the file"), call("c1", "{}"), result("c1", "text")]
    server.chat(messages[:1])
    server.chat(messages)
    assert only(server).graph.turns == 0
    messages += [assistant("it is empty"), user("thanks")]
    server.chat(messages)
    graph = only(server).graph
    assert graph.turns == 1
    assert list(graph.ids) == block_ids(messages)[:-1]
    # Step 1 saw (request 1, call 2), step 2 (request 1, call 2, answer 3): 8 rows each.
    assert graph.importance.tolist() == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    assert session_row(only(server))["results"] == {"recorded": 3}


def test_an_answer_that_the_client_changed_was_not_measured(start: Start) -> None:
    server = start()
    server.chat([user("hello")])
    server.chat([user("hello"), user("again")])
    assert list(only(server).graph.ids) == block_ids([user("hello")])


def test_a_request_sent_again_leaves_its_results_waiting(start: Start) -> None:
    server = start()
    server.chat([user("hello")])
    server.chat([user("hello")])
    assert len(only(server).arrived) == 2
    server.chat([user("hello"), assistant("yes"), user("again")])
    assert len(only(server).arrived) == 1
    assert only(server).graph.turns == 1


def test_of_two_answers_to_one_request_nobody_knows_which_one_the_client_kept(start: Start) -> None:
    server = start()
    messages = [user("hello"), assistant("yes"), user("again")]
    server.chat(messages[:1])
    server.dropped = "aborted"
    server.chat(messages[:1])
    server.dropped = ""
    server.chat(messages)
    assert list(only(server).graph.ids) == block_ids(messages[:2])
    server.chat(messages)
    server.chat([*messages, assistant("no"), user("stop")])
    assert list(only(server).graph.ids) == block_ids(messages)


def test_a_turn_taken_back_leaves_the_earlier_ones_measured(start: Start) -> None:
    server = start()
    messages = [user("one"), assistant("1"), user("two"), assistant("2"), user("three")]
    for end in (1, 3, 5):
        server.chat(messages[:end])
    before = only(server).graph
    server.chat([*messages[:2], user("another two"), assistant("2"), user("three")])
    graph = only(server).graph
    assert graph.turns == 2
    assert graph.ids == before.ids[:2]
    assert "not-measured" not in only(server).counts


def test_a_turn_without_results_counts_as_one_that_used_nothing(start: Start) -> None:
    server = start()
    server.dropped = "no-room"
    server.chat([user("one")])
    server.dropped = ""
    server.chat([user("one"), assistant("1"), user("two")])
    assert only(server).graph.turns == 1
    assert only(server).graph.ids == ()
    assert server.front.counts.of("results") == {"no-room": 1, "recorded": 1}


def test_results_are_shown_to_a_client_that_asked_for_them_alone(start: Start) -> None:
    server = start()
    assert "recap" not in server.chat([user("hello")]).meta_info
    (shown,) = server.chat([user("hello")], return_meta_info=True).meta_info["recap"]
    assert shown["rows"] == 8
    assert shown["session"] == only(server).id


def test_a_request_without_a_session_is_measured_for_its_own_response_alone(start: Start) -> None:
    server = start()
    response = server.chat([user("hello")], session_id=None, return_meta_info=True)
    assert response.meta_info["recap"][0]["ids"] == [*block_ids([user("hello")]), "answer"]
    assert server.chat([user("hello")], session_id=None).payload is None
    assert prepared(server) == {"asked": 1, "no-session": 1}
    assert len(server.front.sessions) == 0


@pytest.mark.parametrize(
    "header", ["x-recap-session", "X-Claude-Code-Session-Id", "X-Session-Id", "session-id"]
)
def test_headers_name_a_session_as_everywhere(start: Start, header: str) -> None:
    server = start()
    server.chat([user("hello")], {header: "mine"}, session_id=None)
    assert only(server).key.id == "mine"


@pytest.mark.parametrize("label", ["x" * 129, "two words", "späť", "a\nb", "\x00"])
def test_a_malformed_label_is_counted_and_names_nothing(start: Start, label: str) -> None:
    server = start()
    by_body = server.chat([user("hello")], session_id=label)
    by_header = server.chat([user("hello")], {"x-recap-session": label}, session_id=None)
    assert by_body.payload is by_header.payload is None
    assert server.front.counts.of("malformed") == {"label": 2}
    assert len(server.front.sessions) == 0


def test_the_same_name_under_two_tenants_is_two_sessions(start: Start) -> None:
    server = start(tenant_header="x-tenant")
    for tenant in ("red", "blue"):
        server.chat([user("hello")], {"X-Tenant": tenant})
        server.chat([user("hello"), assistant("yes"), user("again")], {"x-tenant": tenant})
    red, blue = (server.front.tenant({"x-tenant": name}) for name in ("red", "blue"))
    (one,), (other,) = server.front.sessions.of(red), server.front.sessions.of(blue)
    assert one.graph == other.graph
    assert one.session is not other.session
    assert server.front.sessions.find(blue, one.id) in (None, other)
    assert server.front.sessions.of("default") == []


def test_a_tenant_header_is_trusted_only_where_the_operator_named_it(start: Start) -> None:
    server = start()
    server.chat([user("hello")], {"x-tenant": "red"})
    assert only(server).key.tenant == "default"


def test_a_malformed_tenant_is_served_and_not_stored(start: Start) -> None:
    server = start(tenant_header="x-tenant")
    assert server.chat([user("hello")], {"x-tenant": "a b"}).payload is None
    assert server.front.counts.of("malformed") == {"tenant": 1}
    assert len(server.front.sessions) == 0


def test_the_tenant_of_a_key_does_not_show_the_key(start: Start) -> None:
    server = start(api_key="secret-key")
    server.chat([user("hello")], {"Authorization": "Bearer secret-key"})
    tenant = server.front.tenant({"authorization": "bearer secret-key"})
    (live,) = server.front.sessions.of(tenant)
    assert "secret" not in live.key.tenant
    other = start(api_key="secret-key").front.tenant({"authorization": "bearer secret-key"})
    assert other != tenant


def test_what_a_client_sends_under_our_names_is_dropped_and_the_rest_stays(start: Start) -> None:
    server = start()
    forged = {"recap.session": "x", "recap.seed": "evil", "bias": 3}
    response = server.chat([user("hello")], custom_params=forged)
    params = response.adapted.sampling_params["custom_params"]
    assert params["bias"] == 3
    assert params["recap.session"] == only(server).id
    unmeasured = server.chat([user("hello")], session_id=None, custom_params=forged)
    assert unmeasured.adapted.sampling_params["custom_params"] == {"bias": 3}


@pytest.mark.parametrize(
    ("fields", "reason"), [({"input_ids": [1, 2]}, "own-ids"), ({"n": 2}, "several-answers")]
)
def test_what_has_no_place_in_a_session_is_counted(
    start: Start, fields: dict[str, Any], reason: str
) -> None:
    server = start()
    assert server.chat([user("hello")], **fields).payload is None
    assert prepared(server) == {reason: 1}


def test_a_list_without_a_persons_words_is_counted(start: Start) -> None:
    server = start()
    assert server.chat([{"role": "system", "content": "be brief"}]).payload is None
    assert prepared(server) == {"no-user-message": 1}


class Altering(SmallServer):
    """Serves something else than what was rendered."""

    def __init__(self, *args: Any, alter: Callable[[Adapted], None]) -> None:
        super().__init__(*args)
        self.alter = alter

    def _convert(self, request: ChatRequest, raw: Any = None) -> tuple[Adapted, ChatRequest]:
        adapted, request = super()._convert(request, raw)
        self.alter(adapted)
        return adapted, request

    def convert(self, request: ChatRequest, headers: Any) -> Any:
        raw = SimpleNamespace(headers=headers)
        adapted, _ = chat.convert(Altering._convert, self, request, raw)
        return adapted


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (lambda adapted: adapted.input_ids.append(7), "ids-differ"),
        (lambda adapted: adapted.input_ids.__setitem__(4, 7), "ids-differ"),
        (lambda adapted: setattr(adapted, "input_ids", None), "no-ids"),
        (lambda adapted: setattr(adapted, "image_data", ["http://x"]), "media"),
    ],
)
def test_tokens_that_are_not_those_of_the_messages_are_not_measured(
    monkeypatch: pytest.MonkeyPatch, alter: Callable[[Adapted], None], reason: str
) -> None:
    server = Altering(monkeypatch, {}, alter=alter)
    adapted = server.convert(ChatRequest([Message(user("hello"))], session_id="s"), {})
    assert not adapted.sampling_params["custom_params"]
    assert prepared(server) == {reason: 1}


def test_a_template_that_shows_a_part_of_a_message_is_not_measured(start: Start) -> None:
    server = start()
    server.manager.tokenizer = server.manager.tokenizer.__class__(
        tokenizer_object=server.manager.tokenizer.backend_tokenizer
    )
    server.manager.tokenizer.chat_template = (
        "{% for m in messages %}{{ m['content'][:4] | upper }}{% endfor %}"
    )
    assert server.chat([user("hello there")]).payload is None
    assert prepared(server) == {"unproved": 1}


def test_more_segments_than_a_worker_takes_are_not_asked_for(start: Start) -> None:
    server = start(most_segments=3)
    assert server.chat([user("one")]).payload is not None
    assert server.chat([user("one"), assistant("1"), user("two")]).payload is None
    assert prepared(server) == {"asked": 1, "too-many-segments": 1}


def test_mode_off_measures_nothing(start: Start) -> None:
    server = start(mode="off")
    assert server.chat([user("hello")], return_meta_info=True).payload is None
    assert prepared(server) == {"off": 1}
    assert len(server.front.sessions) == 0


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_these_modes_change_no_request(start: Start, mode: str) -> None:
    server = start(mode=mode)
    request = ChatRequest([Message(item) for item in WORK], session_id="s", tools=TOOLS)
    before = request.messages
    prompt = server.convert(request, {"x-recap-mode": "turn"}).prompt
    assert request.messages is before
    assert prompt == start(mode="off").convert(request, {}).prompt


def test_what_the_client_condensed_is_not_taken_for_what_it_sends(start: Start) -> None:
    server = start()
    messages = [user("begin")]
    for at in range(4):
        messages += [
            call(f"c{at}", "{}"),
            result(f"c{at}", f"result {at}"),
            assistant(f"fine {at}"),
        ]
        messages.append(user(f"go on {at}"))
    server.chat(messages)
    shorter = [messages[0], *messages[9:]]
    response = server.chat(shorter)
    assert response.payload is not None
    live = only(server)
    known = live.session.known(live.items, "openai")
    assert any(not block.is_active for block in known.whole.blocks)
    said = [response.words(id) for id in response.payload.segments.ids]
    tools = "read {}result"
    assert said == ["begin", f"{tools} 2", "fine 2", "go on 2", f"{tools} 3", "fine 3", "go on 3"]
    server.chat([*shorter, assistant("done"), user("stop")])
    (answer,) = block_ids([assistant("done")])
    assert answer in live.graph.ids


def test_a_request_that_ends_without_a_word_of_its_worker_is_counted(start: Start) -> None:
    server = start()
    server.is_silent = True
    response = server.chat([user("hello")])
    assert status(server.front)["workers"] == "not heard of yet"
    del response
    assert server.front.counts.of("results") == {"no-answer": 1}
    assert status(server.front)["workers"] == "silent"
    assert not status(server.front)["is_healthy"]


def test_a_request_may_be_collected_while_its_thread_is_counting(start: Start) -> None:
    """Python collects garbage wherever it allocates."""
    server = start()
    server.is_silent = True
    response = server.chat([user("hello")])
    with server.front.counts._lock:
        del response
    assert server.front.counts.of("results") == {"no-answer": 1}


def test_no_request_is_left_behind(start: Start) -> None:
    server = start()
    for at in range(50):
        server.is_silent = at % 2 == 0
        server.chat([user(f"hello {at}")], session_id=f"s{at % 5}")
    assert len(server.front._asked) == 0
    assert sum(server.front.counts.of("results").values()) == 50


def test_a_fault_of_ours_is_counted_and_the_request_served(start: Start, tmp_path: Path) -> None:
    server = start(store=str(tmp_path), error_limit=2)
    server.chat([user("hello")])
    server.front.sessions._shelf.close()  # type: ignore[union-attr]
    for _ in range(3):
        response = server.chat([user("hello"), assistant("yes"), user("again")])
        assert "again" in response.prompt
        assert response.payload is None
    assert server.front.counts.of("errors") == {"StoreError": 2}
    assert prepared(server) == {"asked": 1, "error": 2, "off": 1}
    assert not status(server.front)["is_on"]


def test_graphs_outlive_the_server_where_a_store_is_named(start: Start, tmp_path: Path) -> None:
    server = start(store=str(tmp_path))
    server.chat([user("hello")])
    server.chat([user("hello"), assistant("yes"), user("again")])
    before = only(server).graph
    server.front.sessions._shelf.close()  # type: ignore[union-attr]
    after = start(store=str(tmp_path))
    after.chat([user("hello"), assistant("yes"), user("again")])
    assert only(after).graph == before
    assert only(after).id == only(server).id
    after.front.sessions._shelf.close()  # type: ignore[union-attr]


@pytest.mark.parametrize("is_stored", [False, True])
def test_other_weights_have_a_graph_of_their_own(
    start: Start, tmp_path: Path, is_stored: bool
) -> None:
    server = start(store=str(tmp_path) if is_stored else "")
    server.chat([user("hello")])
    server.chat([user("hello"), assistant("yes"), user("again")])
    assert len(only(server).graph.ids) == 2
    server.manager.model_path = "other"
    server.chat([user("hello"), assistant("yes"), user("again")])
    assert only(server).graph.ids == ()
    if is_stored:
        server.front.sessions._shelf.close()  # type: ignore[union-attr]


def test_nothing_that_is_shown_holds_a_word_of_the_conversation(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    server = start()
    server.chat([user("xylophone")])
    server.chat([user("xylophone"), assistant("zeppelin"), user("quixotic")])
    shown = repr((status(server.front), metrics(server.front), caplog.text))
    shown += repr((session_row(only(server)), graph_view(only(server).graph)))
    assert not any(word in shown for word in ("xylophone", "zeppelin", "quixotic"))


def test_requests_are_counted_by_what_became_of_them(start: Start) -> None:
    server = start()
    server.chat([user("hello")])
    server.chat([user("hello")], n=2)
    counts = status(server.front)
    assert counts["requests"] == sum(counts["prepared"].values()) == 2
    assert 'recap_prepared_total{outcome="asked"} 1' in metrics(server.front)


def test_a_store_that_cannot_be_opened_ends_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    config = Options.of({"store": str(tmp_path / "file")}, {})
    monkeypatch.setattr(chat, "_frontend", None)
    for name, value in config.environment().items():
        monkeypatch.setenv(name, value)
    manager = SimpleNamespace(server_args=SimpleNamespace(api_key=None))
    with pytest.raises(RefusedError, match="recap: "):
        chat.serve(lambda *_: None, None, manager)


def test_where_nothing_was_checked_at_the_start_requests_are_served_all_the_same(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As under an Engine of the caller's own, which starts no server of SGLang's."""
    server = start()
    (tmp_path / "file").write_text("")
    for name, value in Options.of({"store": str(tmp_path / "file")}, {}).environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(chat, "_frontend", None)
    for _ in range(2):
        request = ChatRequest([Message(user("hello"))], session_id="s")
        response = server.convert(request, {})
        assert response.payload is None
        assert answer(server, object(), [{"rows": 3}]) == {"recap": [{"rows": 3}]}
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_many_requests_leave_no_more_than_the_limits(start: Start) -> None:
    server = start(sessions=5)
    for at in range(400):
        server.dropped = "" if at % 3 else "no-room"
        server.chat([user(f"hello {at % 40}")], session_id=f"s{at % 20}")
    counts = status(server.front)
    assert counts["sessions"] == 5
    assert counts["requests"] == sum(counts["results"].values()) == 400
    assert counts["results"]["no-room"] == 134
    assert len(server.front._asked) == 0


def test_a_request_does_not_wait_for_another_of_its_session_for_long(start: Start) -> None:
    server = start()
    server.chat([user("hello")])
    with only(server).lock:
        response = server.chat([user("hello")])
    assert response.payload is None
    assert prepared(server) == {"asked": 1, "busy": 1}


def answer(server: SmallServer, adapted: object, values: list[object]) -> dict[str, Any]:
    """Return the metadata of a response to an internal request."""
    meta_info: dict[str, Any] = {}
    state = SimpleNamespace(obj=adapted)
    chat.take_results(
        lambda *_: None, server.manager, meta_info, state, {"recap": [values]}, 0, {"type": "stop"}
    )
    return meta_info


def test_a_request_with_spans_of_its_own_keeps_its_result(start: Start) -> None:
    server = start()
    assert answer(server, object(), [{"rows": 3}]) == {"recap": [{"rows": 3}]}
    assert answer(server, object(), []) == {}


def test_other_metadata_goes_on_to_the_server(start: Start) -> None:
    seen: list[object] = []
    state = SimpleNamespace(obj=None)
    chat.take_results(
        lambda *given: seen.append(given[3]),
        start().manager,
        {},
        state,
        {"recap": [[]], "other": [[1]]},
        0,
        None,
    )
    assert seen == [{"other": [[1]]}]


def test_a_result_that_is_none_is_counted(start: Start) -> None:
    server = start()
    request = ChatRequest([Message(user("hello"))], session_id="s")
    response = server.convert(request, {})
    answer(server, response.adapted, [{"rid": "x"}])
    assert server.front.counts.of("results") == {"bad-result": 1}
