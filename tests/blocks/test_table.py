from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.segment import Segmentation, segment
from recap.blocks.table import BlockTable, TermIndex, build_table
from tests.testing import call, message, reply, result, step, text, thinking, user

if TYPE_CHECKING:
    from recap.transcript.model import Message

INDEX_ARRAYS = ("starts", "terms", "wrote", "document_frequency", "last_use", "acts")
BLOCK_ARRAYS = ("cost_chars", "turn", "is_active", "is_user")


def row(table: BlockTable, block: int) -> dict[str, bool]:
    """Return identifier -> the agent wrote it, of one block."""
    index = table.index
    names = list(index.vocabulary)
    entries = slice(index.starts[block], index.starts[block + 1])
    return {
        names[term]: bool(wrote)
        for term, wrote in zip(index.terms[entries], index.wrote[entries], strict=True)
    }


def own_vocabulary(index: TermIndex) -> list[tuple[str, int]]:
    return [item for item in index.vocabulary.items() if item[1] < index.size]


def assert_equal(one: BlockTable, two: BlockTable) -> None:
    assert one.blocks == two.blocks
    assert (one.ids, one.fixed, one.excluded) == (two.ids, two.fixed, two.excluded)
    for name in BLOCK_ARRAYS:
        mine, other = getattr(one, name), getattr(two, name)
        assert mine.dtype == other.dtype, name
        np.testing.assert_array_equal(mine, other, name)
    assert_same_index(one.index, two.index)
    assert_same_index(one.lines, two.lines)


def assert_same_index(one: TermIndex, two: TermIndex) -> None:
    assert own_vocabulary(one) == own_vocabulary(two)
    assert one.size == two.size
    for name in INDEX_ARRAYS:
        mine, other = getattr(one, name), getattr(two, name)
        assert mine.dtype == other.dtype, name
        np.testing.assert_array_equal(mine, other, name)


def session() -> list[Message]:
    return [
        message(
            "user", text("<system-reminder>rules</system-reminder>", "injected"), text("fix ab_c")
        ),
        *step("t1", "ab_c is in cd_e", file_path="src/ef_g.py"),
        message("user", text("<x>", "injected")),
        reply("ab_c calls gh_i"),
        user("thanks"),
        message("assistant", call("t2"), text("open", "agent")),
    ]


def test_blocks_come_as_arrays():
    table = build_table(session())
    assert len(table) == 6
    assert table.ids == tuple(block.id for block in table.blocks)
    assert table.cost_chars.tolist() == [block.cost_chars for block in table.blocks]
    assert table.turn.tolist() == [0, 0, 0, 0, 1, 1]
    assert table.is_user.tolist() == [True, False, False, False, True, False]
    assert table.is_active.all()
    assert [tuple(ref) for ref in table.fixed] == [(0, 0)]
    assert [x.reason for x in table.excluded] == ["open-call"]


def test_only_blocks_of_the_live_context_count_in_the_base():
    table = build_table([user("old words", is_active=False), user("new")])
    assert table.active_chars == 3


def test_the_agent_wrote_its_texts_and_calls_and_not_what_it_read():
    written = row(build_table(session()), 1)
    assert written["src/ef_g.py"] is True
    assert written["ab_c"] is False
    assert written["cd_e"] is False


def test_what_the_agent_wrote_and_read_in_one_block_is_written():
    table = build_table(
        [
            message("assistant", call("t", "Grep", pattern="ab_c")),
            message("tool", result("t", "ab_c")),
        ]
    )
    assert row(table, 0)["ab_c"] is True


def test_the_words_of_the_person_are_not_the_agents():
    assert row(build_table([user("fix ab_c")]), 0) == {"ab_c": False}


def test_machine_text_and_thinking_feed_no_identifiers():
    table = build_table(
        [reply("ok"), message("user", text("see ab_c", "notification")),
         message("assistant", thinking("cd_e"), text("ef_g", "agent"))]
    )  # fmt: skip
    assert [set(row(table, block)) for block in range(3)] == [set(), set(), {"ef_g"}]


def test_counts_follow_from_the_rows():
    index = build_table(
        [user("ab_c cd_e"), reply("ab_c"), user("cd_e"), reply("plain"), user("cd_e")]
    ).index
    a, c = index.vocabulary["ab_c"], index.vocabulary["cd_e"]
    assert (index.document_frequency[a], index.document_frequency[c]) == (2, 3)
    assert (index.last_use[a], index.last_use[c]) == (1, 4)
    assert (index.acts[a], index.acts[c]) == (1, 0)
    assert index.starts.tolist() == [0, 2, 3, 4, 4, 5]


def test_an_empty_list_gives_an_empty_table():
    table = build_table([])
    assert len(table) == 0
    assert table.active_chars == 0
    assert table.index.size == 0
    assert table.index.starts.tolist() == [0]
    assert_equal(table.prefix(0), table)


def test_a_given_segmentation_decides_what_belongs_to_the_table():
    messages = session()
    whole = segment(messages)
    table = build_table(messages, Segmentation(whole.blocks[:2], whole.fixed, ()))
    assert_equal(table, build_table(messages).prefix(2))
    assert_equal(table.extend(messages, whole), build_table(messages))


def test_arrays_of_a_prefix_are_shared():
    table = build_table(session())
    assert np.shares_memory(table.prefix(3).index.terms, table.index.terms)
    assert table.prefix(3).index.vocabulary is table.index.vocabulary
    assert table.prefix(len(table)) is table


