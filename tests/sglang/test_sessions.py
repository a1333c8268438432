"""Sessions in memory: limits are reached by letting the least recently used go."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from recap.config import Settings
from recap.economics import Usage
from recap.graph.observation import TurnObservation
from recap.sglang.payload import Result
from recap.sglang.sessions import (
    MEMORY_FACTOR,
    OVERHEAD,
    Arrived,
    Live,
    MemoryShelf,
    Sessions,
    result_of,
    usage_of,
)
from recap.turns import SessionKey
from tests.sglang.small_server import assistant, call, user
from tests.sglang.small_server import result as answer


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def sessions(clock: Clock | None = None, most: int = 100, most_bytes: int = 1 << 30) -> Sessions:
    return Sessions(Settings(), most=most, most_bytes=most_bytes, idle=60, clock=clock or Clock())


def enter(table: Sessions, name: str, tenant: str = "t", root: str = "r") -> Live:
    return table.enter(SessionKey(tenant, name, "", root), "model")


def names(table: Sessions, tenant: str = "t") -> list[str]:
    return [live.key.id for live in table.of(tenant)]


def test_the_same_key_is_the_same_session() -> None:
    table = sessions()
    assert enter(table, "a") is enter(table, "a")
    assert len({id(enter(table, "a", root=root)) for root in "xyz"}) == 3


def test_the_least_recently_used_goes_first() -> None:
    table = sessions(most=2)
    for name in ("a", "b", "a", "c"):
        enter(table, name)
    assert names(table) == ["c", "a"]
    assert table.evicted == {"sessions": 1}


def test_idle_sessions_go_also_where_nobody_enters() -> None:
    clock = Clock()
    table = sessions(clock)
    enter(table, "a")
    clock.now = 50
    enter(table, "b")
    clock.now = 70
    assert names(table) == ["b"]
    assert table.evicted == {"idle": 1}


def test_memory_is_bounded_but_the_last_session_stays() -> None:
    table = sessions(most_bytes=3 * OVERHEAD)
    for name in "abcdef":
        enter(table, name).size = 2 * OVERHEAD
    assert names(table)[0] == "f"
    assert table.size <= 5 * OVERHEAD
    enter(table, "huge").size = 100 * OVERHEAD
    enter(table, "huge")
    assert names(table) == ["huge"]


def test_a_thousand_sessions_leave_no_more_than_the_limit() -> None:
    table = sessions(most=10)
    for number in range(1000):
        enter(table, f"s{number}")
    assert len(table) == 10
    assert table.evicted == {"sessions": 990}


def test_a_session_is_found_by_its_own_tenant_alone() -> None:
    table = sessions()
    live = enter(table, "a", "one")
    assert table.find("one", live.id) is live
    assert table.find("two", live.id) is None


def test_ids_of_two_servers_differ() -> None:
    assert enter(sessions(), "a").id != enter(sessions(), "a").id


def test_a_shelf_of_another_secret_has_other_keys() -> None:
    one, other = MemoryShelf(b"1" * 32), MemoryShelf(b"2" * 32)
    assert one.key("a") == MemoryShelf(b"1" * 32).key("a")
    assert one.key("a") != other.key("a")
    assert len(one.key("a", b"b")) == 16


def test_memory_grows_with_what_a_session_says() -> None:
    live = enter(sessions(), "a")
    live.read([{"role": "user", "content": "x" * 1000}])
    assert live.size > OVERHEAD + 1000


def result(blocks: int) -> Result:
    ids = [f"{number:016x}" for number in range(blocks)]
    later = np.repeat(np.arange(1, blocks), 3)
    seen = TurnObservation.of(0, ids, np.ones(blocks), later, np.zeros_like(later), later * 0.0)
    return Result("r", "s", seen, "", 8, (0,), 0, 9, "inner")


def test_memory_grows_with_results_that_wait_and_with_turns_that_are_remembered() -> None:
    live = enter(sessions(), "a")
    live.read([{"role": "user", "content": "x"}])
    empty = live.size
    tracemalloc.start()
    for number in range(64):
        items = [{"role": "user", "content": f"{number}" * 5000}]
        arrived = Arrived(number, items, 10_000, result(200), Usage(1, 0, 1), 0.0)
        live.arrive(arrived, "recorded")
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (live.size - empty) == pytest.approx(taken, rel=0.5)
    waiting = live.size
    live.items = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    live.take_results(is_judged=False)
    assert len(live.arrived) == 0
    assert empty < live.size < waiting
    assert live.size - empty == live.turns.size


def test_memory_grows_with_what_a_client_condensed_away() -> None:
    live = enter(sessions(), "a")
    messages: list[dict[str, Any]] = [user("begin")]
    for at in range(6):
        messages += [call(f"c{at}", "{}"), answer(f"c{at}", "x" * 5000), assistant("fine")]
        messages.append(user(f"go on {at}"))
    live.observe(live.read(messages))
    shorter = [messages[0], *messages[17:]]
    live.observe(live.read(shorter))
    assert live.item_bytes < 15_000
    assert live.size > OVERHEAD + MEMORY_FACTOR * 28_000


def test_equal_messages_stay_the_same_objects() -> None:
    live = enter(sessions(), "a")
    live.read([{"role": "user", "content": "x"}])
    first = live.items[0]
    live.read([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}])
    assert live.items[0] is first
    live.read([{"role": "user", "content": "z"}])
    assert live.items == [{"role": "user", "content": "z"}]


def test_what_is_no_result_is_none() -> None:
    assert result_of([]) is None
    assert result_of([{"rid": "x"}]) is None
    assert result_of(["text", 3]) is None


def test_usage_is_never_more_cached_than_there_is() -> None:
    usage = usage_of({"prompt_tokens": 10, "cached_tokens": 25, "completion_tokens": None})
    assert (usage.input, usage.cache_read, usage.output) == (10, 10, 0)
    assert usage_of({"prompt_tokens": "many"}).input == 0
