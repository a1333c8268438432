"""What is decided when: each state, each reason, and the invariants over random sessions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from recap.config import MODES, Settings
from recap.economics import PRICES, Change, CostVerdict, verdict_of
from recap.policy import Moment, Step, decide, is_near_limit

SETTINGS = Settings(epoch_start_tokens=10_000, epoch_step_tokens=5_000)
SONNET = PRICES["claude-sonnet-4-5"]
PAYS = verdict_of(Change(80_000, 20_000), SONNET, limit=30)
NOTHING = verdict_of(Change(80_000, 79_000, 80_000), SONNET, limit=30)

BOUNDARY = Moment(opens_turn=True, has_graph=True, has_previous=True, now=1000, last_response=990)
STEP = replace(BOUNDARY, opens_turn=False, has_selection=True)


def at(moment: Moment, mode: str = "", **changes: Any) -> Step:
    return decide(replace(moment, **changes), SETTINGS, mode=mode)


def brief(step: Step) -> tuple[str, str]:
    return step.action, step.reason


def test_a_warm_boundary_extends_what_was_served() -> None:
    assert at(BOUNDARY) == Step("extend", "warm")


def test_a_warm_session_that_was_never_compacted_stays_whole() -> None:
    assert at(BOUNDARY, has_previous=False) == Step("pass", "warm")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"last_response": 1000 - 300.1}, "idle"),
        ({"last_response": None}, "unknown"),
        ({"last_response": -2601, "cache_life": 3600}, "idle"),
        ({"cached": 900, "cached_before": 1000}, "cache_fell"),
        ({"is_cold_resume": True}, "cold_resume"),
        ({"is_near_limit": True}, "near_limit"),
    ],
)
def test_an_idle_boundary_selects(changes: dict[str, Any], reason: str) -> None:
    assert at(BOUNDARY, **changes) == Step("select", reason, "idle")


@pytest.mark.parametrize(
    "changes",
    [
        {"last_response": 700},  # exactly the time the cache lives
        {"last_response": 1007},  # a clock set back
        {"last_response": -2000, "cache_life": 3600},
        {"cached": 1000, "cached_before": 1000},
        {"cached": 5, "cached_before": None},
        {"cached": None, "cached_before": 5},
    ],
)
def test_what_does_not_show_a_lost_cache_keeps_the_session_warm(changes: dict[str, Any]) -> None:
    assert brief(at(BOUNDARY, **changes)) == ("extend", "warm")


def test_steps_and_retries_reuse_the_selection_of_the_turn() -> None:
    for changes in ({}, {"opens_turn": True}, {"last_response": 0}, {"is_near_limit": True}):
        assert at(STEP, **changes) == Step("reuse", "same_turn")


def test_a_turn_that_began_whole_stays_whole() -> None:
    whole = replace(STEP, has_selection=False, is_whole_turn=True)
    for changes in ({}, {"last_response": 0}, {"is_near_limit": True}, {"opens_turn": True}):
        assert brief(at(whole, **changes)) == ("pass", "whole_turn")


def test_a_selection_that_is_lost_in_mid_turn_is_computed_again() -> None:
    assert brief(at(STEP, has_selection=False)) == ("select", "lost")
    assert brief(at(STEP, has_selection=False, has_graph=False)) == ("pass", "no_graph")


def test_the_verdict_nothing_leaves_an_idle_session_as_it_is() -> None:
    idle = replace(BOUNDARY, last_response=0, verdict=NOTHING)
    assert at(idle) == Step("extend", "not_worth_it", "idle")
    assert at(idle, has_previous=False) == Step("pass", "not_worth_it", "idle")
    assert brief(at(idle, verdict=PAYS)) == ("select", "idle")


def test_a_full_window_cannot_wait_for_the_verdict() -> None:
    assert brief(at(BOUNDARY, is_near_limit=True, verdict=NOTHING)) == ("select", "near_limit")


def test_without_a_graph_nothing_is_selected() -> None:
    assert brief(at(BOUNDARY, last_response=0, has_graph=False)) == ("extend", "no_graph")
    bare = at(BOUNDARY, last_response=0, has_graph=False, has_previous=False)
    assert brief(bare) == ("pass", "no_graph")


def test_a_native_compaction_opens_an_epoch() -> None:
    new = replace(BOUNDARY, is_root_changed=True, has_previous=False)
    assert at(new) == Step("select", "new_epoch", "new-epoch", starts_epoch=True)
    assert at(new, has_graph=False) == Step("pass", "no_graph", "new-epoch", starts_epoch=True)
    assert at(new, verdict=NOTHING) == Step("pass", "not_worth_it", "new-epoch", starts_epoch=True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"is_side_call": True}, "side_call"),
        ({"is_compaction_prompt": True}, "native_compaction"),
        ({"has_user": False}, "no_user_message"),
    ],
)
def test_what_is_no_turn_passes_through(changes: dict[str, Any], reason: str) -> None:
    for mode in ("observe", "turn", "epoch"):
        for moment in (BOUNDARY, STEP, replace(BOUNDARY, is_root_changed=True)):
            assert at(moment, mode, **changes) == Step("pass", reason)


def test_observe_and_off_change_nothing() -> None:
    for moment in (BOUNDARY, STEP, replace(BOUNDARY, last_response=0, prompt_tokens=10**6)):
        assert brief(at(moment, "off")) == ("pass", "off")
        assert brief(at(moment, "observe")) == ("pass", "observe")


def test_the_mode_of_the_request_comes_before_the_setting() -> None:
    settings = Settings(mode="off")
    assert decide(BOUNDARY, settings).reason == "off"
    assert decide(BOUNDARY, settings, mode="turn").action == "extend"


def test_epochs_begin_above_the_start_and_a_step_apart() -> None:
    step = replace(STEP, has_selection=False, has_previous=False)
    first = at(step, "epoch", prompt_tokens=10_001)
    assert first == Step("select", "epoch", "epoch", starts_epoch=True)
    assert brief(at(step, "epoch", prompt_tokens=10_000)) == ("pass", "fixed")
    assert brief(at(step, "epoch", prompt_tokens=None)) == ("pass", "fixed")
    later = replace(STEP, epoch_tokens=12_000)
    assert brief(at(later, "epoch", prompt_tokens=16_999)) == ("reuse", "same_turn")
    assert brief(at(later, "epoch", prompt_tokens=17_000)) == ("select", "epoch")
    between = at(later, "epoch", prompt_tokens=16_999, has_selection=False, opens_turn=True)
    assert brief(between) == ("extend", "fixed")


def test_an_epoch_that_does_not_pay_is_not_begun() -> None:
    due = at(STEP, "epoch", prompt_tokens=20_000, verdict=NOTHING)
    assert due == Step("extend", "not_worth_it", "epoch")


def test_a_native_compaction_in_mode_epoch_starts_the_count_anew() -> None:
    new = replace(BOUNDARY, is_root_changed=True, epoch_tokens=90_000)
    assert at(new, "epoch", prompt_tokens=4_000) == Step("pass", "new_epoch", "new-epoch", True)
    assert brief(at(new, "epoch", prompt_tokens=12_000)) == ("select", "new_epoch")


def test_the_limit_is_a_share_of_the_window() -> None:
    settings = Settings(context_tokens=1000, near_limit=0.8)
    assert [is_near_limit(n, settings) for n in (None, 799, 800)] == [False, False, True]
    assert not is_near_limit(10**9, Settings(context_tokens=None))


BOOLEANS = (
    "opens_turn", "has_user", "is_side_call", "is_compaction_prompt", "has_graph", "has_selection",
    "has_previous", "is_whole_turn", "is_root_changed", "is_cold_resume", "is_near_limit",
)  # fmt: skip
COUNTS = st.one_of(st.none(), st.integers(0, 200_000))
MOMENTS = st.builds(
    Moment,
    **{name: st.booleans() for name in BOOLEANS},
    cache_life=st.one_of(st.none(), st.floats(0, 1e6)),
    now=st.floats(allow_nan=True),
    last_response=st.one_of(st.none(), st.floats(allow_nan=True)),
    cached=COUNTS,
    cached_before=COUNTS,
    prompt_tokens=COUNTS,
    epoch_tokens=COUNTS,
    verdict=st.sampled_from((None, PAYS, NOTHING)),
)


@given(MOMENTS, st.sampled_from(MODES))
def test_any_moment_is_decided_within_the_rules(moment: Moment, mode: str) -> None:
    step = decide(moment, SETTINGS, mode=mode)
    assert step.action != "select" or moment.has_graph
    assert step.action != "reuse" or moment.has_selection
    assert step.action != "extend" or moment.has_previous
    assert step.starts_epoch <= (step.state in ("epoch", "new-epoch"))
    if mode in ("off", "observe"):
        assert step.action == "pass"
    if mode == "turn" and step.action in ("select", "extend"):
        assert not moment.has_selection
        assert moment.opens_turn or moment.is_root_changed or step.reason == "lost"
    if step.action == "select" and moment.verdict is NOTHING:
        assert step.reason in ("near_limit", "lost")


@dataclass
class Turn:
    """A turn as its caller knows it."""

    row: int | None = None  # number of the selection that is served
    is_whole: bool = False
    is_opened: bool = False


@dataclass
class Caller:
    """A session that does what it is told and remembers what decisions need."""

    mode: str
    has_graph: bool = False
    now: float = 0.0
    last_response: float | None = None
    cached: int | None = None
    cached_before: int | None = None
    prompt: int = 2_000
    epoch_tokens: int | None = None
    previous: int | None = None
    is_root_changed: bool = False
    verdict: CostVerdict | None = None
    turn: Turn = field(default_factory=Turn)
    made: int = 0
    served: list[tuple[int | None, int]] = field(default_factory=list)

    def ask(self, **changes: Any) -> Step:
        moment = Moment(
            has_graph=self.has_graph, has_selection=self.turn.row is not None,
            has_previous=self.previous is not None, is_whole_turn=self.turn.is_whole,
            is_root_changed=self.is_root_changed, now=self.now, last_response=self.last_response,
            cached=self.cached, cached_before=self.cached_before, prompt_tokens=self.prompt,
            epoch_tokens=self.epoch_tokens, verdict=self.verdict,
        )  # fmt: skip
        return decide(replace(moment, **changes), SETTINGS, mode=self.mode)

    def do(self, step: Step) -> None:
        if step.action == "select":
            self.made += 1
            self.previous = self.turn.row = self.made
            self.cached = self.cached_before = None
        elif step.action == "extend":
            self.turn.row = self.previous
        if step.starts_epoch:
            self.epoch_tokens = self.prompt
            self.is_root_changed = False
            if step.action == "pass":
                self.previous = None
        self.turn.is_whole = step.action == "pass"
        self.turn.is_opened = True
        self.last_response = self.now


class Sessions(RuleBasedStateMachine):
    """Random sessions; what was served in a turn never changes, epochs keep their distance."""

    mode = "turn"

    @initialize(has_graph=st.sampled_from((True, True, False)))
    def begin(self, has_graph: bool) -> None:
        self.caller = Caller(self.mode, has_graph)
        self.epochs: list[int] = []
        self.request(opens_turn=True)

    def request(self, *, opens_turn: bool) -> None:
        caller = self.caller
        was_opened = caller.turn.is_opened
        before = (caller.turn.row, caller.turn.is_whole)
        is_epoch_due = caller.mode == "epoch"
        is_warm = (
            caller.last_response is not None
            and caller.now - caller.last_response <= SETTINGS.idle_ttl
            and not caller.is_root_changed
            and not (caller.cached or 0) < (caller.cached_before or 0)
        )
        step = caller.ask(opens_turn=opens_turn)
        caller.do(step)
        after = (caller.turn.row, caller.turn.is_whole)
        if was_opened and not is_epoch_due:
            assert after == before, step
        if is_warm and not is_epoch_due:
            assert step.action != "select", step
        if is_epoch_due and step.action == "select":
            assert caller.prompt > SETTINGS.epoch_start_tokens
            assert all(caller.prompt - p >= SETTINGS.epoch_step_tokens for p in self.epochs[-1:])
            self.epochs.append(caller.prompt)
        elif step.starts_epoch:
            self.epochs.append(caller.prompt)

    @rule(seconds=st.sampled_from((1.0, 299.0, 301.0, 4000.0)))
    def new_turn(self, seconds: float) -> None:
        self.caller.now += seconds
        self.caller.turn = Turn()
        self.request(opens_turn=True)

    @rule(seconds=st.sampled_from((1.0, 301.0)), grown=st.sampled_from((0, 999, 4_999, 8_000)))
    def next_step(self, seconds: float, grown: int) -> None:
        self.caller.now += seconds
        self.caller.prompt += grown
        self.request(opens_turn=False)

    @rule()
    def retry(self) -> None:
        self.request(opens_turn=True)

    @rule(cached=st.integers(0, 50_000))
    def report(self, cached: int) -> None:
        self.caller.cached_before, self.caller.cached = self.caller.cached, cached

    @rule()
    def build_graph(self) -> None:
        self.caller.has_graph = True

    @rule(verdict=st.sampled_from((None, PAYS, NOTHING)))
    def judge(self, verdict: CostVerdict | None) -> None:
        self.caller.verdict = verdict

    @rule(prompt=st.integers(1_000, 30_000))
    def compact_natively(self, prompt: int) -> None:
        """The client replaces its history: another root, another turn."""
        self.caller.is_root_changed = True
        self.caller.prompt = prompt
        self.caller.turn = Turn()
        self.epochs.clear()
        self.request(opens_turn=True)

    @rule(kind=st.sampled_from(("is_side_call", "is_compaction_prompt")))
    def side_call(self, kind: str) -> None:
        assert self.caller.ask(opens_turn=True, **{kind: True}).action == "pass"


class Epochs(Sessions):
    """The same in mode epoch."""

    mode = "epoch"


TestSessions = Sessions.TestCase
TestEpochs = Epochs.TestCase
