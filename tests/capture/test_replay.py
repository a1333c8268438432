from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.table import BlockTable, build_table
from recap.capture.replay import CLIPS, ELLIPSIS, Replay, ReplayError, clipped, fitting, replay_of
from recap.transcript.formats import open_log
from tests.testing import (
    call,
    conversation,
    message,
    read_messages,
    reply,
    result,
    step,
    text,
    thinking,
    user,
)

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Message

NUMBER = 10_000


def table_of(*messages: Message | list[Message]) -> BlockTable:
    flat: list[Message] = []
    for each in messages:
        flat += each if isinstance(each, list) else [each]
    return build_table(flat)


def session(turns: int = 3) -> BlockTable:
    return build_table(read_messages(conversation(turns)).messages)


def said(replay: Replay) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in replay.messages]


def chars(replay: Replay) -> int:
    return sum(len(m["content"]) for m in replay.messages)


def test_calls_and_results_are_plain_text_of_the_roles_that_every_template_knows() -> None:
    table = table_of(user("fix it"), step("1", "three lines", "Read", path="a.py"), reply("done"))
    replay = replay_of(table, 0, 100)
    assert said(replay) == [
        ("user", "fix it"),
        ("assistant", "Read\na.py"),
        ("user", "three lines"),
        ("assistant", "done"),
    ]
    assert replay.owner == (0, 1, 1, 2)
    assert replay.ids == table.ids
    assert (replay.first_new, replay.clip) == (0, 100)


def test_parallel_calls_and_their_results_stay_together_in_order() -> None:
    calls = message("assistant", text("both", "agent"), call("1", path="a"), call("2", path="b"))
    table = table_of(user("go"), calls, message("tool", result("2", "B"), result("1", "A")))
    assert said(replay_of(table, 0, 100))[1:] == [
        ("assistant", "both\nRead\na\nRead\nb"),
        ("user", "A\nB"),
    ]


def test_thinking_system_text_and_blank_parts_are_left_out() -> None:
    table = table_of(
        message("system", text("be brief", "system")),
        user("go"),
        message("assistant", thinking("hm"), text("yes", "agent")),
        message("assistant", call("1", path="a")),
        message("tool", result("1", "  ")),
    )
    replay = replay_of(table, 0, 100)
    assert said(replay) == [
        ("user", "go"),
        ("assistant", "yes"),
        ("user", "..."),
        ("assistant", "Read\na"),
    ]
    assert replay.owner == (0, 1, -1, 2)


def test_machine_text_between_turns_is_of_the_user_role() -> None:
    machine = message("user", text("task 7 ended", "notification"))
    table = table_of(user("go"), reply("yes"), machine, reply("good"))
    assert said(replay_of(table, 0, 100))[2] == ("user", "task 7 ended")


def test_a_block_that_is_no_text_is_not_shown() -> None:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa"}}
    content = [{"role": "user", "content": [block]}, {"role": "assistant", "content": "nice"}]
    table = build_table(read_messages(content).messages)
    replay = replay_of(table, 0, 100)
    assert len(table) == 2
    assert said(replay) == [("user", "..."), ("assistant", "nice")]
    assert replay.ids == table.ids[1:]
    assert replay.owner == (-1, 0)


def test_the_turn_begins_with_the_users_request() -> None:
    table = session()
    for turn in range(3):
        replay = replay_of(table, turn, 100)
        first = replay.messages[replay.first_new]
        assert (first["role"], f"module_{turn}.py" in first["content"]) == ("user", True)
        owners = [owner for owner in replay.owner[replay.first_new :] if owner >= 0]
        assert {table.ids.index(replay.ids[owner]) for owner in owners} == {
            at for at in range(len(table)) if table.turn[at] == turn
        }


def test_only_served_blocks_stand_before_the_turn() -> None:
    table = session()
    replay = replay_of(table, 2, 100, served={table.ids[1], table.ids[-1], "unknown"})
    new = tuple(id for id, turn in zip(table.ids, table.turn, strict=True) if turn == 2)
    assert replay.ids == (table.ids[1], *new)
    assert replay_of(table, 1, 100).ids == replay_of(session(2), 1, 100).ids


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    replay = replay_of(table_of(user("a\ud800b \ud83d\ude00")), 0, 100)
    assert said(replay) == [("user", "a\ufffdb 😀")]


def test_text_keeps_more_than_calls_and_outputs() -> None:
    long = "x" * 500
    table = table_of(user(long), step("1", long, path=long), reply(long))
    lengths = [len(content) for _, content in said(replay_of(table, 0, 100))]
    assert lengths == [160, 100, 100, 160]


def test_seventy_percent_of_what_stays_is_the_head() -> None:
    assert clipped("abcdefghijklmnopqrstuvwxyz", 15) == "abcdefg ... xyz"


