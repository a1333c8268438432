from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transcript.logs import (
    agent,
    answer,
    boundary,
    codes,
    log,
    node,
    outline,
    read,
    result,
    said,
    summary,
    use,
    user,
    words,
)


def turns(first: int, last: int, parent: str | None) -> list[dict[str, object]]:
    """Return plain turns: a question and a reply each, in one chain."""
    lines = []
    for n in range(first, last + 1):
        lines.append(user(f"u{n}", parent, f"question {n}"))
        lines.append(agent(f"a{n}", f"u{n}", said(f"reply {n}")))
        parent = f"a{n}"
    return lines


def texts(first: int, last: int) -> list[str]:
    return [text for n in range(first, last + 1) for text in (f"question {n}", f"reply {n}")]


# Links


def test_a_plain_chain_is_read_in_order():
    transcript = read(*turns(1, 3, None))
    assert words(transcript) == texts(1, 3)
    assert not transcript.findings


@pytest.mark.parametrize("kind", ["progress", "system", "attachment"])
def test_lines_that_are_no_conversation_link_it(kind):
    """Report B043."""
    transcript = read(
        node(kind, "l0", None),
        user("u1", "l0", "question"),
        node(kind, "l1", "u1"),
        node(kind, "l2", "l1"),
        agent("a1", "l2", use("c1")),
        node("progress", "p1", "a1"),
        node("attachment", "p2", "p1", attachment={"type": "hook_success"}),
        answer("r1", "p2", "c1"),
        node("progress", "p3", "a1"),
        agent("a2", "r1", said("reply")),
    )
    assert words(transcript) == ["question", "result of c1", "reply"]
    assert not transcript.findings


def test_several_children_are_no_fork():
    """Progress, further calls and results hang on one call; the answer hangs on the last result."""
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1"), id="m"),
        node("progress", "p1", "a1"),
        agent("a2", "a1", use("c2"), id="m"),
        answer("r1", "a1", "c1"),
        answer("r2", "a2", "c2"),
        agent("a3", "r2", said("reply")),
    )
    assert words(transcript) == ["question", "result of c1", "result of c2", "reply"]
    assert not transcript.findings


def test_results_off_the_walk_follow_their_call():
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1"), id="m"),
        answer("r1", "a1", "c1"),
        agent("a2", "a1", use("c2"), id="m"),
        answer("r2", "a2", "c2"),
        agent("a3", "r2", said("reply")),
    )
    assert outline(transcript) == [
        ("user", 1), ("assistant", 2), ("tool", 3), ("tool", 5), ("assistant", 6),
    ]  # fmt: skip
    assert not transcript.findings


@pytest.mark.parametrize("owner", [{"sourceToolAssistantUUID": "a1"}, {}])
def test_a_result_whose_parent_is_elsewhere_goes_to_the_line_that_made_the_call(owner):
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1")),
        answer("r1", "u1", "c1", **owner),
        agent("a2", "a1", said("reply")),
    )
    assert words(transcript) == ["question", "result of c1", "reply"]


def test_a_second_result_of_a_call_stays_out():
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1")),
        user("r1", "a1", [result("c1", "first")]),
        user("r2", "a1", [result("c1", "second")]),
        agent("a2", "r2", said("reply")),
    )
    assert words(transcript) == ["question", "second", "reply"]
    assert codes(transcript) == ["rewound"]


def test_calls_off_the_walk_come_with_their_message():
    """The file ends at the first of two results: the second call hangs beside the walk."""
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1"), id="m"),
        agent("a2", "a1", use("c2"), id="m"),
        answer("r2", "a2", "c2"),
        answer("r1", "a1", "c1"),
    )
    assert words(transcript) == ["question", "result of c2", "result of c1"]
    assert len(transcript.messages[1].parts) == 2
    assert not transcript.findings


def test_redacted_ids_pair_within_their_own_message():
    lines = [user("u1", None, "question")]
    parent = "u1"
    for n in range(3):
        lines.append(agent(f"a{n}", parent, use("REDACTED")))
        lines.append(user(f"r{n}", f"a{n}", [result("REDACTED", f"result {n}")]))
        parent = f"r{n}"
    lines.insert(2, node("progress", "p", "a0"))
    lines[4]["parentUuid"] = "p"  # the first result is off the walk
    transcript = read(*lines)
    assert words(transcript) == ["question", "result 0", "result 1", "result 2"]


# Leaves and forks


