"""Sessions in memory: limits are reached by letting the least recently used go."""

from __future__ import annotations

from recap.config import Settings
from recap.sglang.sessions import OVERHEAD, Live, MemoryShelf, Sessions, result_of, usage_of
from recap.turns import SessionKey


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
