from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from recap.baselines.ablations import CUTTERS, FinerBlocks, lines, paragraphs
from tests.baselines.histories import TEXTS, demo_task, histories, task_of
from tests.testing import reply, step, user

if TYPE_CHECKING:
    from recap.transcript.model import Message

CODE = "first\n\nsecond line\nthird line\n```py\na = 1\n\n\nb = 2\n```\nafter\n\n\nlast"


@given(text=TEXTS)
def test_units_tile_the_text(text: str):
    assert "".join(paragraphs(text)) == text
    assert "".join(lines(text)) == text


@given(text=TEXTS)
def test_lines_are_cut_where_paragraphs_are(text: str):
    ends = [len("".join(paragraphs(text)[: i + 1])) for i in range(len(paragraphs(text)))]
    finer = [len("".join(lines(text)[: i + 1])) for i in range(len(lines(text)))]
    assert set(ends) <= set(finer)


@given(text=TEXTS)
def test_no_unit_is_blank_beside_another(text: str):
    for cut in CUTTERS.values():
        units = cut(text)
        assert len(units) < 2 or all(unit.strip() for unit in units)


def test_fenced_code_stays_in_one_unit():
    code = "```py\na = 1\n\n\nb = 2\n```\n"
    assert paragraphs(CODE) == [
        "first\n\n",
        f"second line\nthird line\n{code}",
        "after\n\n\n",
        "last",
    ]
    assert lines(CODE) == [
        "first\n\n",
        "second line\n",
        "third line\n",
        code,
        "after\n\n\n",
        "last",
    ]


@pytest.mark.parametrize("fence", ["````", "~~~", "   ```"])
def test_only_a_fence_of_its_kind_ends_code(fence: str):
    inside = "```py\n\nx\n" if fence != "   ```" else "~~~\n\nx\n"
    text = f"{fence}\n{inside}{fence}\n\nnext\n"
    assert lines(text) == [f"{fence}\n{inside}{fence}\n\n", "next\n"]


def test_code_without_an_end_goes_on_to_the_end():
    assert lines("a\n```\nb\n\nc\n") == ["a\n", "```\nb\n\nc\n"]


@given(history=histories())
def test_units_never_cost_more_than_what_p_leaves(history: list[Message]):
    task = task_of(history, "0.4")
    for unit in CUTTERS:
        for policy in ("coverage", "paper"):
            context = FinerBlocks(unit, policy).shorten(task)
            assert context.cost_chars <= max(task.budget_chars, task.protected_chars)


def test_a_cut_block_is_not_kept_and_its_pieces_are_parts_of_it():
    output = "\n\n".join(f"paragraph {i} names thing_{i} and other_{i}.py" for i in range(40))
    task = task_of([user("go"), *step("a", output), reply("done")], "0.3", "thing_7 please")
    context = FinerBlocks("paragraphs", "paper").shorten(task)
    cut = [piece for piece in context.pieces if piece.block == 1 and not piece.is_verbatim]
    assert cut
    assert 1 not in context.kept
    assert all(piece.text in output for piece in cut)
    assert "thing_7 " in "".join(piece.text for piece in cut)


def test_a_budget_for_everything_keeps_every_word():
    task = demo_task("1")
    context = FinerBlocks("lines").shorten(task)
    silent = {"thinking", "image"}
    for block in range(len(task.table)):
        words = "".join(part.text() for part in task.parts(block) if part.kind not in silent)
        assert "".join(p.text for p in context.pieces if p.block == block) == words


def test_blocks_of_one_unit_rank_as_the_recipe_ranks_blocks():
    """With one paragraph a block, the ablation of ``paper`` is the recipe without expansion."""
    from recap.study.methods import recipe_methods

    words = [f"beta_{at} goes with alpha_{at % 3} in file_{at}.py " for at in range(12)]
    replies = [reply(each + "word " * at) for at, each in enumerate(words)]
    history = [user("start at alpha_1 now"), *replies]
    task = task_of(history, "0.4", "what of alpha_1 and file_7.py?")
    task = replace(task, settings=task.settings.replace(exploration_low=0.5, exploration_high=0.5))
    recipe = next(each for each in recipe_methods() if each.name == "paper")
    task = replace(task, settings=task.settings.replace(expansion="0"))
    assert FinerBlocks("paragraphs", "paper").shorten(task).kept == recipe.shorten(task).kept