def test_the_last_leaf_in_the_file_is_the_active_one():
    """A rewind: two questions hang on one reply."""
    transcript = read(
        *turns(1, 3, None), user("u9", "a1", "other question"), agent("a9", "u9", said("other"))
    )
    assert words(transcript) == [*texts(1, 1), "other question", "other"]
    (finding,) = transcript.findings
    assert (finding.code, finding.line) == ("rewound", 3)
    assert "4 lines (3 to 6)" in finding.detail
    assert transcript.counts["rewound_lines"] == 4


def test_each_rewound_branch_is_named():
    lines = [*turns(1, 1, None)]
    lines += [user(f"u{n}", "a1", f"try {n}") for n in range(2, 6)]
    transcript = read(*lines)
    assert words(transcript) == [*texts(1, 1), "try 5"]
    assert [finding.line for finding in transcript.findings] == [3, 4, 5]


def test_metadata_lines_at_the_end_do_not_move_the_leaf():
    transcript = read(
        *turns(1, 2, None),
        {"type": "summary", "summary": "A title", "leafUuid": "u1"},
        {"type": "last-prompt", "lastPrompt": "x", "leafUuid": "a1", "sessionId": "s1"},
        {"type": "custom-title", "customTitle": "x", "sessionId": "s1"},
        {"type": "queue-operation", "operation": "enqueue", "content": "x", "sessionId": "s1"},
        {"type": "kind-of-the-future", "uuid": "f", "parentUuid": "a2"},
    )
    assert words(transcript) == texts(1, 2)
    assert not transcript.findings


def test_a_child_that_stands_before_its_parent_is_found():
    first, reply, *rest = turns(1, 2, None)
    transcript = read(reply, first, *rest)
    assert words(transcript) == texts(1, 2)


def test_a_cycle_ends():
    transcript = read(user("u1", "a1", "question"), agent("a1", "u1", said("reply")))
    assert sorted(words(transcript)) == ["question", "reply"]


def test_a_line_that_is_its_own_parent_has_none():
    assert words(read(user("u1", "u1", "question"))) == ["question"]


def test_of_lines_with_one_uuid_the_last_counts():
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", said("first")),
        agent("a1", "u1", said("second")),
        user("u2", "a1", "next"),
    )
    assert words(transcript) == ["question", "second", "next"]
    assert [(finding.code, finding.line) for finding in transcript.findings] == [
        ("duplicate-uuid", 2)
    ]


# Gaps


def test_lines_before_a_missing_parent_are_joined_and_the_gap_is_shown():
    """Report B035."""
    transcript = read(*turns(1, 50, None), *turns(51, 100, "ghost"))
    assert words(transcript) == texts(1, 100)
    assert [(finding.code, finding.line) for finding in transcript.findings] == [("gap", 101)]


def test_a_gap_is_joined_past_lines_that_hang_beside_the_conversation():
    lines = [*turns(1, 1, None), node("progress", "p1", "u1"), node("attachment", "p2", "nowhere")]
    transcript = read(*lines, *turns(2, 2, "ghost"))
    assert words(transcript) == texts(1, 2)


def test_a_log_that_begins_in_mid_session_is_read_from_there():
    transcript = read(*turns(5, 6, "earlier"))
    assert words(transcript) == texts(5, 6)
    assert [(finding.code, finding.severity) for finding in transcript.findings] == [
        ("gap", "note")
    ]


def test_an_island_that_went_on_elsewhere_is_offered_not_joined():
    """Report B037: what precedes the gap is followed later, so it was not where the session stood."""
    other = [user("x1", "a1", "another window"), agent("x2", "x1", said("its reply"))]
    transcript = read(*turns(1, 1, None), *turns(2, 3, "ghost"), *other, *turns(4, 4, "a3"))
    assert words(transcript) == texts(2, 4)
    assert codes(transcript) == ["island", "gap"]
    assert transcript.counts["island_lines"] == 4


def test_an_island_that_a_rewind_mark_cuts_off_stays_out():
    """Report B037: the mark's own place is where the session stood."""
    lost = turns(2, 6, "a1")
    mark = node("system", "mark", "a1", subtype="rewind")
    transcript = read(*turns(1, 1, None), *lost, mark, *turns(7, 8, "ghost"))
    assert words(transcript) == [*texts(1, 1), *texts(7, 8)]
    assert codes(transcript) == ["rewound", "gap"]


def test_a_second_root_leaves_what_was_before_it_out():
    transcript = read(*turns(1, 2, None), *turns(3, 4, None))
    assert words(transcript) == texts(3, 4)
    assert codes(transcript) == ["island"]


def test_lines_without_links_are_read_in_file_order():
    lines = [
        {key: value for key, value in line.items() if key not in ("uuid", "parentUuid")}
        for line in turns(1, 3, None)
    ]
    transcript = read(*lines)
    assert words(transcript) == texts(1, 3)
    assert not transcript.findings


