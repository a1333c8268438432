from __future__ import annotations

import numpy as np
import pytest

from recap.blocks.fingerprints import common_prefix, fingerprints
from recap.blocks.segment import segment
from tests.testing import message, step, text, thinking, user


def prints_of(messages) -> list[int]:
    return fingerprints(messages, segment(messages).blocks).tolist()


def test_equal_blocks_have_equal_fingerprints_in_every_process():
    assert prints_of([user("go"), *step("t", "ab_c")]) == prints_of(
        [user("go"), *step("t", "ab_c")]
    )
    assert prints_of([user("go")]) == [5695458616730109547]


@pytest.mark.parametrize(
    "other",
    [
        step("t", "ab_d"),  # a result
        step("t", "ab_c", file_path="x"),  # a call
        [*step("t", "ab_c")[:1], message("user", text("ab_c"))],
    ],
)
def test_other_content_has_another_fingerprint(other):
    assert prints_of(step("t", "ab_c"))[0] != prints_of(other)[0]


def test_the_author_of_words_counts():
    one, other = user("ab_c"), message("user", text("ab_c", "notification"))
    assert prints_of([one]) != prints_of([other])


def test_cost_counts_where_content_is_the_same():
    short, long = (
        message("assistant", thinking(words), text("ab_c", "agent")) for words in ["a", "bb"]
    )
    assert prints_of([short]) != prints_of([long])


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [([], [], 0), ([1], [], 0), ([1, 2], [1, 2, 3], 2), ([1, 2, 3], [1, 5, 3], 1), ([2], [1], 0)],
)
def test_the_common_prefix_ends_at_the_first_difference(one, other, shared):
    assert common_prefix(np.array(one, np.uint64), np.array(other, np.uint64)) == shared


def test_no_blocks_have_no_fingerprints():
    found = fingerprints([], ())
    assert (found.dtype, len(found)) == (np.uint64, 0)
