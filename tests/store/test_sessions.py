"""Sessions, selections and index caches: what goes in comes out, within bounds, for one tenant."""

from __future__ import annotations

import dataclasses
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recap.errors import ConflictError, StoreError, UsageError
from recap.store import SessionRow, Store, sessions
from tests.store.factories import OTHER, TENANT, chosen, key, row


def test_what_was_never_stored_is_none(store: Store) -> None:
    assert store.load_session(TENANT, key(1)) is None
    assert store.load_index(TENANT, key(1)) is None
    assert store.load_selection(TENANT, key(1), key(1)) is None
    assert store.sessions(TENANT) == store.selections(TENANT, key(1)) == []
    assert not store.delete_session(TENANT, key(1))


TEXTS = st.text(st.characters(), max_size=40)  # surrogates, NUL and newlines included
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.builds(
    SessionRow,
    tenant=st.just(TENANT), id=st.binary(min_size=16, max_size=16),
    parent=st.none() | st.binary(min_size=16, max_size=16),
    label=TEXTS, format=TEXTS, mode=TEXTS, observer=TEXTS, observed_key=TEXTS,
    turns=st.integers(0, 2**63 - 1), blocks=st.integers(0, 2**63 - 1),
    last_response=NUMBERS | st.integers(0, 2**53), cached_tokens=st.none() | st.integers(0, 9),
    chars_per_token=NUMBERS, graph=st.binary(max_size=9000),
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_a_session_comes_back_as_it_was_saved(store: Store, session: SessionRow) -> None:
    store.delete_session(TENANT, session.id)
    saved = store.save_session(session)
    assert saved == dataclasses.replace(
        session, rev=1, created=saved.created, updated=saved.updated
    )
    assert store.load_session(TENANT, session.id) == saved
    assert store.sessions(TENANT)[0] == dataclasses.replace(saved, graph=b"")


def test_a_session_outlives_the_store_that_saved_it(store: Store) -> None:
    saved = store.save_session(row(), index=b"index", selection=chosen(7))
    store.close()
    with Store.open(store.folder) as again:
        assert again.load_session(TENANT, key(1)) == saved
        assert again.load_index(TENANT, key(1)) == b"index"
        assert again.selections(TENANT, key(1)) == [chosen(7, created=1000.0)]


def test_created_stays_and_updated_moves(store: Store) -> None:
    first = store.save_session(row())
    second = store.save_session(dataclasses.replace(first, graph=b"more"))
    assert (second.rev, second.created) == (2, first.created)
    assert second.updated > first.updated


@pytest.mark.parametrize("rev", [0, 2])
def test_a_session_saved_by_another_since_is_a_conflict(store: Store, rev: int) -> None:
    saved = store.save_session(row(graph=b"mine"))
    with pytest.raises(ConflictError, match="load it again"):
        store.save_session(row(rev=rev), index=b"index", selection=chosen(1))
    assert store.load_session(TENANT, key(1)) == saved
    assert store.load_index(TENANT, key(1)) is None
    assert store.selections(TENANT, key(1)) == []


def test_a_session_removed_since_is_a_conflict(store: Store) -> None:
    saved = store.save_session(row())
    assert store.delete_session(TENANT, key(1))
    with pytest.raises(ConflictError, match="removed"):
        store.save_session(saved)


def test_deleting_a_session_takes_its_selections_and_index_along(store: Store) -> None:
    store.save_session(row(), selection=chosen(1), index=b"index")
    store.save_session(row(2), selection=chosen(1, 2), index=b"other")
    assert store.delete_session(TENANT, key(1))
    assert store.load_session(TENANT, key(1)) is None
    assert store.load_index(TENANT, key(1)) is None
    assert store.selections(TENANT, key(1)) == []
    assert store.load_index(TENANT, key(2)) == b"other"
    assert len(store.selections(TENANT, key(2))) == 1


def test_the_first_selection_of_a_turn_stays(store: Store) -> None:
    store.save_session(row())
    first = store.put_selection(chosen(1, kept=b"first"))
    assert store.put_selection(chosen(1, kept=b"second")) == first
    assert store.load_selection(TENANT, key(1), key(1)) == first


def test_other_settings_replace_the_selection_of_a_turn(store: Store) -> None:
    store.save_session(row())
    store.put_selection(chosen(1, kept=b"first"))
    second = store.put_selection(chosen(1, kept=b"second", key=b"settings"))
    assert second.kept == b"second"
    assert store.selections(TENANT, key(1)) == [second]


@pytest.mark.parametrize("changes", [{"session": key(2)}, {"tenant": OTHER}])
def test_a_session_is_not_saved_with_a_selection_of_another(
    store: Store, changes: dict[str, bytes]
) -> None:
    store.save_session(row(2))
    other = dataclasses.replace(chosen(1), **changes)
    with pytest.raises(UsageError, match="of another session"):
        store.save_session(row(), selection=other)
    assert store.load_session(TENANT, key(1)) is None


def test_a_selection_needs_its_session(store: Store) -> None:
    with pytest.raises(ConflictError, match="save it before its selections"):
        store.put_selection(chosen(1))


def test_a_session_keeps_its_64_newest_selections_whatever_the_clock_says(store: Store) -> None:
    store._clock = iter(range(10_000, 0, -1)).__next__  # type: ignore[assignment]
    saved = store.save_session(row(), selection=chosen(0))
    for turn in range(1, 70):
        saved = store.save_session(saved, selection=chosen(turn))
    turns = [selection.turn_key for selection in store.selections(TENANT, key(1))]
    assert turns == [key(turn) for turn in range(69, 5, -1)]


def test_a_tenant_keeps_its_most_recently_updated_sessions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SESSION_LIMIT", 5)
    first = store.save_session(row(0), index=b"index")
    store.save_session(row(0, tenant=OTHER))
    for number in range(1, 5):
        store.save_session(row(number), selection=chosen(1, number), index=b"index")
    store.save_session(first)
    store.save_session(row(5))
    assert [s.id for s in store.sessions(TENANT)] == [key(n) for n in (5, 0, 4, 3, 2)]
    assert store.load_index(TENANT, key(1)) is None
    assert store.selections(TENANT, key(1)) == []
    assert len(store.sessions(OTHER)) == 1


def test_a_new_session_is_never_the_one_dropped(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "SESSION_LIMIT", 1)
    store.save_session(row(1))
    store._clock = lambda: 0.0
    store.save_session(row(2))
    assert [s.id for s in store.sessions(TENANT)] == [key(2)]


def test_a_graph_too_large_is_refused_with_its_size(store: Store) -> None:
    with pytest.raises(StoreError, match="graph of 4,194,305 bytes"):
        store.save_session(row(graph=bytes(sessions.GRAPH_LIMIT + 1)))
    assert store.save_session(row(graph=bytes(sessions.GRAPH_LIMIT))).rev == 1


def test_an_index_too_large_is_not_kept_and_the_old_one_goes(store: Store) -> None:
    saved = store.save_session(row(), index=b"index")
    store.save_session(saved, index=bytes(sessions.INDEX_LIMIT + 1))
    assert store.load_index(TENANT, key(1)) is None


def test_saving_without_an_index_leaves_the_one_that_is_stored(store: Store) -> None:
    store.save_session(store.save_session(row(), index=b"index"))
    assert store.load_index(TENANT, key(1)) == b"index"


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant": b""}, {"tenant": b"x" * 15}, {"tenant": "x" * 16}, {"id": b"x" * 17},
        {"parent": b"x"}, {"label": "x" * 4097}, {"turns": -1}, {"blocks": 2**63},
        {"last_response": float("nan")}, {"chars_per_token": float("inf")},
        {"graph": bytearray(b"x")}, {"label": ["x"]}, {"rev": -1},
    ],
)  # fmt: skip
def test_a_session_that_cannot_be_stored_is_refused(
    store: Store, changes: dict[str, object]
) -> None:
    with pytest.raises(UsageError):
        store.save_session(dataclasses.replace(row(), **changes))  # type: ignore[arg-type]
    assert store.sessions(TENANT) == []


