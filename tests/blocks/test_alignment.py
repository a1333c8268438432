from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.alignment import NOT_KNOWN, Alignment, BlockKey, align_blocks, block_keys
from recap.blocks.segment import segment
from recap.transcript.lists import read_messages
from tests.testing import message, reply, step, text, user

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {"u": "user", "t": "tools", "r": "reply", "m": "machine"}


def keys(line: str) -> list[BlockKey]:
    """Return keys from words like ``u1``, or ``t2:a,b`` for a block that made calls a and b."""
    found = []
    for word in line.split():
        name, _, calls = word.partition(":")
        ids = tuple(filter(None, calls.split(",")))
        found.append(BlockKey(name, KINDS[name[0]], ids, ("Read",) * (name[0] == "t")))
    return found


def aligned(known: str, new: str, *, is_new_root: bool = False) -> Alignment:
    return align_blocks(keys(known), keys(new), is_new_root=is_new_root)


def test_keys_hold_what_the_messages_say():
    messages = [user("go"), *step("t1", name="Edit"), reply("done")]
    blocks = segment(messages).blocks
    assert block_keys(messages, blocks) == (
        (blocks[0].id, "user", (), ()),
        (blocks[1].id, "tools", ("t1",), ("Edit",)),
        (blocks[2].id, "reply", (), ()),
    )


def test_results_of_a_block_give_no_call_ids_of_their_own():
    messages = [*step("t1"), message("user", text("<x>", "injected"))]
    assert [key.calls for key in block_keys(messages, segment(messages).blocks)] == [("t1",), ()]


def test_a_list_that_goes_on_keeps_its_blocks():
    assert aligned("u1 t1", "u1 t1 r1 u2") == Alignment(2, (0, 1, NOT_KNOWN, NOT_KNOWN), (), ())


def test_a_missing_middle_was_condensed():
    assert aligned("u1 t1 t2 r1", "u1 r1 u2") == Alignment(1, (0, 3, NOT_KNOWN), (1, 2), ())


def test_a_replaced_tail_was_taken_back():
    assert aligned("u1 r1 u2 r2", "u1 r1 u3") == Alignment(2, (0, 1, NOT_KNOWN), (), (2, 3))


def test_a_new_root_takes_nothing_back():
    found = aligned("u1 t1 r1", "m1 r2 u2", is_new_root=True)
    assert found == Alignment(0, (NOT_KNOWN,) * 3, (0, 1, 2), ())


def test_what_was_condensed_before_stays_so_while_the_rest_goes_on():
    assert aligned("u1 t1 m1 r2", "m1 r2 u2") == Alignment(0, (2, 3, NOT_KNOWN), (0, 1), ())


def test_a_condensed_block_that_stands_in_the_context_again_is_the_same_one():
    assert aligned("u1 r1 m1 t2", "m1 t2 r1 u2").continues == (2, 3, 1, NOT_KNOWN)


def test_a_shared_call_id_joins_a_rewritten_block():
    assert aligned("u1 t1:a r1", "u1 t2:a u2").continues == (0, 1, NOT_KNOWN)


def test_one_shared_call_of_several_is_enough():
    assert aligned("u1 t1:a,b r1", "u1 t2:b u2").continues == (0, 1, NOT_KNOWN)


@pytest.mark.parametrize("new", ["u1 t3:a u2", "u1 t3:a t4:a u2"])
def test_a_call_id_that_repeats_says_nothing(new):
    assert NOT_KNOWN in aligned("u1 t1:a t2:a", new).continues[1:2]


def test_a_block_rewritten_between_two_others_keeps_its_place():
    assert aligned("u1 t1 r1 u2", "u1 t9 r9 u2 r2").continues == (0, 1, 2, 3, NOT_KNOWN)


@pytest.mark.parametrize("gap", ["r9", "t9", "t9 t8", "r9 t9", "t9 r9 r8", "m9"])
def test_a_gap_of_another_shape_is_no_rewriting(gap):
    found = aligned("u1 t1 r1 u2 r2", f"u1 {gap} u2 r2")
    assert found.continues == (0, *[NOT_KNOWN] * len(gap.split()), 3, 4)
    assert found.condensed == (1, 2)


def test_the_same_words_after_a_turn_was_taken_back_bring_nothing_back():
    found = aligned("u1 r1 u2 t2 u3 r3", "u1 r1 u9 u3")
    assert (found.condensed, found.rewound) == ((), (2, 3, 5))


def test_another_tool_is_another_block():
    known, new = keys("u1 t1 u2"), keys("u1 t9 u2")
    new[1] = new[1]._replace(tools=("Edit",))
    assert align_blocks(known, new).continues == (0, NOT_KNOWN, 2)


def test_after_the_last_match_another_request_is_no_rewriting():
    assert aligned("u1 r1 u2", "u1 r1 u3") == Alignment(2, (0, 1, NOT_KNOWN), (), (2,))


def test_moved_blocks_keep_what_stays_in_order_as_anchors():
    found = aligned("u1 r1 r2 u3 r4 u5", "u1 r2 u3 r9 u5 r1")
    assert found.continues == (0, 2, 3, 4, 5, 1)