# Native compaction


def compacted(*, logical: str | None = "a2") -> list[dict[str, object]]:
    return [*turns(1, 2, None), boundary("b1", logical), summary("s1", "b1"), *turns(3, 3, "s1")]


def test_the_walk_stops_at_a_boundary_and_what_it_replaced_comes_first():
    transcript = read(*compacted())
    assert words(transcript, active=False) == texts(1, 2)
    assert words(transcript, active=True) == ["This session is being continued", *texts(3, 3)]
    assert transcript.counts["compactions"] == 1
    assert not transcript.findings


@pytest.mark.parametrize("logical", [None, "ghost"])
def test_a_boundary_that_does_not_say_what_it_replaced_replaced_the_lines_before_it(logical):
    assert words(read(*compacted(logical=logical)), active=False) == texts(1, 2)


def test_several_compactions_in_a_row_are_followed_back():
    transcript = read(
        *compacted(),
        boundary("b2", "a3"), summary("s2", "b2", "second summary"), *turns(4, 4, "s2"),
        boundary("b3", "a4"), summary("s3", "b3", "third summary"), *turns(5, 5, "s3"),
    )  # fmt: skip
    assert words(transcript, active=True) == ["third summary", *texts(5, 5)]
    assert words(transcript, active=False) == [
        *texts(1, 2), "This session is being continued", *texts(3, 3), "second summary",
        *texts(4, 4),
    ]  # fmt: skip
    assert transcript.counts["compactions"] == 3


def test_a_boundary_the_active_walk_does_not_meet_is_none():
    """The person went back to a point before the compaction."""
    transcript = read(*compacted(), user("u9", "a1", "went back"), agent("a9", "u9", said("ok")))
    assert words(transcript) == [*texts(1, 1), "went back", "ok"]
    assert all(message.is_active for message in transcript.messages)
    assert "compactions" not in transcript.counts


def test_a_boundary_at_the_end_of_the_file_changes_nothing_yet():
    transcript = read(*turns(1, 2, None), boundary("b1", "a2"))
    assert words(transcript, active=True) == texts(1, 2)


def test_a_microcompact_boundary_is_no_boundary():
    mark = node("system", "mb", "a1", subtype="microcompact_boundary", microcompactMetadata={})
    transcript = read(*turns(1, 1, None), mark, *turns(2, 2, "mb"))
    assert words(transcript, active=True) == texts(1, 2)
    assert transcript.counts["microcompactions"] == 1


def test_a_boundary_quoted_in_a_result_is_text():
    quoted = '{"type":"system","subtype":"compact_boundary","parentUuid":null}'
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1")),
        user("r1", "a1", [result("c1", quoted)]),
    )
    assert words(transcript, active=True) == ["question", quoted]


def test_a_boundary_in_a_side_chain_is_none():
    side = [
        user("x1", None, "task", isSidechain=True),
        {**boundary("x2", "x1"), "parentUuid": "x1", "isSidechain": True},
        agent("x3", "x2", said("side reply"), isSidechain=True),
    ]
    transcript = read(*turns(1, 1, None), *side, *turns(2, 2, "a1"))
    assert words(transcript, active=True) == texts(1, 2)
    assert codes(transcript) == ["sidechain"]


def test_a_call_whose_result_came_after_the_boundary_is_in_the_replaced_context():
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1")),
        boundary("b1", "a1"),
        summary("s1", "b1"),
        answer("r1", "s1", "c1"),
        agent("a2", "r1", said("reply")),
    )
    assert [(m.role, m.is_active) for m in transcript.messages] == [
        ("user", False), ("assistant", False), ("user", True), ("tool", True), ("assistant", True),
    ]  # fmt: skip


def preserving(next_parent: str, **metadata: object) -> list[dict[str, object]]:
    """Return a log whose second turn was preserved, and which went on below ``next_parent``."""
    return [
        *turns(1, 2, None),
        boundary("b1", "a2", **metadata),
        summary("s1", "b1", "summary"),
        *turns(3, 3, next_parent),
    ]


SEGMENT = {"preservedSegment": {"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a2"}}
LISTED = {
    "preservedMessages": {"anchorUuid": "s1", "uuids": ["u2", "a2"], "allUuids": ["u2", "a2"]}
}


@pytest.mark.parametrize("metadata", [SEGMENT, LISTED, {**SEGMENT, **LISTED}])
@pytest.mark.parametrize("next_parent", ["s1", "a2"])
def test_preserved_messages_are_live_and_follow_the_summary(metadata, next_parent):
    transcript = read(*preserving(next_parent, **metadata))
    assert words(transcript, active=True) == ["summary", *texts(2, 3)]
    assert words(transcript, active=False) == texts(1, 1)
    assert not transcript.findings


