"""What a session serves: fixed within a turn, grown while the cache is warm, selected when it pays."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import recap
from recap.config import Settings
from recap.economics import tokens_of
from recap.errors import StoreError, UsageError
from recap.session import Session
from tests.testing import conversation

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_result_is_returned_when_the_store_cannot_be_written(tmp_path: Path) -> None:
    messages = conversation(6)
    session = Session("s", store=tmp_path, settings=SETTINGS)
    session.compact(messages)
    size = (tmp_path / "recap.db").stat().st_size
    session.close()
    with pytest.raises(StoreError):
        session.compact(messages, "next")
    assert (tmp_path / "recap.db").stat().st_size == size