def test_nothing_known_and_nothing_new():
    assert align_blocks([], []) == Alignment(0, (), (), ())
    assert aligned("", "u1").continues == (NOT_KNOWN,)
    assert aligned("u1", "") == Alignment(0, (), (), (0,))


key_lists = st.lists(
    st.builds(
        lambda kind, number, calls: BlockKey(f"{kind}{number}", KINDS[kind], tuple(calls)),
        st.sampled_from("utrm"),
        st.integers(0, 6),
        st.lists(st.sampled_from("abc"), max_size=2),
    ),
    max_size=12,
    unique_by=lambda key: key.id,
)


@given(key_lists, key_lists, st.booleans())
def test_every_known_block_is_continued_once_or_condensed_or_rewound(known, new, is_new_root):
    found = align_blocks(known, new, is_new_root=is_new_root)
    continued = [old for old in found.continues if old != NOT_KNOWN]
    assert len(found.continues) == len(new)
    assert sorted([*continued, *found.condensed, *found.rewound]) == list(range(len(known)))


@given(key_lists, key_lists)
def test_equal_ids_are_the_same_block(known, new):
    at = {key.id: place for place, key in enumerate(known)}
    for key, old in zip(new, align_blocks(known, new).continues, strict=True):
        assert key.id not in at or old == at[key.id]


@given(key_lists, key_lists)
def test_the_prefix_is_never_crossed(known, new):
    found = align_blocks(known, new)
    assert found.continues[: found.prefix] == tuple(range(found.prefix))
    rest = [old for old in found.continues[found.prefix :] if old != NOT_KNOWN]
    assert min(rest, default=found.prefix) >= found.prefix


@given(key_lists, key_lists)
def test_a_grown_list_continues_block_by_block(known, more):
    held = {key.id for key in known}
    grown = [*known, *(key for key in more if key.id not in held)]
    found = align_blocks(known, grown)
    assert found.continues[: len(known)] == tuple(range(len(known)))
    assert not found.condensed
    assert not found.rewound
    assert align_blocks(grown, known).rewound == tuple(range(len(known), len(grown)))


@given(key_lists, key_lists)
def test_aligning_again_changes_nothing(known, new):
    again = align_blocks(new, new)
    assert again.continues == tuple(range(len(new)))
    assert align_blocks(known, new) == align_blocks(known, new)


def requests(corpus: Path, run: str) -> list[tuple[BlockKey, ...]]:
    """Return the keys of each captured request of a run."""
    folder = corpus.parent / "cases" / "gateway" / "captures"
    if not folder.is_dir():
        pytest.skip(f"captured requests not found at {folder}")
    found = []
    for path in sorted((folder / run).glob("*.json")):
        messages = read_messages(json.loads(path.read_bytes())["body"]).messages
        found.append(block_keys(messages, segment(messages).blocks))
    return found


@pytest.mark.corpus
@pytest.mark.parametrize("run", ["claude-code", "codex", "openhands", "opencode-responses", "llm"])
def test_requests_of_clients_that_append_go_on(corpus, run):
    main = [keys for keys in requests(corpus, run) if len(keys) != 2]  # without title calls
    for known, new in itertools.pairwise(main):
        found = align_blocks(known, new)
        assert found.prefix == len(known)


@pytest.mark.corpus
def test_gemini_cli_resumed_with_rewritten_results_goes_on(corpus):
    _, _, before, resumed, *_ = requests(corpus, "gemini-cli")
    assert align_blocks(before, resumed) == Alignment(3, (0, 1, 2, -1, -1), (), ())


@pytest.mark.corpus
def test_aider_moves_what_it_inserts_before(corpus):
    """The past request comes back shortened in an earlier place, and the new one at its old place."""
    before, after = requests(corpus, "aider")
    found = align_blocks(before, after)
    assert found == Alignment(6, (0, 1, 2, 3, 4, 5, -1, -1, 6, 7, -1), (), (8,))


@pytest.mark.corpus
def test_a_condenser_of_the_client_condenses_the_middle(corpus):
    _, _, before, after, *_ = requests(corpus, "openhands-condenser")
    grown = [*before, after[1]]  # the reply that ended the turn was seen as well
    assert align_blocks(grown, after) == Alignment(1, (0, 3, -1), (1, 2), ())


@pytest.mark.corpus
def test_native_compaction_of_claude_code_condenses_all(corpus):
    _, _, _, before, after, going_on, _ = requests(corpus, "claude-code-native-compaction")
    found = align_blocks(before, after, is_new_root=True)
    assert found == Alignment(0, (-1,) * len(after), (0, 1, 2, 3), ())
    archive = [*before, *after]
    found = align_blocks(archive, going_on)
    assert found == Alignment(0, (*range(4, 10), -1), (0, 1, 2, 3), ())


@pytest.mark.corpus
def test_native_compaction_of_opencode_condenses_all(corpus):
    runs = requests(corpus, "opencode-native-compaction")
    before, after, last = runs[4], runs[6], runs[9]
    assert align_blocks(before, after, is_new_root=True).condensed == (0, 1, 2, 3, 4)
    archive = [*before, *runs[8]]
    found = align_blocks(archive, last)
    assert found.continues == (5, 6, 7, 8, 9, 3, -1), (
        "the reply had been given before, word by word"
    )
    assert found.condensed == (0, 1, 2, 4)
    assert found.rewound == ()
