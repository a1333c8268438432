from __future__ import annotations

import json

from recap.turns import boundaries, chain, current_boundary, selection_seed, session_key
from tests.testing import call, message, reply, result, text, thinking, user


def test_a_boundary_is_a_real_user_message():
    messages = [
        message("user", text("<system-reminder>", "injected")),
        user("go"),
        message("assistant", call("a")),
        message("tool", result("a")),
        message("user", text("rather that", "steering")),
        message("user", text("[Request interrupted by user]", "marker")),
    ]
    assert [(b.message, b.is_steering) for b in boundaries(messages)] == [(1, False), (4, True)]


def test_steering_gives_a_new_turn_key_but_the_selection_keeps_its_own():
    messages = [user("go"), message("assistant", call("a")), message("tool", result("a"))]
    steered = [*messages, message("user", text("rather that", "steering"))]
    found = boundaries(steered)
    assert found[0].turn_key != found[1].turn_key
    assert current_boundary(found) == current_boundary(boundaries(messages))


def test_the_turn_key_stays_while_the_agent_works():
    messages = [user("go"), message("assistant", call("a")), message("tool", result("a"))]
    keys = {boundaries(messages[:end])[-1].turn_key for end in (1, 2, 3)}
    assert len(keys) == 1


def test_thinking_and_system_text_are_no_part_of_identity():
    plain = [user("go"), reply("ok"), user("on")]
    noisy = [
        message("system", text("be kind", "system")),
        user("go"),
        message("assistant", thinking("hm"), text("ok", "agent")),
        user("on"),
    ]
    assert chain(plain)[-1] == chain(noisy)[-1]


def test_the_root_is_part_of_the_session_key():
    """A title call shares the session id of the conversation it names."""
    headers = {"X-Session-Id": "ses_1"}
    main = session_key([user("fix it")], headers)
    title = session_key([user("Write a title")], headers)
    assert main.id == title.id == "ses_1"
    assert main != title


def test_the_first_id_present_wins():
    headers = {"session-id": "b", "x-recap-session": "a"}
    assert session_key([user("x")], headers, {"prompt_cache_key": "c"}).id == "a"
    assert session_key([user("x")], {}, {"prompt_cache_key": "c"}).id == "c"


def test_the_session_in_user_id_is_found_in_both_forms():
    as_json = json.dumps({"device_id": "d", "session_id": "s1"})
    assert session_key([user("x")], {}, {"metadata": {"user_id": as_json}}).id == "s1"
    plain = {"metadata": {"user_id": "user_1_account__session_s2"}}
    assert session_key([user("x")], {}, plain).id == "s2"
    assert session_key([user("x")], {}, {"metadata": {"user_id": 7}}).id == ""


def test_sub_agents_with_equal_prompts_differ_by_agent():
    one = session_key([user("x")], {"x-claude-code-agent-id": "a1"})
    two = session_key([user("x")], {"x-claude-code-agent-id": "a2"})
    assert selection_seed(one, "k") != selection_seed(two, "k")


def test_a_list_without_real_user_message_has_no_root():
    assert session_key([reply("hello")]).root == ""
    assert current_boundary(boundaries([reply("hello")])) is None
