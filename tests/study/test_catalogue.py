"""Names to methods, with settings and options of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recap.config import Settings
from recap.errors import UsageError
from recap.study.catalogue import DEFAULT, REFERENCE, all_methods, chosen, methods_of
from recap.study.evaluate import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def test_all_recipes_run_where_none_are_named() -> None:
    assert chosen(()) == DEFAULT
    assert REFERENCE in DEFAULT


def test_the_reference_is_always_there_and_each_method_once() -> None:
    assert chosen(("paper", "paper")) == ("paper", REFERENCE)


def test_every_method_is_found_by_its_name() -> None:
    names = tuple(method.name for method in all_methods())
    assert tuple(method.name for method in methods_of(names)) == names


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="full-history"):
        methods_of(("nothing",))


def test_options_make_another_method_under_its_whole_name(files: Mapping[str, Path]) -> None:
    names = (
        "coverage-lines", "coverage-lines:policy=paper", "paper-lines",
        "recency", "coverage:recency_share=1;expansion=0", "coverage",
    )  # fmt: skip
    found = list(evaluate(files["delta.json"], methods_of(names), ["0.5"], Settings()))
    kept = {name: [row.cost_chars for row in found if row.method == name] for name in names}
    assert all(kept.values())
    assert kept[names[1]] == kept[names[2]] != kept[names[0]]
    assert kept[names[4]] != kept[names[5]]
