"""The links of what is left: known from those of the log, and the same as if they were found anew."""

from __future__ import annotations

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from recap.transcript.lines import Report
from recap.transcript.links import LINK, NO_PARENT, USER, Links, Parents

KEYS = st.integers(1, 6)
ROWS = st.lists(
    st.tuples(st.sampled_from((LINK, USER)), KEYS, st.one_of(KEYS, st.just(NO_PARENT), st.just(0))),
    max_size=12,
)  # fmt: skip


def links_of(rows: list[tuple[int, int, int]]) -> Links:
    links = Links()
    links.extend((at + 1, kind, key, above, 0, 0) for at, (kind, key, above) in enumerate(rows))
    return links


@settings(max_examples=300, deadline=None)
@given(ROWS, st.data())
def test_parents_of_what_is_left_are_those_found_anew(rows, data):
    size = len(rows)
    gone = bytes(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    new = data.draw(st.dictionaries(st.sampled_from(range(size)), KEYS)) if size else {}
    new = {at: key for at, key in new.items() if not gone[at]}
    known = Parents(links_of(rows), Report())
    left = [
        (LINK, 0, 0) if gone[at] else (kind, key, new.get(at, above))
        for at, (kind, key, above) in enumerate(rows)
    ]
    after = links_of(left)
    anew = Parents(after, Report())
    shared = links_of(rows)
    shared.kind = after.kind
    found = known.without(shared, gone, new.items())
    kept = [at for at in range(size) if not gone[at]]
    for column in ("stated", "repeated", "followed"):
        ours, wanted = getattr(found, column), getattr(anew, column)
        assert [ours[at] for at in kept] == [wanted[at] for at in kept], column
    assert [found.parent[at] for at in kept] == [anew.parent[at] for at in kept]
    assert [found.find(key) for key in range(8)] == [anew.find(key) for key in range(8)]
    assert array("i", known.stated) == Parents(links_of(rows), Report()).stated