def test_a_block_whose_results_arrive_is_read_again():
    begun = [user("go"), message("assistant", call("a"), call("b")), message("tool", result("a"))]
    grown = [*begun, message("tool", result("b", "late_name"))]
    table = build_table(begun).extend(grown)
    assert "late_name" in row(table, 1)
    assert_equal(table, build_table(grown))


def test_a_list_that_changed_is_read_from_the_change_on():
    before = [user("ab_c"), reply("cd_e"), user("ef_g")]
    after = [user("ab_c"), reply("xy_z"), user("ef_g"), reply("gh_i")]
    assert_equal(build_table(before).extend(after), build_table(after))


def test_results_that_changed_under_equal_blocks_are_read_again():
    before, after = step("t", "one_name"), step("t", "two_name")
    assert segment(before).blocks == segment(after).blocks
    assert_equal(build_table(before).extend(after), build_table(after))


def test_growing_leaves_the_shorter_table_as_it_was():
    short = session()[:3]
    table = build_table(short)
    table.extend([*short, reply("new_one")])
    branch = table.extend([*short, reply("new_two")])
    assert "new_one" not in branch.index.vocabulary
    assert_equal(table, build_table(short))
    assert_equal(branch, build_table([*short, reply("new_two")]))


WORDS = st.lists(
    st.sampled_from(["ab_c", "cd_e", "src/ef_g.py", "gHi", "`word`", "plain", "1"]),
    min_size=1,
    max_size=4,
).map(" ".join)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Message lists with open, parallel and late results, and machine text."""
    messages: list[Message] = []
    open_calls: list[str] = []
    for number in range(draw(st.integers(1, 10))):
        kind = draw(st.sampled_from(["user", "reply", "calls", "result", "machine"]))
        words = draw(WORDS)
        if kind == "user":
            messages.append(user(words))
        elif kind == "reply":
            messages.append(reply(words))
        elif kind == "machine":
            messages.append(message("user", text(words, "injected")))
        elif kind == "calls":
            ids = [f"{number}.{at}" for at in range(draw(st.integers(1, 2)))]
            open_calls += ids
            messages.append(message("assistant", *(call(id_, command=words) for id_ in ids)))
        elif open_calls:
            at = draw(st.integers(0, len(open_calls) - 1))
            messages.append(message("tool", result(open_calls.pop(at), words)))
    return messages


@given(conversations(), st.integers(0, 10), st.integers(0, 10))
def test_a_table_that_grew_equals_one_built_whole(messages: list[Message], one: int, two: int):
    first, second = sorted((min(one, len(messages)), min(two, len(messages))))
    table = build_table(messages[:first]).extend(messages[:second]).extend(messages)
    assert_equal(table, build_table(messages))


@given(conversations(), st.integers(0, 10), st.integers(0, 10))
def test_a_prefix_can_grow_again(messages: list[Message], blocks: int, end: int):
    table = build_table(messages)
    prefix = table.prefix(min(blocks, len(table)))
    assert_equal(prefix.extend(messages[:end]), build_table(messages[:end]))
    assert_equal(prefix.extend(messages), table)


@given(conversations(), st.integers(0, 10))
def test_a_prefix_holds_the_arrays_of_its_blocks_alone(messages: list[Message], blocks: int):
    table = build_table(messages)
    prefix = table.prefix(min(blocks, len(table)))
    alone = build_table(messages, Segmentation(prefix.blocks, prefix.fixed, prefix.excluded))
    assert_equal(prefix, alone)


@given(conversations())
def test_identifiers_are_numbered_by_first_occurrence(messages: list[Message]):
    index = build_table(messages).index
    assert list(index.vocabulary.values()) == list(range(index.size))
    seen = -1
    for start, end in zip(index.starts[:-1], index.starts[1:], strict=True):
        terms = index.terms[start:end]
        assert (np.diff(terms) > 0).all()
        new = terms[terms > seen]
        assert new.tolist() == list(range(seen + 1, seen + 1 + len(new)))
        seen += len(new)


def test_tables_do_not_depend_on_the_hash_seed():
    code = (
        "from recap.blocks.table import build_table\n"
        "from tests.testing import conversation, read_messages\n"
        "index = build_table(read_messages(conversation(3)).messages).index\n"
        "print(list(index.vocabulary), index.terms.tolist(), index.wrote.tolist())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, check=True, text=True, cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
    assert len(outputs.pop()) > 1000


@pytest.mark.corpus
def test_real_sessions_grow_to_the_same_table(corpus: Path):
    from recap.transcript.formats import open_log

    messages = open_log(corpus / "sessions/claude-code/entire-48b4-9turns.jsonl").messages
    whole = build_table(messages)
    table = build_table(())
    for end in range(0, len(messages) + 1, 10):
        table = table.extend(messages[:end])
    assert_equal(table.extend(messages), whole)
    for blocks in range(0, len(whole), 7):
        assert_equal(whole.prefix(blocks).extend(messages), whole)


@pytest.mark.corpus
def test_real_sessions_hold_some_dozens_of_identifiers_a_block(corpus: Path):
    """Blobs, hashes and minified lines would show here."""
    from recap.transcript.formats import open_log

    for path in sorted((corpus / "swe-together").glob("cli-task-*.json")):
        index = build_table(open_log(path).messages).index
        assert 20 <= len(index.terms) / (len(index.starts) - 1) <= 120, path.name
        assert index.size <= 10_000, path.name