@given(st.text(max_size=80), st.integers(7, 100))
def test_a_clipped_text_keeps_its_head_and_its_tail(words: str, length: int) -> None:
    short = clipped(words, length)
    if len(words) <= length:
        assert short == words
        return
    assert len(short) == length
    room = length - len(ELLIPSIS)
    head = max(1, room * 7 // 10)
    assert short == words[:head] + ELLIPSIS + words[len(words) - (room - head) :]


@pytest.mark.parametrize("length", [-1, 0, 6])
def test_no_text_is_clipped_to_nothing(length: int) -> None:
    with pytest.raises(ValueError, match="cannot clip"):
        clipped("some words", length)


def test_a_turn_that_does_not_exist_is_refused() -> None:
    for turn in (-1, 3):
        with pytest.raises(ValueError, match="there is no turn"):
            replay_of(session(), turn, 100)


@given(st.integers(250, 4000), st.integers(0, 2))
def test_the_largest_clip_that_fits_is_taken(limit: int, turn: int) -> None:
    table = session()
    sizes = {clip: chars(replay_of(table, turn, clip)) for clip in CLIPS}
    replay = fitting(table, turn, limit, chars)
    fits = [clip for clip in CLIPS if sizes[clip] <= limit]
    assert replay.clip == (fits[0] if fits else CLIPS[-1])
    assert chars(replay) <= limit
    if fits:
        assert replay == replay_of(table, turn, fits[0])


def test_the_first_clip_that_fits_is_taken_where_a_shorter_one_counts_more() -> None:
    odd = {600: 9, 500: 3, 400: 8, 300: 1}
    replay = fitting(session(), 1, 4, lambda replay: odd.get(replay.clip, 2))
    assert replay.clip == 500


def test_a_frozen_clip_is_tried_before_all_others() -> None:
    table = session()
    assert fitting(table, 1, NUMBER, chars, clip=150).clip == 150
    assert fitting(table, 1, NUMBER, chars, clip=77).clip == 77
    size = chars(replay_of(table, 2, 60))
    assert fitting(table, 2, size, chars, clip=600) == fitting(table, 2, size, chars)


@given(st.integers(60, 700))
def test_the_oldest_blocks_leave_first_and_the_turn_is_cut_last(limit: int) -> None:
    table = session()
    new = [id for id, turn in zip(table.ids, table.turn, strict=True) if turn == 2]
    old = list(table.ids[: len(table) - len(new)])
    replay = fitting(table, 2, limit, chars)
    assert chars(replay) <= limit
    assert replay.ids[-len(new) :] == tuple(new) or set(replay.ids) <= set(new)
    left = [id for id in replay.ids if id in old]
    assert left == old[len(old) - len(left) :]
    shown = [id for id in replay.ids if id in new]
    assert shown == [new[0], *new[len(new) - len(shown) + 1 :]]
    first = replay.messages[replay.first_new]
    assert "module_2.py" in first["content"]


@pytest.mark.parametrize("limit", range(300, 700, 50))
def test_no_block_leaves_that_would_have_fitted(limit: int) -> None:
    table = session()
    shown = len(fitting(table, 2, limit, chars).ids)
    assert 5 <= shown < len(table)  # the turn and some of what stands before it
    one_more = set(table.ids[-shown - 1 :])
    assert chars(replay_of(table, 2, CLIPS[-1], served=one_more)) > limit


def test_a_request_that_does_not_fit_alone_cannot_be_replayed() -> None:
    with pytest.raises(ReplayError, match="does not fit 10 tokens"):
        fitting(session(), 2, 10, chars)


def test_a_turn_without_any_text_adds_no_message() -> None:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa"}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": [block]},
    ]
    replay = replay_of(build_table(read_messages(messages).messages), 1, 100)
    assert said(replay) == [("user", "go"), ("assistant", "yes")]
    assert replay.first_new == 2
    with pytest.raises(ReplayError, match="nothing that can be shown"):
        fitting(build_table(read_messages(messages).messages), 1, NUMBER, chars)


kinds = st.lists(st.sampled_from(("user", "reply", "step", "steer")), min_size=1, max_size=12)


@given(kinds, st.sampled_from(CLIPS))
def test_roles_alternate_and_every_message_is_of_one_block(order: list[str], clip: int) -> None:
    messages: list[Message] = [user("start")]
    for at, kind in enumerate(order):
        if kind == "user":
            messages.append(user(f"u{at} " * at * 9))
        elif kind == "reply":
            messages.append(reply(f"r{at} " * (at + 1)))
        elif kind == "step":
            messages += step(str(at), f"o{at} " * 100, path=f"p{at}")
        else:
            messages.append(message("user", text(f"s{at}", "steering")))
    table = build_table(messages)
    replay = replay_of(table, int(table.turn[-1]), clip)
    assert [m["role"] for m in replay.messages] == [
        ("user", "assistant")[at % 2] for at in range(len(replay.messages))
    ]
    owners = [owner for owner in replay.owner if owner >= 0]
    assert owners == sorted(owners)
    assert set(owners) == set(range(len(replay.ids)))
    assert all(m["content"].strip() for m in replay.messages)
    for content, owner in zip((m["content"] for m in replay.messages), replay.owner, strict=True):
        assert (content == "...") == (owner < 0)


@pytest.mark.corpus
def test_every_turn_of_real_sessions_has_a_replay_that_fits(corpus: Path) -> None:
    for path in sorted((corpus / "sessions").glob("*/*"))[::9]:
        table = build_table(open_log(path).messages)
        for turn in sorted(set(table.turn.tolist()))[:4]:
            replay = fitting(table, turn, 4000, chars)
            assert 0 < chars(replay) <= 4000
            assert set(replay.ids) <= set(table.ids)
