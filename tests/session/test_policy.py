"""What a session serves: fixed within a turn, grown while the cache is warm, selected when it pays."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import recap
from recap.config import Settings
from recap.economics import tokens_of
from recap.errors import StoreError, UsageError
from recap.select import kept as kept_sets
from recap.session import Session
from recap.store import Store
from tests.testing import conversation

if TYPE_CHECKING:
    from pathlib import Path

    from recap.store import SelectionRow

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 40_000, "output_tokens": 5}
SETTINGS = Settings(retention="0.3", context_tokens=None)


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def requests(messages: list[dict[str, Any]]) -> list[int]:
    """Return the lengths of the list when each request of a person was its last message."""
    return [
        at + 1
        for at, m in enumerate(messages)
        if isinstance(m["content"], str) and m["role"] == "user"
    ]


def is_prefix(short: list[Any], long: list[Any]) -> bool:
    return long[: len(short)] == short


def test_the_steps_of_a_turn_get_the_same_history(tmp_path: Path) -> None:
    messages = conversation(6, steps=3)
    start = requests(messages)[-1]
    served = []
    for end in range(start, len(messages) + 1, 2):
        with Session("s", store=tmp_path, settings=SETTINGS) as session:
            served.append(session.compact(messages[:end]))
    assert [done.report.action for done in served] == ["select", *["reuse"] * (len(served) - 1)]
    for before, after in itertools.pairwise(served):
        assert is_prefix(before.messages, after.messages)


def test_a_lost_selection_is_made_again_the_same() -> None:
    messages = conversation(6, steps=3)
    start = requests(messages)[-1]
    with Session("s", settings=SETTINGS) as session:
        first = session.compact(messages[:start], policy="paper")
    with Session("s", settings=SETTINGS) as other:
        later = other.compact(messages[: start + 2], policy="paper")
    assert later.report.reason == "lost"
    assert is_prefix(first.messages, later.messages)


def test_other_settings_or_pins_select_anew() -> None:
    messages = conversation(6)
    with Session("s", settings=SETTINGS) as session:
        first = session.compact(messages, "next")
        assert session.compact(messages, "next").report.action == "reuse"
        pinned = [first.table.ids[1]]
        assert session.compact(messages, "next", pins=pinned).report.action == "select"
        assert session.compact(messages, "next", retention=0.5).report.action == "select"
        assert session.compact(messages, "next", policy="recency").report.action == "select"


def test_while_the_cache_is_warm_the_served_prefix_only_grows() -> None:
    clock = Clock()
    messages = conversation(8)
    served = []
    with Session("s", settings=SETTINGS, clock=clock) as session:
        for end in requests(messages)[3:]:
            served.append(session.compact(messages[:end]))
            clock.now += 60
            session.responded(USAGE)
    assert [done.report.action for done in served] == ["select", *["extend"] * (len(served) - 1)]
    for before, after in itertools.pairwise(served):
        assert is_prefix(before.messages, after.messages)
        assert recap.check(after.messages, "anthropic") == []


def test_selections_of_several_settings_live_side_by_side() -> None:
    messages = conversation(6)
    first, second = requests(messages)[-2:]
    with Session("s", settings=SETTINGS) as session:
        for end in (first, first + 2):
            narrow = session.compact(messages[:end])
            wide = session.compact(messages[:end], retention=0.9)
        assert (narrow.report.action, wide.report.action) == ("reuse", "reuse")
        session.responded(USAGE)
        assert session.compact(messages[:second]).report.action == "extend"
        other = session.compact(messages[:second], retention=0.5)
    assert (other.report.action, other.report.reason) == ("select", "settings")


def test_a_response_from_the_future_proves_no_warm_cache() -> None:
    clock = Clock()
    messages = conversation(6)
    first, second = requests(messages)[-2:]
    with Session("s", settings=SETTINGS, clock=clock) as session:
        session.compact(messages[:first])
        session.responded(USAGE, clock.now + 1e9)
        assert session.compact(messages[:second]).report.reason == "idle"


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1, 10**400, "now", 1.8e12])
def test_a_response_at_no_time_is_refused(at: Any) -> None:
    with Session("s") as session:
        session.compact(conversation(2))
        with pytest.raises(UsageError, match="at must be"):
            session.responded(USAGE, at)


def test_a_question_apart_changes_nothing_of_the_turns_that_go_on() -> None:
    messages = conversation(6)
    first, second = requests(messages)[-2:]
    with Session("s", settings=SETTINGS) as session:
        before = session.compact(messages[:first])
        session.compact(messages[: second - 1], "what is left to do?")
        session.responded(USAGE)
        after = session.compact(messages[:second])
    assert after.report.action == "extend"
    assert is_prefix(before.messages, after.messages)


def test_another_process_is_heard_of(tmp_path: Path) -> None:
    clock = Clock()
    messages = conversation(6)
    first, second = requests(messages)[-2:]
    with (
        Session("s", store=tmp_path, settings=SETTINGS, clock=clock) as one,
        Session("s", store=tmp_path, settings=SETTINGS, clock=clock) as other,
    ):
        one.compact(messages[:first])
        other.compact(messages[:first])
        one.responded(USAGE)
        assert other.compact(messages[:second]).report.action == "extend"


@pytest.mark.parametrize("reason", ["idle", "cache_fell", "cold_resume", "near_limit"])
def test_when_the_cache_is_gone_the_next_turn_is_selected(reason: str) -> None:
    clock = Clock()
    messages = conversation(8)
    first, second = requests(messages)[-2:]
    limit = 5000 if reason == "near_limit" else None
    limited = SETTINGS.replace(context_tokens=limit, near_limit=0.1)
    with Session("s", settings=limited, clock=clock) as session:
        session.compact(messages[:first])
        session.responded(USAGE)
        if reason == "cache_fell":
            session.responded(USAGE)
            session.responded({**USAGE, "cache_read_input_tokens": 10})
        clock.now += 10_000 if reason == "idle" else 10
        done = session.compact(messages[:second], is_cold=reason == "cold_resume")
    assert (done.report.action, done.report.reason) == ("select", reason)


def test_a_cache_that_holds_less_after_a_selection_is_no_reason_for_the_next() -> None:
    messages = conversation(8)
    with Session("s", settings=SETTINGS, clock=Clock()) as session:
        session.responded(USAGE)
        for end in requests(messages)[-2:]:
            done = session.compact(messages[:end], is_cold=end < requests(messages)[-1])
            session.responded({**USAGE, "cache_read_input_tokens": 10})
    assert (done.report.action, done.report.reason) == ("extend", "warm")


def test_a_turn_that_began_whole_stays_whole(tmp_path: Path) -> None:
    clock = Clock()
    messages = conversation(8, steps=3)
    start = requests(messages)[-1]
    with Session("s", store=tmp_path, settings=SETTINGS, clock=clock) as session:
        with pytest.raises(UsageError):
            session.responded({"nothing": "known"})
        session.compact(messages[: requests(messages)[0]])
        session.responded(USAGE)
    with Session("s", store=tmp_path, settings=SETTINGS, clock=clock) as session:
        whole = session.compact(messages[:start])
    clock.now += 10_000
    with Session("s", store=tmp_path, settings=SETTINGS, clock=clock) as session:
        later = session.compact(messages[: start + 2])
    assert later.messages == messages[: start + 2]
    assert whole.messages == messages[:start]


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_the_modes_that_change_nothing_pass_everything(mode: str, tmp_path: Path) -> None:
    messages = conversation(6)
    with Session("s", store=tmp_path, settings=SETTINGS.replace(mode=mode)) as session:
        done = session.compact(messages)
        assert done.messages == messages
        assert (done.report.action, done.report.reason) == ("pass", mode)
        assert session.row is not None
        assert bool(session.row.rev) is (mode == "observe")
        assert session.selections(messages) == []


@settings(max_examples=6, phases=[Phase.explicit, Phase.generate])
@given(steps=st.integers(20, 40), step_tokens=st.integers(400, 2000))
def test_an_endless_turn_is_compacted_at_epochs(steps: int, step_tokens: int) -> None:
    epochs = SETTINGS.replace(mode="epoch", epoch_start_tokens=1000, epoch_step_tokens=step_tokens)
    messages = conversation(1, steps=steps, size=400)
    served, tokens = [], []
    with Session("s", settings=epochs) as session:
        for end in range(1, len(messages), 2):
            done = session.compact(messages[:end])
            served.append(done)
            tokens.append(tokens_of(done.known.prompt_chars))
    begun = [at for at, done in enumerate(served) if done.report.action == "select"]
    assert begun
    for before, after in itertools.pairwise(begun):
        assert tokens[after] - tokens[before] >= step_tokens
    for at, (before, after) in enumerate(itertools.pairwise(served)):
        assert after.messages[-2:] == messages[len(messages[: 2 * at + 3]) - 2 : 2 * at + 3]
        assert recap.check(after.messages, "anthropic") == []
        if at + 1 not in begun:
            assert is_prefix(before.messages, after.messages)
    assert len(served[-1].messages) < len(messages)


def test_words_of_the_request_an_epoch_began_with_stay() -> None:
    epochs = SETTINGS.replace(mode="epoch", epoch_start_tokens=50, epoch_step_tokens=9000)
    messages = [*conversation(3), {"role": "user", "content": "words to keep"}]
    step = conversation(5)[-7:-5]
    with Session("s", settings=epochs) as session:
        assert session.compact(messages).report.action == "select"
        done = session.compact([*messages, *step])
        assert done.report.action == "reuse"
    assert messages[-1] in done.messages


def test_an_epoch_begins_when_the_client_shortened_the_prompt() -> None:
    epochs = SETTINGS.replace(mode="epoch", epoch_start_tokens=50, epoch_step_tokens=1000)
    messages = conversation(1, steps=40, size=400)
    with Session("s", settings=epochs) as session:
        session.compact(messages[:-1])
        done = session.compact([messages[0], *messages[51:-1]])
    assert (done.report.action, done.report.reason) == ("select", "epoch")


def test_characters_a_token_are_learned_from_what_was_served() -> None:
    messages = conversation(30)
    with Session("s", settings=SETTINGS) as session:
        done = session.compact(messages)
        tokens = done.report.prompt_chars // 3
        session.responded({"input_tokens": tokens, "output_tokens": 1})
        assert session.row is not None
        assert session.row.chars_per_token == pytest.approx(3, rel=0.01)


def test_a_compaction_says_what_it_costs_and_saves() -> None:
    messages = conversation(30)
    for message in messages:
        if message["role"] == "assistant":
            message["model"] = "claude-sonnet-4-5"
    with Session("s", settings=SETTINGS) as session:
        done = session.compact(messages)
    assert done.verdict is not None
    assert done.verdict.advice == "compact"
    assert done.verdict.tokens_removed > 0


def test_sixty_four_selections_are_kept(tmp_path: Path) -> None:
    messages = conversation(3)
    with Session("s", store=tmp_path, settings=SETTINGS) as session:
        for number in range(70):
            session.compact(messages, f"request {number}")
        assert len(session.selections(messages)) == 64


def test_a_session_that_was_removed_is_saved_anew(tmp_path: Path) -> None:
    messages = conversation(6)
    with Store.open(tmp_path) as store, Session("s", store=store, settings=SETTINGS) as session:
        session.compact(messages)
        assert session.row is not None
        store.delete_session(session.row.tenant, session.row.id)
        session.compact(messages, "next")
        assert session.failure is None
        assert (session.row.rev, session.row.parent) == (1, None)
        assert len(session.selections(messages)) == 1


def test_what_another_process_gave_the_turn_first_is_served(tmp_path: Path) -> None:
    messages = conversation(6)
    with Store.open(tmp_path) as store:
        with Session("s", store=store, settings=SETTINGS) as session:
            session.compact(messages[:-8])

        class Overtaken(Store):
            """A store to which another process writes just before this one does."""

            def put_selection(self, row: SelectionRow, *, durable: bool = True) -> SelectionRow:
                other = kept_sets.encode(kept_sets.whole("coverage", row.key))
                store.put_selection(replace(row, kept=other))
                return store.put_selection(row)

        overtaken = Overtaken(store._place, store._lock, store._secret, store._clock)
        with Session("s", store=overtaken, settings=SETTINGS) as session:
            done = session.compact(messages[:-8], "next")
        overtaken._database.close()
        with Session("s", store=store, settings=SETTINGS) as session:
            assert session.compact(messages[:-8], "next").messages == done.messages
    assert len(done.messages) == len(messages) - 7


def test_a_result_is_returned_when_the_store_cannot_be_written(tmp_path: Path) -> None:
    messages = conversation(6)
    session = Session("s", store=tmp_path, settings=SETTINGS)
    session.compact(messages)
    size = (tmp_path / "recap.db").stat().st_size
    session.close()
    with pytest.raises(StoreError):
        session.compact(messages, "next")
    assert (tmp_path / "recap.db").stat().st_size == size
