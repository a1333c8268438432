"""What a block has in common with the request."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from recap.select.relevance import UNIT, bm25, known_terms, relevance, row_sums
from tests.select.tables import index_of

INDEX = index_of([("api.py main.go", ""), ("api.py", ""), ("", ""), ("Cache retry_count", "")])


def test_relevance_sums_the_idf_of_shared_identifiers() -> None:
    terms = known_terms(["api.py", "main.go"], INDEX)
    expected = [log(1 + 4 / 2) + log(1 + 4 / 1), log(1 + 4 / 2), 0, 0]
    assert relevance(INDEX, terms) == pytest.approx(expected, abs=2 / UNIT)


def test_bm25_discounts_long_blocks() -> None:
    terms = known_terms(["api.py"], INDEX)
    idf = log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    mean = (2 + 1 + 0 + 2) / 4
    expected = [idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * n / mean)) for n in (2, 1)]
    assert bm25(INDEX, terms)[:2] == pytest.approx(expected, abs=2 / UNIT)
    assert bm25(INDEX, terms)[2:].tolist() == [0, 0]


def test_a_request_without_known_identifiers_is_relevant_to_nothing() -> None:
    terms = known_terms(["nowhere.py"], INDEX)
    assert terms.tolist() == []
    assert not relevance(INDEX, terms).any()
    assert not bm25(INDEX, terms).any()


def test_identifiers_that_only_a_longer_table_holds_are_unknown() -> None:
    assert known_terms(["Cache", "api.py"], INDEX.prefix(2)).tolist() == [0]


def test_ids_of_terms_do_not_depend_on_the_order_of_names() -> None:
    names = ["retry_count", "api.py", "Cache"]
    assert known_terms(names, INDEX).tolist() == known_terms(names[::-1], INDEX).tolist()


@pytest.mark.parametrize("score", [relevance, bm25])
def test_tables_without_blocks_or_identifiers_are_scored(score: object) -> None:
    assert callable(score)
    none = np.array([], np.int64)
    assert score(index_of([]), none).tolist() == []
    assert score(index_of([("", ""), ("", "")]), none).tolist() == [0, 0]


def test_row_sums_of_empty_rows_are_zero() -> None:
    starts = np.array([0, 0, 2, 2, 3, 3])
    assert row_sums(starts, np.array([1.0, 2.0, 4.0])).tolist() == [0, 3, 0, 4, 0]