def test_preserved_messages_are_live_before_anything_new_is_said():
    transcript = read(*preserving("s1", **SEGMENT)[:-2])
    assert words(transcript, active=True) == ["summary", *texts(2, 2)]


def test_preserved_messages_are_found_where_what_was_before_them_is_gone():
    transcript = read(*preserving("s1", **SEGMENT)[2:])
    assert words(transcript, active=True) == ["summary", *texts(2, 3)]


def test_going_back_into_preserved_messages_keeps_the_summary():
    transcript = read(*preserving("s1", **SEGMENT), user("u9", "u2", "went back"))
    assert words(transcript, active=True) == ["summary", "question 2", "went back"]


def test_results_of_preserved_calls_are_live_too():
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", use("c1")),
        answer("r1", "a1", "c1"),
        boundary("b1", "r1", preservedMessages={"anchorUuid": "s1", "uuids": ["a1"]}),
        summary("s1", "b1", "summary"),
        user("u2", "s1", "next"),
    )
    assert words(transcript, active=False) == ["question", "result of c1"]
    assert words(transcript, active=True) == ["summary", "next"]


def test_preserved_messages_of_an_earlier_compaction_do_not_come_back():
    transcript = read(
        *preserving("s1", **SEGMENT),
        boundary("b2", "a3"), summary("s2", "b2", "second summary"), *turns(4, 4, "s2"),
    )  # fmt: skip
    assert words(transcript, active=True) == ["second summary", *texts(4, 4)]
    assert words(transcript, active=False) == [*texts(1, 2), "summary", *texts(3, 3)]


@pytest.mark.parametrize(
    "metadata",
    [
        {"preservedSegment": {"headUuid": "ghost", "anchorUuid": "s1", "tailUuid": "a2"}},
        {"preservedSegment": {"headUuid": "u2", "anchorUuid": "ghost", "tailUuid": "a2"}},
        {"preservedMessages": {"anchorUuid": "s1", "uuids": ["ghost"]}},
        {"preservedMessages": {"anchorUuid": "s1", "uuids": 7}},
    ],
)
def test_preserved_messages_that_are_not_there_are_reported(metadata):
    transcript = read(*preserving("s1", **metadata))
    assert words(transcript, active=True) == ["summary", *texts(3, 3)]
    assert codes(transcript) == ["preserved"]


def test_preserved_messages_whose_anchor_leads_back_to_them_end():
    first = {"headUuid": "u1", "tailUuid": "a1", "anchorUuid": "c1"}
    transcript = read(
        user("u1", None, "question"),
        agent("a1", "u1", said("reply")),
        boundary("c1", None, preservedSegment=first),
        summary("c1", "b1", "summary"),  # the id of the boundary, and its parent is not there
        user("u2", "c1", "next"),
    )
    assert sorted(words(transcript)) == ["next", "question", "reply", "summary"]


NAMES = st.sampled_from(["a", "b", "c", "d", "e", "ghost", None])


@given(
    st.lists(st.tuples(NAMES, NAMES, st.sampled_from(["user", "agent", "boundary"])), max_size=8),
    st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=8, max_size=8),
)
def test_no_order_of_compactions_reads_a_line_twice_or_without_end(nodes, folds):
    lines = []
    for number, ((uuid, parent, kind), fold) in enumerate(zip(nodes, folds, strict=False)):
        named = uuid or f"n{number}"
        head, tail, anchor = fold
        segment = {"headUuid": head, "tailUuid": tail, "anchorUuid": anchor}
        lines.append(
            {
                "user": lambda: user(named, parent, f"text {number}"),  # noqa: B023 - called here
                "agent": lambda: agent(named, parent, said(f"text {number}")),  # noqa: B023
                "boundary": lambda: boundary(named, parent, preservedSegment=segment),  # noqa: B023
            }[kind]()
        )
    read_words = words(read(*lines))
    assert len(read_words) == len(set(read_words))


# Any graph


