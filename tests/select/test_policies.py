"""The table of recipes."""

from __future__ import annotations

import pytest

from recap.config import Settings
from recap.errors import UsageError
from recap.select.policies import RECIPES, recipe_of


def test_every_recipe_is_found_by_its_name_and_says_what_it_does() -> None:
    assert {"paper", "coverage", "recency", "bm25", "random"} <= set(RECIPES)
    for name, recipe in RECIPES.items():
        assert recipe_of(name) is recipe
        assert recipe.help


def test_the_default_policy_has_a_recipe() -> None:
    assert Settings().policy in RECIPES


def test_only_paper_and_coverage_expand() -> None:
    assert {name for name, recipe in RECIPES.items() if recipe.expands} == {"paper", "coverage"}


def test_paper_protects_edits_of_any_size_and_leaves_no_markers() -> None:
    paper = recipe_of("paper")
    assert not paper.caps_edits
    assert not paper.markers


def test_a_recipe_given_is_the_recipe_found() -> None:
    assert recipe_of(RECIPES["bm25"]) is RECIPES["bm25"]


def test_an_unknown_name_is_an_error_with_the_names_there_are() -> None:
    with pytest.raises(UsageError, match="unknown policy 'best'; policies: coverage, paper"):
        recipe_of("best")