@pytest.mark.parametrize(
    "changes", [{"session": b"x"}, {"turn_key": b""}, {"turn_key": b"x" * 65}, {"key": b"x" * 65}]
)
def test_a_selection_that_cannot_be_stored_is_refused(
    store: Store, changes: dict[str, object]
) -> None:
    with pytest.raises(UsageError):
        store.put_selection(dataclasses.replace(chosen(1), **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("tenant", [b"", b"short", "t" * 16, None])
def test_a_tenant_of_another_length_is_refused_by_every_reader(store: Store, tenant: bytes) -> None:
    for call in (
        lambda: store.load_session(tenant, key(1)), lambda: store.sessions(tenant),
        lambda: store.delete_session(tenant, key(1)), lambda: store.load_index(tenant, key(1)),
        lambda: store.load_selection(tenant, key(1), key(1)),
        lambda: store.selections(tenant, key(1)),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="tenant must be 16 bytes"):
            call()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["save", "put", "index", "delete"]), st.booleans(), st.integers(0, 2)
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_no_tenant_ever_sees_or_changes_what_is_anothers(
    store: Store, steps: list[tuple[str, bool, int]]
) -> None:
    """Two tenants use the same ids; each then sees exactly what it did itself."""
    for tenant, number in product((TENANT, OTHER), range(3)):
        store.delete_session(tenant, key(number))
    expected: dict[tuple[bytes, bytes], tuple[int, bytes | None, set[bytes]]] = {}
    for at, (step, is_other, number) in enumerate(steps):
        tenant = OTHER if is_other else TENANT
        here = (tenant, key(number))
        mark = b"%d of %b" % (at, tenant)
        rev, index, kept = expected.get(here, (0, None, set()))
        if step == "delete":
            assert store.delete_session(*here) is (here in expected)
            expected.pop(here, None)
        elif step == "put":
            if here in expected:
                store.put_selection(chosen(at, number, tenant, kept=mark))
                expected[here] = (rev, index, kept | {mark})
        else:
            new = mark if step == "index" else None
            store.save_session(row(number, tenant, rev=rev, graph=mark), index=new)
            expected[here] = (rev + 1, new or index, kept)
    for tenant in (TENANT, OTHER):
        mine = {id: state for (owner, id), state in expected.items() if owner == tenant}
        assert {(s.tenant, s.id, s.rev) for s in store.sessions(tenant)} == {
            (tenant, id, state[0]) for id, state in mine.items()
        }
        for id in map(key, range(3)):
            rev, index, kept = mine.get(id, (0, None, set()))
            loaded = store.load_session(tenant, id)
            assert (loaded.rev if loaded else 0) == rev
            assert loaded is None or loaded.graph.endswith(tenant)
            assert store.load_index(tenant, id) == index
            assert {s.kept for s in store.selections(tenant, id)} == kept