@st.composite
def graphs(draw: st.DrawFn) -> bytes:
    """Draw a log whose lines have any parents: forks, gaps, cycles, boundaries."""
    size = draw(st.integers(1, 12))
    lines: list[dict[str, object]] = []
    for n in range(size):
        parent = draw(st.sampled_from([None, "ghost", *(f"n{m}" for m in range(size))]))
        kind = draw(st.sampled_from(["user", "agent", "call", "answer", "progress", "boundary"]))
        if kind == "user":
            lines.append(user(f"n{n}", parent, f"text {n}"))
        elif kind == "agent":
            lines.append(agent(f"n{n}", parent, said(f"text {n}"), id=f"m{n // 2}"))
        elif kind == "call":
            lines.append(agent(f"n{n}", parent, use(f"c{n % 3}"), id=f"m{n // 2}"))
        elif kind == "answer":
            lines.append(answer(f"n{n}", parent, f"c{n % 3}"))
        elif kind == "progress":
            lines.append(node("progress", f"n{n}", parent))
        else:
            segment = {"headUuid": f"n{n // 2}", "anchorUuid": f"n{n // 3}", "tailUuid": parent}
            lines.append(boundary(f"n{n}", parent, preservedSegment=segment))
    return log(*lines)


@given(graphs())
def test_any_graph_gives_each_line_at_most_once_and_accounts_for_all(data):
    transcript = read(data)
    parts = [id(part) for message in transcript.messages for part in message.parts]
    assert len(parts) == len(set(parts))
    starts = [
        part.raw.start  # type: ignore[attr-defined]
        for message in transcript.messages
        for part in message.parts
    ]
    assert len(starts) == len(set(starts))
    spoken = data.count(b'"message": ')
    left = sum(transcript.counts.get(f"{kind}_lines", 0) for kind in ("rewound", "island"))
    assert len(starts) + left == spoken


@given(graphs())
def test_what_a_compaction_replaced_stands_before_the_live_context(data):
    live = [message.is_active for message in read(data).messages]
    assert live == sorted(live)


@pytest.mark.parametrize("shape", ["gaps", "rewinds", "fan", "compactions", "one message"])
def test_time_grows_with_the_lines_not_their_square(shape):
    def lines(size: int) -> list[dict[str, object]]:
        root = [user("u", None, "x")]
        if shape == "gaps":
            return [user(f"g{n}", f"ghost{n}", "x") for n in range(size)]
        if shape == "rewinds":
            return [*root, *(user(f"g{n}", "u", "x") for n in range(size))]
        if shape == "fan":
            links = [node("progress", f"p{n}", f"p{n - 1}" if n else "u") for n in range(size)]
            return [*root, *links, *(user(f"g{n}", links[-1]["uuid"], "x") for n in range(size))]
        if shape == "compactions":
            ends = ["u", *(f"s{n}" for n in range(size))]
            pairs = ((boundary(f"b{n}", ends[n]), summary(f"s{n}", f"b{n}")) for n in range(size))
            return [*root, *(line for pair in pairs for line in pair)]
        ends = ["u", *(f"a{n}" for n in range(size))]
        return [*root, *(agent(f"a{n}", ends[n], said("x"), id="m") for n in range(size))]

    def seconds(size: int) -> float:
        data = log(*lines(size))
        start = time.process_time()
        read(data)
        return time.process_time() - start

    small, large = (min(seconds(size) for _ in range(2)) for size in (200, 1600))
    assert large < 0.1 + 24 * small  # a square would be 64 times


@given(st.integers(0, 2**32))
def test_the_order_of_metadata_lines_does_not_matter(seed):
    lines: list[dict[str, object]] = compacted()
    source = random.Random(seed)
    for _ in range(4):
        lines.insert(source.randrange(len(lines) + 1), {"type": "mode", "sessionId": "s1"})
    assert words(read(*lines)) == words(read(*compacted()))


# A uuid that stands twice, beside a parent that was never written


def test_a_gap_is_not_joined_to_a_line_that_a_later_one_replaces():
    transcript = read(
        user("u0", None, "first"),
        agent("a0", "u0", said("reply")),
        user("u1", "a0", "twice"),
        user("g", "never written", "behind the gap"),
        agent("a1", "g", said("answer")),
        user("u1", "a1", "twice"),
        agent("a2", "u1", said("end")),
    )
    found = words(transcript)
    assert found.count("twice") == 1
    assert found == ["first", "reply", "behind the gap", "answer", "twice", "end"]


def test_the_last_line_is_not_one_that_was_replaced():
    transcript = read(
        user("u1", "a1", "question"),
        user("u1", "a1", "question"),
        agent("a1", "u1", said("reply")),
    )
    assert sorted(words(transcript)) == ["question", "reply"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from(["", "a", "b", "c", "d", "e", "zz"])),
        min_size=1,
        max_size=9,
    )
)
def test_no_line_is_read_twice_whatever_its_uuid_and_parent(links):
    lines = [user(uuid, parent or None, f"text of {uuid}") for uuid, parent in links]
    found = words(read(*lines))
    assert len(found) == len(set(found))
